"""
The transactions of a log that bound its last stable offset.

::

              first batch             marker                    high watermark
    (none) -------------> ongoing -----------> unreplicated ----------------> (none)
                             |                      |
                             +----------------------+
                        the first of these is the first unstable offset, at
                        which reads of committed records end
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

from collections.abc import Iterable

from barnabas.storage.index.txn_index import CompletedTxn
from barnabas.storage.producers.entry import TxnMetadata
from barnabas.storage.segment.offset_metadata import LogOffsetMetadata


class OpenTransactions:
    """
    Transactions without a marker, and those whose marker is not below the high watermark yet.

    Invariants:

    1. Both are in the order of their first offsets.
    """

    __slots__ = ("_ongoing", "_unreplicated")

    def __init__(self) -> None:
        self._ongoing: dict[int, TxnMetadata] = {}
        self._unreplicated: dict[int, TxnMetadata] = {}

    @property
    def has_unreplicated(self) -> bool:
        """
        Whether there is one with a marker.
        """
        return bool(self._unreplicated)

    @property
    def first_ongoing(self) -> TxnMetadata | None:
        """
        The open transaction that began first.
        """
        return next(iter(self._ongoing.values()), None)

    def first_unstable_offset(self) -> LogOffsetMetadata | None:
        """
        The start of the first transaction that is open, or whose marker is not below the high
        watermark.
        """
        ongoing, unreplicated = self._ongoing, self._unreplicated
        if not unreplicated:
            return next(iter(ongoing.values())).first_offset if ongoing else None
        first = next(iter(unreplicated))
        if ongoing and next(iter(ongoing)) < first:
            return next(iter(ongoing.values())).first_offset
        return unreplicated[first].first_offset

    def last_stable_offset(self, completed_txn: CompletedTxn) -> int:
        """
        The last stable offset once *completed_txn* is complete, whatever the high watermark.
        """
        for first_offset, txn in self._ongoing.items():
            if txn.producer_id != completed_txn.producer_id:
                return first_offset
        return completed_txn.last_offset + 1

    def begin(self, transactions: Iterable[TxnMetadata]) -> None:
        """
        Add *transactions*, whose first batches were appended.
        """
        _put(self._ongoing, transactions)

    def complete(self, completed_txn: CompletedTxn) -> bool:
        """
        Note that the marker of a transaction was appended; return false if it is not open.
        """
        txn = self._ongoing.pop(completed_txn.first_offset, None)
        if txn is None:
            return False
        txn.last_offset = completed_txn.last_offset
        _put(self._unreplicated, [txn])
        return True

    def remove_unreplicated_before(self, offset: int) -> None:
        """
        Remove those whose markers are below *offset*.
        """
        if self._unreplicated:
            self._unreplicated = {
                first_offset: txn
                for first_offset, txn in self._unreplicated.items()
                if txn.last_offset is None or txn.last_offset >= offset
            }

    def clear(self) -> None:
        self._ongoing.clear()
        self._unreplicated.clear()


def _put(transactions: dict[int, TxnMetadata], added: Iterable[TxnMetadata]) -> None:
    """
    Add transactions in the order of first offsets.
    """
    for txn in added:
        first_offset = txn.first_offset.message_offset
        in_order = not transactions or next(reversed(transactions)) < first_offset
        transactions[first_offset] = txn
        if not in_order:
            ordered = sorted(transactions.items())
            transactions.clear()
            transactions.update(ordered)
