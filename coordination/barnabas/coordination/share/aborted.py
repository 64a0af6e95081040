"""
Records of aborted transactions, which a group that reads committed ones does not get.

A consumer leaves them out by itself; of a share group the broker does (Kafka
``SharePartition.filterAbortedTransactionalAcquiredRecords``): they are archived.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from barnabas.coordination.share.record_state import RecordState
from barnabas.coordination.share.window import ShareWindow
from barnabas.protocol.messages.share_fetch import AcquiredRecords
from barnabas.storage.segment.fetch_data import AbortedTransaction
from barnabas.storage.segment.fetched_batches import FetchedBatch


def aborted_batches(
    batches: Iterable[FetchedBatch], transactions: Iterable[AbortedTransaction]
) -> Iterator[FetchedBatch]:
    """
    Those of the *batches* that belong to one of the *transactions*.
    """
    waiting = sorted(transactions, key=lambda each: each.first_offset, reverse=True)
    aborted: set[int] = set()
    for batch in batches:
        producer_id = batch.producer_id
        if producer_id < 0:
            continue
        while waiting and waiting[-1].first_offset <= batch.last_offset:
            aborted.add(waiting.pop().producer_id)
        if batch.is_abort_marker:
            aborted.discard(producer_id)
        elif batch.is_transactional and producer_id in aborted:
            yield batch


def without_aborted(
    window: ShareWindow, acquired: Sequence[AcquiredRecords], aborted: Iterable[FetchedBatch]
) -> list[AcquiredRecords]:
    """
    Archive what was acquired of *aborted* batches; return what is left of *acquired*.
    """
    left = list(acquired)
    for batch in aborted:
        first, last = batch.base_offset, batch.last_offset
        start = max(0, window.floor_index(first))
        window.delivery_complete_count += window.archive(
            window.batches[start:], first, last, RecordState.ACQUIRED
        )
        left = [part for each in left for part in _outside(each, first, last)]
    return left


def _outside(acquired: AcquiredRecords, first: int, last: int) -> Iterator[AcquiredRecords]:
    """
    The parts of *acquired* before and after these offsets.
    """
    if acquired.last_offset < first or last < acquired.first_offset:
        yield acquired
        return
    parts = (
        (acquired.first_offset, min(acquired.last_offset, first - 1)),
        (max(acquired.first_offset, last + 1), acquired.last_offset),
    )
    for start, end in parts:
        if start <= end:
            yield AcquiredRecords(
                first_offset=start, last_offset=end, delivery_count=acquired.delivery_count
            )
