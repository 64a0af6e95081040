"""
The transactions on the cleaner's way through a log.

::

    data of T    data of T    ABORT of T
    |------|-----|------|-----|------|
     removed      removed      stays, with its entry in the transaction index, if T had data;
                               else it is removed after delete.retention.ms

Data of an aborted transaction is removed at once. A marker stays as long as there is data of its
transaction; a COMMIT without data is removed as an ABORT is (KIP-534).
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

    1. Batches come in the order of the log, each once.
    2. The aborted transactions of a segment are added before its first batch comes.
    3. A producer has at most one open transaction here that was aborted.
    """

    def __init__(self) -> None:
        self.cleaned_index: TransactionIndex | None = None
        """The index for the transactions whose markers are kept; None if nothing is written."""
        self._committed: set[int] = set()
        self._aborted: dict[int, _OngoingAborted] = {}
        # By first offset. The other fields only make an order of those that are added twice.
        self._ahead: list[tuple[int, AbortedTxn]] = []

    def add_aborted_transactions(self, transactions: Iterable[AbortedTxn]) -> None:
        """
        Add transactions that were aborted; harmless if they are known and not over yet.
        """
        for txn in transactions:
            heappush(self._ahead, (txn.first_offset, txn))

    def on_control_batch_read(self, batch: RecordBatch) -> bool:
        """
        Note a control batch; return whether its transaction had no data.

        Raises:
            InvalidRecord: its record is no control record.
        """
        self._begin_up_to(batch.last_offset)
        record = next(batch.records(most_headers=0), None)
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
        End the aborted transaction of a producer; return whether one of its batches was met.
        """
        ongoing = self._aborted.pop(producer_id, None)
        if ongoing is None or not ongoing.observed:
            return False
        if self.cleaned_index is not None:
            self.cleaned_index.append(ongoing.txn)
        return True

    def on_batch_read(self, batch: RecordBatch) -> bool:
        """
        Note a batch of data; return whether it belongs to an aborted transaction.
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
