"""
The plan of the cleaner for a compacted log.

``plan_cleaning`` makes it, as in a running broker. Beside it are the part of the log in which each
segment is, and the delete horizons of tombstones and markers.
"""

from __future__ import annotations

from enum import Enum

from barnabas.protocol.records.batch import HEADER_SIZE, MAGIC, MAGIC_AT, read_batch
from barnabas.protocol.structs import struct
from barnabas.storage.cleaner.cleanable import CleanableLog, CleaningPlan, plan_cleaning
from barnabas.storage.explain.logs import ReadOnlyLog
from barnabas.storage.segment.segment import LogSegment


class LogPart(Enum):
    """
    The parts of a compacted log.
    """

    CLEAN = "clean"
    CLEANABLE = "cleanable"
    UNCLEANABLE = "uncleanable"
    ACTIVE = "active"


@struct
class Cleaning:
    """
    The plan for a log at one time.
    """

    plan: CleaningPlan[LogSegment]
    parts: dict[int, LogPart]
    """The part of each segment, by base offset. One with the first dirty offset is cleanable."""
    due_ms: int | None
    """The time at which ``max.compaction.lag.ms`` makes it due; None if never."""


def cleaning_of(opened: ReadOnlyLog, now_ms: int) -> Cleaning | None:
    """
    None if the log is not compacted.
    """
    log = opened.log
    if not log.config.compact:
        return None
    segments = log.segments.values()
    state = CleanableLog(segments, log.log_start_offset, log.last_stable_offset, log.log_end_offset)
    plan = plan_cleaning(state, log.config, opened.cleaner_checkpoint, now_ms)
    cleanable = {segment.base_offset for segment in plan.cleanable_segments}
    parts = {}
    for segment in segments:
        base = segment.base_offset
        if segment is log.active_segment:
            parts[base] = LogPart.ACTIVE
        elif base in cleanable:
            parts[base] = LogPart.CLEANABLE
        else:
            is_clean = base < plan.first_dirty.offset
            parts[base] = LogPart.CLEAN if is_clean else LogPart.UNCLEANABLE
    earliest = plan.delay.earliest_timestamp
    due_ms = None if earliest is None else earliest + plan.delay.max_lag_ms + 1
    return Cleaning(plan, parts, due_ms)


@struct
class Horizons:
    """
    The batches of a segment with a delete horizon for tombstones or markers.
    """

    batches: int
    earliest_ms: int | None
    latest_ms: int | None
    passed: int
    """The number of horizons that are not in the future."""


def horizons_in(segment: LogSegment, now_ms: int) -> Horizons:
    """
    Raises:
        CorruptRecord: the bytes at the position of a batch are not a batch.
    """
    found = []
    for header in segment.log.headers():
        data = segment.log.slice(header.position, min(header.size, HEADER_SIZE)).read()
        if data[MAGIC_AT] == MAGIC:
            horizon = read_batch(memoryview(data)).delete_horizon_ms
            if horizon is not None:
                found.append(horizon)
    passed = sum(horizon <= now_ms for horizon in found)
    return Horizons(len(found), min(found, default=None), max(found, default=None), passed)
