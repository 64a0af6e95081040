"""
The part of a compacted log that the cleaner may clean, whether it is worth it, and why.

::

    log start      first dirty          uncleanable            log end
    |--------------|--------------------|----------------------|
     clean          cleanable            too new, undecided or still growing

    ratio = cleanable bytes / (clean bytes + cleanable bytes)

A log is due if its ratio is above ``min.cleanable.dirty.ratio``, or if a record of the dirty part
is older than ``max.compaction.lag.ms``. Bytes are those of whole segments; a segment in which the
dirty part begins counts on both sides.

These are pure functions, which the cleaner and ``explain`` share (Kafka's LogCleanerManager and
LogToClean).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Generic, TypeVar

from barnabas.protocol.structs import NamedTuple, struct
from barnabas.storage.config.log_config import LogConfig
from barnabas.storage.log.retention import DatedSegment
from barnabas.storage.units import LONG_MAX

if TYPE_CHECKING:
    from barnabas.storage.log.log import Log


S = TypeVar("S", bound=DatedSegment)


class CleanableLog(NamedTuple, Generic[S]):
    """
    The facts of a log that the rules use: its segments, oldest first, and its offsets.
    """

    segments: Sequence[S]
    log_start_offset: int
    last_stable_offset: int
    log_end_offset: int

    @property
    def active_segment(self) -> S:
        return self.segments[-1]

    def between(self, start: int, end: int) -> Sequence[S]:
        """
        The segments that may hold offsets from *start* up to *end*, which itself is out.
        """
        if start >= end:
            return ()
        first = bisect_right(self.segments, start, key=_base_offset) - 1
        return self.segments[max(0, first) : bisect_left(self.segments, end, key=_base_offset)]

    def non_active_from(self, start: int) -> Sequence[S]:
        """
        The segments that may hold offsets from *start* on, but for the active one.
        """
        return self.between(start, self.active_segment.base_offset)


def _base_offset(segment: DatedSegment) -> int:
    return segment.base_offset


# Where the dirty part begins.


class DirtyOrigin(Enum):
    """
    The source of the first dirty offset.
    """

    CHECKPOINT = "the last cleaning ended there"
    NEVER_CLEANED = "the log was never cleaned, so all of it is dirty"
    BELOW_LOG_START = "the last cleaning ended below the present start of the log"
    BEYOND_LOG_END = "the last cleaning ended beyond the present end of the log"


@struct
class FirstDirty:
    """
    The offset up to which a log is clean.
    """

    offset: int
    origin: DirtyOrigin
    checkpoint: int | None
    """The checkpoint of the cleaner, if it has cleaned the log."""

    @property
    def must_be_noted(self) -> bool:
        """
        Whether the checkpoint is wrong.
        """
        return self.origin in (DirtyOrigin.BELOW_LOG_START, DirtyOrigin.BEYOND_LOG_END)


def first_dirty(log: CleanableLog[S], checkpoint: int | None) -> FirstDirty:
    """
    The first dirty offset of a log whose last cleaning ended at *checkpoint*.
    """
    start = log.log_start_offset
    if checkpoint is None:
        return FirstDirty(start, DirtyOrigin.NEVER_CLEANED, checkpoint)
    if checkpoint < start:
        return FirstDirty(start, DirtyOrigin.BELOW_LOG_START, checkpoint)
    if checkpoint > log.log_end_offset:
        # The end of the log was lost: it is not known which of its records were cleaned.
        return FirstDirty(start, DirtyOrigin.BEYOND_LOG_END, checkpoint)
    return FirstDirty(checkpoint, DirtyOrigin.CHECKPOINT, checkpoint)


# Where the cleanable part ends.


class Limit(Enum):
    """
    A limit for the end of the cleanable part.
    """

    ACTIVE_SEGMENT = "the segment that records are appended to is never cleaned"
    LAST_STABLE_OFFSET = "records from the last stable offset on are not decided yet"
    MIN_COMPACTION_LAG = "a record is not older than min.compaction.lag.ms"


@struct
class Bound(Generic[S]):
    """
    An offset that the cleaner does not go beyond.
    """

    offset: int
    limit: Limit
    segment: S | None = None
    """The segment that is too young, if the lag is the limit."""
    age_ms: int | None = None
    """The age of its latest record."""


def bounds(
    log: CleanableLog[S], first_dirty_offset: int, config: LogConfig, now_ms: int
) -> list[Bound[S]]:
    """
    All limits of the cleanable part, the lowest first: that one counts.
    """
    found: list[Bound[S]] = [
        Bound(log.active_segment.base_offset, Limit.ACTIVE_SEGMENT),
        Bound(log.last_stable_offset, Limit.LAST_STABLE_OFFSET),
        *_by_age(log, first_dirty_offset, config.min_compaction_lag_ms, now_ms),
    ]
    return sorted(found, key=lambda bound: bound.offset)


def _by_age(
    log: CleanableLog[S], first_dirty_offset: int, lag_ms: int, now_ms: int
) -> Iterator[Bound[S]]:
    if lag_ms <= 0:
        return
    for segment in log.non_active_from(first_dirty_offset):
        age_ms = now_ms - segment.largest_timestamp()
        if age_ms < lag_ms:
            yield Bound(segment.base_offset, Limit.MIN_COMPACTION_LAG, segment, age_ms)
            return


def uncleanable_offset(log: CleanableLog[S], bound: int) -> int:
    """
    *bound*, rounded down to the base of its segment: whole segments are cleaned.
    """
    following = log.non_active_from(bound)
    return following[0].base_offset if following else log.active_segment.base_offset


# Whether it is worth it.


@struct
class CompactionDelay:
    """
    The excess over ``max.compaction.lag.ms``.
    """

    max_lag_ms: int
    earliest_timestamp: int | None
    """That of the first batches of the dirty segments; None if none has one, or without a limit."""
    delay_ms: int
    """0 if it is not exceeded."""


def compaction_delay(
    log: CleanableLog[S], first_dirty_offset: int, config: LogConfig, now_ms: int
) -> CompactionDelay:
    """
    The time since which the dirty part is overdue (KIP-354).
    """
    max_lag_ms = config.max_compaction_lag_ms
    clean_until_ms = now_ms - max_lag_ms
    if clean_until_ms <= 0:
        # No timestamp is that early, so the files are not read.
        return CompactionDelay(max_lag_ms, None, 0)
    timestamps = (
        segment.first_batch_timestamp() for segment in log.non_active_from(first_dirty_offset)
    )
    earliest = min((time for time in timestamps if 0 < time < LONG_MAX), default=None)
    delay_ms = 0 if earliest is None else max(0, clean_until_ms - earliest)
    return CompactionDelay(max_lag_ms, earliest, delay_ms)


class CleaningVerdict(Enum):
    """
    Whether a log is due, and by which rule.
    """

    NOTHING_TO_CLEAN = "no segment can be cleaned"
    CLEAN_ENOUGH = "its ratio is not above min.cleanable.dirty.ratio"
    DIRTY = "its ratio is above min.cleanable.dirty.ratio"
    LAG_EXCEEDED = "a record is older than max.compaction.lag.ms"

    @property
    def is_due(self) -> bool:
        return self in (CleaningVerdict.DIRTY, CleaningVerdict.LAG_EXCEEDED)


@struct
class CleaningPlan(Generic[S]):
    """
    The part of a log that the cleaner would clean at one moment, and the facts that decide it.

    Invariants:

    1. ``bounds`` are in the order of their offsets.
    2. ``uncleanable_offset`` is the base offset of a segment.
    """

    first_dirty: FirstDirty
    bounds: Sequence[Bound[S]]
    uncleanable_offset: int
    cleanable_segments: Sequence[S]
    clean_bytes: int
    cleanable_bytes: int
    min_ratio: float
    delay: CompactionDelay

    @property
    def bound(self) -> Bound[S]:
        """
        The limit of the cleanable part.
        """
        return self.bounds[0]

    @property
    def total_bytes(self) -> int:
        return self.clean_bytes + self.cleanable_bytes

    @property
    def ratio(self) -> float:
        """
        How dirty the log is, from 0 to 1.
        """
        return self.cleanable_bytes / self.total_bytes if self.total_bytes else 0.0

    @property
    def verdict(self) -> CleaningVerdict:
        if self.cleanable_bytes == 0:
            return CleaningVerdict.NOTHING_TO_CLEAN
        if self.delay.delay_ms > 0:
            return CleaningVerdict.LAG_EXCEEDED
        return (
            CleaningVerdict.DIRTY if self.ratio > self.min_ratio else CleaningVerdict.CLEAN_ENOUGH
        )


def plan_cleaning(
    log: CleanableLog[S], config: LogConfig, checkpoint: int | None, now_ms: int
) -> CleaningPlan[S]:
    """
    The part of a log that the cleaner would clean now.

    Args:
        checkpoint: the end of its last cleaning, if there is one.

    Raises:
        KafkaStorageError: a segment whose time is needed cannot be read.
    """
    start = first_dirty(log, checkpoint)
    limits = bounds(log, start.offset, config, now_ms)
    end = uncleanable_offset(log, max(start.offset, limits[0].offset))
    clean = log.between(-1, start.offset)
    cleanable = log.between(min(start.offset, end), end)
    return CleaningPlan(
        first_dirty=start,
        bounds=limits,
        uncleanable_offset=end,
        cleanable_segments=cleanable,
        clean_bytes=sum(segment.size for segment in clean),
        cleanable_bytes=sum(segment.size for segment in cleanable),
        min_ratio=config.min_cleanable_dirty_ratio,
        delay=compaction_delay(log, start.offset, config, now_ms),
    )


# What the cleaner is asked to do.


@struct(kw_only=True)
class LogToClean:
    """
    A log, and the part of it whose keys decide which records stay (Kafka's class of that name).

    Invariants:

    1. ``uncleanable_offset`` is the base offset of a segment: whole segments are cleaned. It is
       below ``first_dirty_offset`` only if that lies in the segment which begins there.
    """

    log: Log
    first_dirty_offset: int
    """Where the last cleaning ended."""
    uncleanable_offset: int
    """Records from here on stay as they are."""
    cleanable_ratio: float = 0.0
    """How dirty the log is, from 0 to 1."""
