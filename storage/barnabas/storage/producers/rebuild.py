"""
Rebuilding the state of a log's producers from its records.

This happens at a start and after a truncation: the newest snapshot that is not too new is loaded,
and the records behind it are added. On the way snapshots are written at the base of the last two
segments, where recovery begins after a crash.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from barnabas.protocol.records.batch import RecordBatch
from barnabas.storage.clock import Clock
from barnabas.storage.index.txn_index import CompletedTxn
from barnabas.storage.producers.append import ProducerAppendInfo
from barnabas.storage.producers.append_origin import AppendOrigin
from barnabas.storage.producers.state import ProducerStateManager
from barnabas.storage.segment.segment import LogSegment
from barnabas.storage.segment.segments import LogSegments


def rebuild_producer_state(
    state: ProducerStateManager,
    segments: LogSegments,
    log_start_offset: int,
    last_offset: int,
    *,
    clock: Clock,
    reload_from_clean_shutdown: bool = False,
) -> None:
    """
    Bring *state* to that of *last_offset*, which is the offset behind the last record.

    Args:
        reload_from_clean_shutdown: a clean stop writes a snapshot. So if there is none, there were
            no producers, and the records are not read.
    """
    offsets_to_snapshot = _bases_of_last_two(segments)
    if reload_from_clean_shutdown and state.snapshots.latest_offset is None:
        for offset in (*offsets_to_snapshot, last_offset):
            state.map_end_offset = offset
            state.take_snapshot()
        return
    # Truncating a state without producers leaves it without: the records are not read again.
    was_empty = state.is_empty and state.map_end_offset >= last_offset
    state.truncate_and_reload(log_start_offset, last_offset, clock.now_ms())
    if last_offset > state.map_end_offset and not was_empty:
        for segment in segments.values_between(state.map_end_offset, last_offset):
            start = max(segment.base_offset, state.map_end_offset, log_start_offset)
            state.map_end_offset = start
            if segment.base_offset in offsets_to_snapshot:
                state.take_snapshot()
            _load_producers(state, _batches(segment, start, last_offset))
    state.map_end_offset = last_offset
    state.take_snapshot()


def _bases_of_last_two(segments: LogSegments) -> tuple[int, ...]:
    last = segments.last_segment
    if last is None:
        return ()
    lower = segments.lower_segment(last.base_offset)
    return (last.base_offset,) if lower is None else (lower.base_offset, last.base_offset)


def _batches(segment: LogSegment, start: int, end: int) -> Iterator[RecordBatch]:
    """
    The batches that hold offsets from *start* on, but none that holds *end* or a later one.
    """
    first = segment.translate_offset(start)
    if first is None:
        return
    for batch in segment.log.batches(first.position):
        if batch.last_offset >= end:
            return
        yield batch


def _load_producers(state: ProducerStateManager, batches: Iterable[RecordBatch]) -> None:
    loaded: dict[int, ProducerAppendInfo] = {}
    completed: list[CompletedTxn] = []
    for batch in batches:
        if batch.has_producer_id:
            txn = state.add_to_append(loaded, batch, origin=AppendOrigin.REPLICATION)
            if txn is not None:
                completed.append(txn)
    for append_info in loaded.values():
        state.update(append_info)
    for txn in completed:
        state.complete_txn(txn)
