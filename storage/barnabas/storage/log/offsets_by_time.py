"""
The offset at which a time begins.

A time index leads near the place; from there on batches, and then records, are read. The oldest
segment with a late enough timestamp decides.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

from typing import Final

from barnabas.protocol.records.batch import NO_TIMESTAMP
from barnabas.storage.log.leader_epochs import UNDEFINED_EPOCH, LeaderEpochFileCache
from barnabas.storage.segment.offset_metadata import UNKNOWN_OFFSET
from barnabas.storage.segment.records import BatchHeader, TimestampAndOffset
from barnabas.storage.segment.segment import LogSegment
from barnabas.storage.segment.segments import LogSegments

LATEST_TIMESTAMP: Final = -1
EARLIEST_TIMESTAMP: Final = -2
MAX_TIMESTAMP: Final = -3
EARLIEST_LOCAL_TIMESTAMP: Final = -4
LATEST_TIERED_TIMESTAMP: Final = -5
EARLIEST_PENDING_UPLOAD_TIMESTAMP: Final = -6
"""Values with which a ListOffsets request asks for an offset that is not that of a time."""

_NOTHING_IS_TIERED: Final = TimestampAndOffset(NO_TIMESTAMP, UNKNOWN_OFFSET, UNDEFINED_EPOCH)


def fetch_offset_by_timestamp(
    target: int,
    segments: LogSegments,
    epochs: LeaderEpochFileCache,
    *,
    log_start_offset: int,
    log_end_offset: int,
) -> TimestampAndOffset | None:
    """
    The offset that *target* asks for, a time in ms or one of the constants above (Kafka's
    UnifiedLog.fetchOffsetByTimestamp). None if no record is that late.
    """
    if target in (EARLIEST_TIMESTAMP, EARLIEST_LOCAL_TIMESTAMP):
        first = epochs.earliest_entry
        epoch = first.epoch if first and first.start_offset <= log_start_offset else None
        return TimestampAndOffset(NO_TIMESTAMP, log_start_offset, epoch)
    if target == LATEST_TIMESTAMP:
        return TimestampAndOffset(NO_TIMESTAMP, log_end_offset, epochs.latest_epoch)
    if target in (LATEST_TIERED_TIMESTAMP, EARLIEST_PENDING_UPLOAD_TIMESTAMP):
        return _NOTHING_IS_TIERED
    if target == MAX_TIMESTAMP:
        return find_max_timestamp(segments)
    return find_offset_by_timestamp(segments, target, log_start_offset)


def find_offset_by_timestamp(
    segments: LogSegments, target_timestamp: int, start_offset: int
) -> TimestampAndOffset | None:
    """
    The first record that is not older than *target_timestamp* (ms) nor below *start_offset*.

    A segment without timestamps is as new as its file.
    """
    for segment in segments.values():
        if segment.largest_timestamp() >= target_timestamp:
            return segment.find_offset_by_timestamp(target_timestamp, start_offset)
    return None


def find_max_timestamp(segments: LogSegments) -> TimestampAndOffset | None:
    """
    The first record with the largest timestamp (KIP-734).

    Segments are looked at as a whole: the record may lie below the log's start. None if the log is
    empty, or compaction has removed the record and left its batch.
    """
    latest = max(segments.values(), key=LogSegment.max_timestamp_so_far)
    timestamp, offset = latest.read_max_timestamp_and_offset_so_far()
    position = latest.offset_index.lookup(offset).position
    for header in latest.log.headers(position):
        if header.max_timestamp == timestamp:
            return _first_record(latest, header)
    return None


def _first_record(segment: LogSegment, header: BatchHeader) -> TimestampAndOffset | None:
    epoch = header.leader_epoch if header.leader_epoch >= 0 else None
    if header.max_timestamp < 0 and segment.log.batch_at(header).magic == 0:
        return None  # Its records have no time.
    for record in segment.log.outlines_at(header):
        if record.timestamp == header.max_timestamp:
            return TimestampAndOffset(record.timestamp, record.offset, epoch)
    return None
