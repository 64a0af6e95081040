"""
What the cleaner has to know of transactions on its way through a log.

::

    data of T    data of T    ABORT of T
    |------|-----|------|-----|------|
     goes         goes         stays, and its entry in the transaction index, if data of T were met;
                               if none were met any more, it goes after delete.retention.ms

Data of an aborted transaction goes at once. A marker is of use as long as there is data that it
decides about; a COMMIT that nothing was met of goes as an ABORT does (KIP-534).
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

from collections.abc import Iterable
from heapq import heappop, heappush

from barnabas.protocol.records.batch import RecordBatch
from barnabas.protocol.records.control import ControlRecordType
from barnabas.storage.index.txn_index import AbortedTxn, TransactionIndex


class _OngoingAborted:
    __slots__ = ("observed", "txn")

    def __init__(self, txn: AbortedTxn) -> None:
        self.txn = txn
        self.observed = False
        """Whether one of its batches was met."""


class CleanedTransactionMetadata:
    """
    The transactions that are open where the cleaner is (Kafka's class of that name).

    Invariants:

    1. Batches are shown to it in the order of the log, each once.
    2. The aborted transactions of a segment are added before its first batch is shown.
    3. Who has an open transaction here that was aborted, has no other one.
    """

    def __init__(self) -> None:
        self.cleaned_index: TransactionIndex | None = None
        """Where the transactions go whose markers are kept; None if nothing is written."""
        self._committed: set[int] = set()
        self._aborted: dict[int, _OngoingAborted] = {}
        # By first offset. The other fields only make an order of those that are added twice.
        self._ahead: list[tuple[int, AbortedTxn]] = []

    def add_aborted_transactions(self, transactions: Iterable[AbortedTxn]) -> None:
        """
        Learn of transactions that were aborted; harmless if they are known, but not over yet.
        """
        for txn in transactions:
            heappush(self._ahead, (txn.first_offset, txn))

    def on_control_batch_read(self, batch: RecordBatch) -> bool:
        """
        A control batch comes; whether it decides about nothing that was met.

        Raises:
            InvalidRecord: its record is no control record.
        """
        self._begin_up_to(batch.last_offset)
        record = next(batch.records(), None)
        if record is None:
            # It was cleaned before, and was kept for its producer.
            return True
        match ControlRecordType.of(record.key):
            case ControlRecordType.ABORT:
                return not self._end_aborted(batch.producer_id)
            case ControlRecordType.COMMIT:
                if batch.producer_id not in self._committed:
                    return True
                self._committed.remove(batch.producer_id)
                return False
            case _:
                return False

    def _end_aborted(self, producer_id: int) -> bool:
        """
        The aborted transaction of a producer is over; whether one of its batches was met.
        """
        ongoing = self._aborted.pop(producer_id, None)
        if ongoing is None or not ongoing.observed:
            return False
        if self.cleaned_index is not None:
            self.cleaned_index.append(ongoing.txn)
        return True

    def on_batch_read(self, batch: RecordBatch) -> bool:
        """
        A batch of data comes; whether it belongs to an aborted transaction.
        """
        self._begin_up_to(batch.last_offset)
        if not batch.is_transactional:
            return False
        ongoing = self._aborted.get(batch.producer_id)
        if ongoing is None:
            self._committed.add(batch.producer_id)
            return False
        ongoing.observed = True
        return True

    def _begin_up_to(self, offset: int) -> None:
        ahead = self._ahead
        while ahead and ahead[0][0] <= offset:
            _, txn = heappop(ahead)
            self._aborted.setdefault(txn.producer_id, _OngoingAborted(txn))
