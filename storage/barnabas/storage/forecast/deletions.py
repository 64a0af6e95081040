"""
When retention deletes each segment of a log, if producers go on as they did.

::

    retention.ms      the latest record of the segment, or of an older one, is as old as that
    retention.bytes   as many bytes were appended as are missing, at the rate of production
    the active one    ends when it is full or ``segment.ms`` old; its latest record is of that time
    a check           comes next at a time that a running broker knows

``log.retention`` decides; this is its decision at later times.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil, inf
from typing import Final, TypeVar

from barnabas.protocol.structs import NamedTuple, struct
from barnabas.storage.config.log_config import LogConfig
from barnabas.storage.log.retention import (
    DatedSegment,
    LogState,
    RetentionRule,
    bytes_missing,
    expires_ms,
)
from barnabas.storage.units import HOURS, LONG_MAX

RATE_MS: Final = HOURS
"""
The rate of production is that of the newest segments that took at least so long.
"""


S = TypeVar("S", bound=DatedSegment)


class Checks(NamedTuple):
    """
    The checks of retention.
    """

    interval_ms: int | None
    """None if there are none."""
    next_ms: int | None = None
    """None if it is not known; then a check is supposed to come as soon as a segment is due."""

    def first_from(self, due_ms: float) -> float:
        """
        The time in ms of the first check that is not before *due_ms*; infinite if there is none.
        """
        if self.interval_ms is None:
            return inf
        if self.next_ms is None or due_ms == inf:
            return due_ms
        return self.next_ms + max(0, ceil((due_ms - self.next_ms) / self.interval_ms)) * (
            self.interval_ms
        )


def checks_of(config: LogConfig, every: Checks, *, cleaner_backoff_ms: int | None) -> Checks:
    """
    The checks of a log; of a compacted one the cleaner makes them, between two cleanings (Kafka's
    LogCleaner).

    Args:
        every: the checks of all other logs.
        cleaner_backoff_ms: None if the cleaner is switched off.
    """
    return Checks(cleaner_backoff_ms) if config.compact else every


class Deletion(NamedTuple):
    """
    The deletion of a segment: its offsets and bytes, the time, and the rule.
    """

    base_offset: int
    end_offset: int
    size: int
    time_ms: float
    """Infinite if nothing deletes it."""
    rule: RetentionRule | None


@struct
class LogOutlook:
    """
    What a log has, and when it loses it.

    Invariants:

    1. The deletions are in the order of their offsets, and of their times.
    """

    log_start_offset: int
    high_watermark: int
    deletions: Sequence[Deletion]


def outlook(
    state: LogState[S], config: LogConfig, checks: Checks, *, now_ms: int, seen_ms: int
) -> LogOutlook:
    """
    Args:
        now_ms: the time from which the broker is supposed to run.
        seen_ms: the time up to which appends would have been seen.
    """
    rate = bytes_per_ms(state.segments, seen_ms)
    found = tuple(_deletions(state, config, checks, now_ms, rate))
    return LogOutlook(state.log_start_offset, state.high_watermark, found)


def bytes_per_ms(segments: Sequence[S], seen_ms: int) -> float:
    """
    The rate of production, by the timestamps of records. It is 0 once producers have been idle for
    longer than ``RATE_MS``, and for half of the time that is looked at.
    """
    size, since_ms = 0, seen_ms
    for number in range(len(segments) - 1, -1, -1):
        size += segments[number].size
        if number:
            since_ms = segments[number - 1].largest_timestamp()
        else:
            # Without a timestamp there it is in the far future.
            since_ms = segments[0].first_batch_timestamp()
        if seen_ms - since_ms >= RATE_MS:
            break
    took_ms = seen_ms - since_ms
    written = (segment for segment in reversed(segments) if segment.size)
    last_ms = next((segment.largest_timestamp() for segment in written), 0)
    if took_ms <= 0 or seen_ms - last_ms > max(RATE_MS, took_ms / 2):
        return 0.0
    return size / took_ms


def _deletions(
    state: LogState[S], config: LogConfig, checks: Checks, now_ms: int, rate: float
) -> Iterator[Deletion]:
    segments = state.segments
    behind = sum(segment.size for segment in segments)
    due_ms: float = 0
    for number, segment in enumerate(segments, 1):
        is_active = number == len(segments)
        behind -= segment.size
        expiry = expires_ms(config, segment.largest_timestamp())
        missing, from_ms = bytes_missing(config, behind), float(now_ms)
        if is_active and rate and (expiry is None or expiry > now_ms):
            # It takes later records until it ends, and bytes count behind it.
            ends_ms = _end_of_active(segment, config, now_ms, rate)
            expiry = expires_ms(config, round(ends_ms))
            from_ms = ends_ms if missing else now_ms
        by_time = inf if expiry is None else max(due_ms, expiry)
        by_size = inf if missing is None else from_ms + _over(missing, rate)
        due_ms = min(by_time, by_size)
        rule = RetentionRule.RETENTION_BYTES if by_size <= by_time else RetentionRule.RETENTION_MS
        time_ms = checks.first_from(max(due_ms, now_ms))
        end = state.log_end_offset if is_active else segments[number].base_offset
        yield Deletion(
            segment.base_offset, end, segment.size, time_ms, None if time_ms == inf else rule
        )


def _end_of_active(segment: S, config: LogConfig, now_ms: int, rate: float) -> float:
    """
    When the active segment ends, in ms.
    """
    full_ms = now_ms + _over(max(0, config.segment_size - segment.size), rate)
    first_ms = segment.first_batch_timestamp()
    old_ms = inf if first_ms == LONG_MAX else first_ms + config.max_segment_ms
    return max(now_ms, min(full_ms, old_ms))


def _over(size: int, rate: float) -> float:
    return size / rate if rate else (inf if size else 0.0)
