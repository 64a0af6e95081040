"""
The lookup of a record: by its offset as in a Fetch, or by a time as in ListOffsets.

The steps are those of ``LogSegment.translate_offset`` and ``find_offset_by_timestamp``, one by one
with the same indexes and the same scans of the file, so that each can be explained.
"""

from __future__ import annotations

from bisect import bisect_left

from barnabas.protocol.structs import struct
from barnabas.storage.index.offset_index import OffsetIndex, OffsetPosition
from barnabas.storage.index.time_index import TimeIndex, TimestampOffset
from barnabas.storage.log.log import Log
from barnabas.storage.segment.records import TimestampAndOffset
from barnabas.storage.segment.segment import LogSegment


@struct
class IndexStep:
    """
    A lookup in the offset index.
    """

    target_offset: int
    entries: int
    slot: int | None
    """The number of the entry, from 0 on; None if all entries are above the target."""
    offset: int
    position: int
    """The position in the file at which the scan begins."""


@struct
class TimeStep:
    """
    A lookup in the time index.
    """

    entries: int
    slot: int | None
    timestamp: int
    offset: int


@struct
class OffsetPath:
    """
    The steps to the batch that has an offset, or else to the next batch.
    """

    offset: int
    segment: LogSegment
    passed: tuple[LogSegment, ...]
    """Segments in the range of the offset from which compaction has removed it and all above it."""
    index: IndexStep
    scanned_batches: int
    """The number of headers that were read, that of the batch included."""
    batch_base_offset: int
    position: int
    size: int


@struct
class TimePath:
    """
    The steps to the first record that is not older than a time.
    """

    timestamp: int
    passed_segments: int
    """The number of segments in front, all of whose records are older."""
    segment: LogSegment
    time: TimeStep
    index: IndexStep
    scanned_batches: int
    found: TimestampAndOffset | None


def find_offset(log: Log, offset: int) -> OffsetPath | None:
    """
    None if the log has no batch at *offset* or behind it.

    Raises:
        CorruptRecord: the bytes at the position of a batch are not a batch.
    """
    passed: list[LogSegment] = []
    segment = log.segments.floor_segment(offset)
    while segment is not None:
        step = _look_up(segment, offset)
        found = segment.log.search_for_offset_from_position(offset, step.position)
        if found is not None:
            scanned = _batches_between(segment, step.position, found.position)
            return OffsetPath(offset, segment, tuple(passed), step, scanned, *found)
        passed.append(segment)
        segment = log.segments.higher_segment(segment.base_offset)
    return None


def find_time(log: Log, timestamp: int) -> TimePath | None:
    """
    None if all records are older.

    Raises: as ``find_offset``.
    """
    start = log.log_start_offset
    for passed, segment in enumerate(log.segments.values()):
        if segment.largest_timestamp() < timestamp:
            continue
        time = _look_up_time(segment, timestamp)
        step = _look_up(segment, max(time.offset, start))
        found = segment.log.search_for_timestamp(timestamp, step.position, start)
        where = None if found is None else segment.translate_offset(found.offset)
        scanned = 0 if where is None else _batches_between(segment, step.position, where.position)
        return TimePath(timestamp, passed, segment, time, step, scanned, found)
    return None


def _look_up(segment: LogSegment, offset: int) -> IndexStep:
    index = segment.offset_index
    found = index.lookup(offset)
    return IndexStep(offset, index.entries, _slot_of(index, found), *found)


def _look_up_time(segment: LogSegment, timestamp: int) -> TimeStep:
    index = segment.time_index
    found = index.lookup(timestamp)
    return TimeStep(index.entries, _slot_of(index, found), *found)


def _slot_of(index: OffsetIndex | TimeIndex, found: OffsetPosition | TimestampOffset) -> int | None:
    """
    The number of the entry *found*. A lookup without a result returns no entry of the index.
    """
    entries = index.entries
    slot = bisect_left(range(entries), found[0], key=lambda at: index.entry(at)[0])
    return slot if slot < entries and index.entry(slot) == found else None


def _batches_between(segment: LogSegment, start: int, last: int) -> int:
    count = 0
    for header in segment.log.headers(start):
        count += 1
        if header.position >= last:
            break
    return count
