"""
Which segments of a log may be deleted, and why the others stay.

::

    rule               of a log whose policy has    a segment may be deleted if
    log start offset   anything, or nothing         all of it is below the log's start
    retention.bytes    delete                       the log without it is not smaller than that
    retention.ms       delete                       its latest record is older than that

Each rule walks from the oldest segment on and ends at the first that has to stay, whatever comes
behind it. No rule deletes a segment that reaches beyond the high watermark, or an empty one that is
the last. A last one with records may be deleted; the log then begins a new one.

These are pure functions, which retention and ``explain`` share (Kafka's
UnifiedLog.deleteOldSegments).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from typing import Generic, Protocol, TypeVar

from barnabas.protocol.structs import NamedTuple, struct
from barnabas.storage.config.log_config import LogConfig

UNLIMITED = -1


class RetainedSegment(Protocol):
    """
    The facts of a segment that the rules use.
    """

    @property
    def base_offset(self) -> int: ...

    @property
    def size(self) -> int: ...

    def largest_timestamp(self) -> int: ...


class DatedSegment(RetainedSegment, Protocol):
    """
    The facts of a segment that the cleaner and the forecast use, too.
    """

    def first_batch_timestamp(self) -> int: ...


S = TypeVar("S", bound=RetainedSegment)


class RetentionRule(Enum):
    """
    A limit by which segments are deleted.
    """

    LOG_START_OFFSET = "log start offset"
    RETENTION_BYTES = "retention.bytes"
    RETENTION_MS = "retention.ms"


class Reason(Enum):
    """
    Why a segment may be deleted, or has to stay.
    """

    BREACHED = "the rule lets it go"
    WITHIN_LIMIT = "the rule keeps it"
    IN_THE_FUTURE = "its latest record is later than now, so that it is not old"
    ABOVE_HIGH_WATERMARK = "it reaches beyond the high watermark"
    LAST_AND_EMPTY = "it is the last one, and empty"


class LogState(NamedTuple, Generic[S]):
    """
    The facts of a log that the rules use: its segments, oldest first, and its offsets.
    """

    segments: Sequence[S]
    log_start_offset: int
    high_watermark: int
    log_end_offset: int


@struct
class SegmentVerdict(Generic[S]):
    """
    The result of one rule for one segment.
    """

    segment: S
    reason: Reason
    end_offset: int
    """The base of the next segment, or the end of the log."""
    value: int | None
    """
    The value that is compared with the limit: the offset behind the segment, the bytes of the log
    without it, or the age of its latest record in ms. None if nothing was compared.
    """

    @property
    def deletable(self) -> bool:
        return self.reason is Reason.BREACHED


@struct
class Decision(Generic[S]):
    """
    The result of one rule for a log.

    Invariants:

    1. ``verdicts`` are those of the oldest segments, in their order.
    2. All are deletable except perhaps the last one, at which the walk has ended.
    """

    rule: RetentionRule
    limit: int
    """The log start offset, or the option's value; ``UNLIMITED`` switches the rule off."""
    measure: int
    """The log start offset, the bytes of the log, or the time of the decision in ms."""
    verdicts: tuple[SegmentVerdict[S], ...]

    @property
    def deletable(self) -> list[S]:
        """
        The segments that may be deleted, oldest first.
        """
        return [verdict.segment for verdict in self.verdicts if verdict.deletable]

    @property
    def stopped_by(self) -> SegmentVerdict[S] | None:
        """
        Why the next segment stays; None if there is none, or the rule did not look.
        """
        last = self.verdicts[-1] if self.verdicts else None
        return None if last is None or last.deletable else last


Judge = Callable[[S, int, bool], tuple[Reason, int | None]]
"""
Maps a segment, the offset behind it, and whether it is the last to a reason and the value for it.
"""


def rules_of(config: LogConfig) -> tuple[RetentionRule, ...]:
    """
    The rules for the logs of a topic, in their order.
    """
    return tuple(RetentionRule) if config.delete else (RetentionRule.LOG_START_OFFSET,)


