"""
The deletion of a segment: its times, its rule, and the rules that keep it until then.

::

    its records reach retention.ms      due_ms
    a check finds that                  up to one interval later; its records can no longer be read
    its files are removed               file.delete.delay.ms later

The rules are those of ``log.retention``. The interval of the checks is the difference between the
earliest and the latest time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from barnabas.protocol.structs import NamedTuple, struct
from barnabas.storage.config.log_config import LogConfig
from barnabas.storage.explain.known import BrokerTimes
from barnabas.storage.forecast.deletions import Checks, checks_of
from barnabas.storage.log.log import Log
from barnabas.storage.log.retention import (
    Decision,
    LogState,
    Reason,
    RetentionRule,
    bytes_missing,
    expires_ms,
    plan,
)
from barnabas.storage.log.rolling import SegmentRoom
from barnabas.storage.segment.segment import LogSegment


class TimeBounds(NamedTuple):
    """
    The earliest and the latest time of an event, in ms; None if it is unknown.
    """

    earliest_ms: int | None
    latest_ms: int | None

    def later_by(self, delay_ms: int) -> TimeBounds:
        return TimeBounds(*(None if ms is None else ms + delay_ms for ms in self))


NEVER = TimeBounds(None, None)


@struct
class Stance:
    """
    The decision of one rule about one segment.
    """

    rule: RetentionRule
    limit: int
    reason: Reason | None
    """None if the rule is switched off, or has stopped at an older segment."""
    value: int | None
    stopped_at: int | None
    """The base offset of the older segment at which the rule has stopped."""


@struct(kw_only=True)
class SegmentLifetime:
    """
    The lifetime of a segment, if a broker is running and its settings do not change.
    """

    base_offset: int
    end_offset: int
    """The base offset of the next one, or the end of the log."""
    log_start_offset: int
    goes_by: RetentionRule | None
    """The rule by which the next check deletes it."""
    stances: tuple[Stance, ...]
    is_empty: bool
    is_active: bool
    largest_timestamp: int
    has_timestamps: bool
    """If not, the largest timestamp is the modification time of the file."""
    due_ms: int | None
    """The time from which on ``retention.ms`` deletes it in its present state; None if never."""
    due_with: int
    """The base offset of the segment that decides about ``due_ms``: itself, or an older one."""
    latest_due_ms: int | None
    """The same if appends continue until it is rolled: later for the active segment only."""
    bytes_missing: int | None
    """The log must grow by so much until ``retention.bytes`` deletes it; None if never."""
    check_interval_ms: int | None
    """None if there are no checks: the log is compacted, and the cleaner is switched off."""
    file_delete_delay_ms: int
    unreadable: TimeBounds
    removed: TimeBounds


def segment_lifetimes(
    log: Log, room: SegmentRoom | None, times: BrokerTimes, now_ms: int
) -> list[SegmentLifetime]:
    """
    The lifetimes of all segments, oldest first.

    Args:
        room: the room that is left in the active segment.
        now_ms: the time that counts as now.
    """
    config = log.config
    segments = log.segments.values()
    start, end = log.log_start_offset, log.log_end_offset
    state = LogState(segments, start, log.high_watermark, end)
    stances = zip(*(_stances(each, segments) for each in plan(state, config, now_ms)), strict=True)
    interval = retention_checks(config, times).interval_ms
    behind = sum(segment.size for segment in segments)
    due_with, latest = segments[0], segments[0].largest_timestamp()
    found = []
    for segment, following, about in zip(segments, (*segments[1:], None), stances, strict=True):
        size, largest = segment.size, segment.largest_timestamp()
        behind -= size
        if largest > latest:
            due_with, latest = segment, largest
        is_active = following is None
        goes_by = next((each.rule for each in about if each.reason is Reason.BREACHED), None)
        due_ms = expires_ms(config, latest)
        latest_due_ms = _latest_due_ms(config, latest, room if is_active else None)
        due = TimeBounds(due_ms, latest_due_ms)
        if goes_by is not None:
            due = TimeBounds(now_ms, now_ms)
        elif _is_held(about) or (is_active and not size):
            due = NEVER
        unreadable = _check_after(due, now_ms, interval)
        found.append(
            SegmentLifetime(
                base_offset=segment.base_offset,
                end_offset=end if following is None else following.base_offset,
                log_start_offset=start,
                goes_by=goes_by,
                stances=about,
                is_empty=not size,
                is_active=is_active,
                largest_timestamp=largest,
                has_timestamps=segment.largest_record_timestamp() is not None,
                due_ms=due_ms,
                due_with=due_with.base_offset,
                latest_due_ms=latest_due_ms,
                bytes_missing=bytes_missing(config, behind),
                check_interval_ms=interval,
                file_delete_delay_ms=config.file_delete_delay_ms,
                unreadable=unreadable,
                removed=unreadable.later_by(config.file_delete_delay_ms),
            )
        )
    return found


def retention_checks(config: LogConfig, times: BrokerTimes) -> Checks:
    """
    The retention checks of a log.
    """
    return checks_of(
        config,
        Checks(times.retention_check_interval_ms),
        cleaner_backoff_ms=times.cleaner_backoff_ms if times.cleaner_enabled else None,
    )


def _latest_due_ms(config: LogConfig, latest_ms: int, room: SegmentRoom | None) -> int | None:
    """
    The latest time at which a segment expires: the active segment takes later records until it is
    rolled.
    """
    if room is None:
        return expires_ms(config, latest_ms)
    if room.latest_timestamp is None:
        return None
    return expires_ms(config, max(latest_ms, room.latest_timestamp))


def _stances(decision: Decision[LogSegment], segments: Iterable[LogSegment]) -> Iterator[Stance]:
    """
    The decision of one rule about each segment, oldest first. The rule has looked at some in a row,
    and thinks the same of all before them, and of all behind them.
    """
    rule, limit, stopped = decision.rule, decision.limit, decision.stopped_by
    unseen = Stance(rule, limit, None, None, None)
    verdicts = {verdict.segment.base_offset: verdict for verdict in decision.verdicts}
    for segment in segments:
        verdict = verdicts.get(segment.base_offset)
        if verdict is None:
            yield unseen
            continue
        yield Stance(rule, limit, verdict.reason, verdict.value, None)
        if verdict is stopped:
            unseen = Stance(rule, limit, None, None, segment.base_offset)


def _is_held(stances: Iterable[Stance]) -> bool:
    """
    Whether a segment stays however old it is.
    """
    return any(
        stance.reason is Reason.ABOVE_HIGH_WATERMARK or stance.reason is Reason.LAST_AND_EMPTY
        for stance in stances
    )


def _check_after(due: TimeBounds, now_ms: int, interval_ms: int | None) -> TimeBounds:
    """
    The time of the check that deletes a segment which is *due*.
    """
    if interval_ms is None or due.earliest_ms is None:
        return NEVER
    latest = None if due.latest_ms is None else max(now_ms, due.latest_ms) + interval_ms
    return TimeBounds(max(now_ms, due.earliest_ms), latest)
