"""
What the cleaner would do with a compacted log.

The plan is made by ``cleaning_plan``, as in a running broker. Beside it: what of each segment the
cleaner has seen, and the horizons that let tombstones and markers go.
"""

from __future__ import annotations

from enum import Enum

from barnabas.protocol.structs import struct
from barnabas.storage.cleaner.plan import CleanableLog, CleaningPlan, plan_cleaning
from barnabas.storage.explain.known import BrokerTimes
from barnabas.storage.explain.looking import LookedAt
from barnabas.storage.segment.segment import LogSegment


class Part(Enum):
    """
    In which part of a compacted log a segment is.
    """

    CLEAN = "clean"
    CLEANABLE = "cleanable"
    UNCLEANABLE = "uncleanable"
    ACTIVE = "active"


@struct
class Cleaning:
    """
    What the cleaner makes of a log at a moment.
    """

    plan: CleaningPlan[LogSegment]
    times: BrokerTimes
    parts: dict[int, Part]
    """Of the segments, by base offset. Where the dirty part begins in one, that is cleanable."""
    due_ms: int | None
    """When ``max.compaction.lag.ms`` makes it due, however little is dirty; None if never."""


def cleaning_of(looked_at: LookedAt, times: BrokerTimes, now_ms: int) -> Cleaning | None:
    """
    None if the log is not compacted.
    """
    log = looked_at.log
    if not log.config.compact:
        return None
    segments = log.segments.values()
    state = CleanableLog(segments, log.log_start_offset, log.last_stable_offset, log.log_end_offset)
    plan = plan_cleaning(state, log.config, looked_at.cleaner_checkpoint, now_ms)
    cleanable = {segment.base_offset for segment in plan.cleanable_segments}
    parts = {}
    for segment in segments:
        base = segment.base_offset
        if segment is log.active_segment:
            parts[base] = Part.ACTIVE
        elif base in cleanable:
            parts[base] = Part.CLEANABLE
        else:
            is_clean = base < plan.first_dirty.offset
            parts[base] = Part.CLEAN if is_clean else Part.UNCLEANABLE
    earliest = plan.delay.earliest_timestamp
    due_ms = None if earliest is None else earliest + plan.delay.max_lag_ms + 1
    return Cleaning(plan, times, parts, due_ms)


@struct
class Horizons:
    """
    The batches of a segment that a cleaning may free of tombstones or markers.
    """

    batches: int
    earliest_ms: int | None
    latest_ms: int | None
    passed: int
    """Of those, how many horizons are not in the future."""


def horizons_in(segment: LogSegment, now_ms: int) -> Horizons:
    """
    Raises:
        CorruptRecord: there is no batch where one should begin.
    """
    found = [
        batch.delete_horizon_ms
        for batch in segment.log.batches()
        if batch.delete_horizon_ms is not None
    ]
    passed = sum(horizon <= now_ms for horizon in found)
    return Horizons(len(found), min(found, default=None), max(found, default=None), passed)