def decide(rule: RetentionRule, state: LogState[S], config: LogConfig, now_ms: int) -> Decision[S]:
    """
    Let one rule walk along the segments.
    """
    judge: Judge[S]
    if rule is RetentionRule.LOG_START_OFFSET:
        limit = measure = state.log_start_offset
        judge = _by_log_start_offset(limit)
    elif rule is RetentionRule.RETENTION_BYTES:
        limit = max(config.retention_bytes, UNLIMITED)
        measure = sum(segment.size for segment in state.segments)
        judge = _by_size(measure, limit)
    else:
        limit, measure = config.retention_ms, now_ms
        judge = _by_time(now_ms, limit)
    applies = limit != UNLIMITED and (rule is not RetentionRule.RETENTION_BYTES or measure >= limit)
    verdicts = tuple(_walk(state, judge)) if applies else ()
    return Decision(rule, limit, measure, verdicts)


def _walk(state: LogState[S], judge: Judge[S]) -> Iterator[SegmentVerdict[S]]:
    segments = state.segments
    for number, segment in enumerate(segments, 1):
        is_last = number == len(segments)
        end = state.log_end_offset if is_last else segments[number].base_offset
        value: int | None = None
        if state.high_watermark < end:
            reason = Reason.ABOVE_HIGH_WATERMARK
        else:
            reason, value = judge(segment, end, is_last)
            if is_last and segment.size == 0 and reason is Reason.BREACHED:
                reason = Reason.LAST_AND_EMPTY
        verdict = SegmentVerdict(segment, reason, end, value)
        yield verdict
        if not verdict.deletable:
            return


def _by_log_start_offset(limit: int) -> Judge[S]:
    def judge(_segment: S, end: int, is_last: bool) -> tuple[Reason, int]:
        # The last segment has no end that is known to stay.
        breached = not is_last and end <= limit
        return Reason.BREACHED if breached else Reason.WITHIN_LIMIT, end

    return judge


def _by_size(log_size: int, limit: int) -> Judge[S]:
    left = log_size

    def judge(segment: S, _end: int, _is_last: bool) -> tuple[Reason, int]:
        nonlocal left
        without = left - segment.size
        if without < limit:
            return Reason.WITHIN_LIMIT, without
        left = without
        return Reason.BREACHED, without

    return judge


def _by_time(now_ms: int, limit: int) -> Judge[S]:
    def judge(segment: S, _end: int, _is_last: bool) -> tuple[Reason, int]:
        latest = segment.largest_timestamp()
        age = now_ms - latest
        if now_ms >= _expires_ms(latest, limit):
            return Reason.BREACHED, age
        return Reason.IN_THE_FUTURE if age < 0 else Reason.WITHIN_LIMIT, age

    return judge


def _expires_ms(latest_ms: int, limit: int) -> int:
    # A segment that is exactly as old as the limit stays.
    return latest_ms + limit + 1


# Forecasts.


def expires_ms(config: LogConfig, latest_ms: int) -> int | None:
    """
    The time in ms from which on ``retention.ms`` deletes a segment whose latest record is of
    *latest_ms*, together with the older ones; None if it never does.
    """
    if not config.delete or config.retention_ms == UNLIMITED:
        return None
    return _expires_ms(latest_ms, config.retention_ms)


def bytes_missing(config: LogConfig, behind: int) -> int | None:
    """
    The number of bytes by which a log must grow until ``retention.bytes`` deletes its oldest
    segments; 0 if it does already, None if it never does.

    Args:
        behind: bytes of the segments that are behind them.
    """
    if not config.delete or config.retention_bytes <= UNLIMITED:
        return None
    return max(0, config.retention_bytes - behind)


def plan(state: LogState[S], config: LogConfig, now_ms: int) -> list[Decision[S]]:
    """
    The results of all rules one after the other, each for the segments that the earlier ones leave.
    """
    decisions = []
    for rule in rules_of(config):
        decision = decide(rule, state, config, now_ms)
        decisions.append(decision)
        left = state.segments[len(decision.deletable) :]
        if len(left) < len(state.segments):
            start = left[0].base_offset if left else state.log_end_offset
            state = state._replace(
                segments=left, log_start_offset=max(state.log_start_offset, start)
            )
    return decisions
