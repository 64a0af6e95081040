"""
When a segment leaves, by which rule, and what keeps it until then.

::

    its records are old enough     due_ms            from then on retention.ms lets it go
    a check finds that             check interval    its records cannot be read any more
    its files are removed          file.delete.delay.ms later

The rules are those of ``retention``. A check may come at any moment from the first of these on, and
does come within an interval: that is the difference between the earliest and the latest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from barnabas.protocol.named_tuple import NamedTuple
from barnabas.protocol.structs import replace, struct
from barnabas.storage.config.log_config import LogConfig
from barnabas.storage.explain.endings import Ending
from barnabas.storage.explain.known import BrokerTimes
from barnabas.storage.log.log import Log
from barnabas.storage.log.retention import (
    Decision,
    LogState,
    Reason,
    RetentionRule,
    SegmentVerdict,
    bytes_missing,
    expires_ms,
    plan,
)
from barnabas.storage.segment.segment import LogSegment


class Window(NamedTuple):
    """
    When something happens at the earliest and at the latest, in ms. None: nothing says when.
    """

    earliest_ms: int | None
    latest_ms: int | None


NEVER = Window(None, None)


@struct
class Stance:
    """
    What one rule says of one segment.
    """

    rule: RetentionRule
    limit: int
    reason: Reason | None
    """None if the rule is switched off, or did not get that far."""
    value: int | None
    stopped_at: int | None
    """The base offset of the older segment that has to stay, and this one with it."""


@struct(kw_only=True)
class SegmentLifetime:
    """
    How long a segment stays, as far as that can be told.

    It is supposed that a broker is running on the directory and that settings stay as they are.
    """

    base_offset: int
    end_offset: int
    log_start_offset: int
    goes_by: RetentionRule | None
    """What lets it go at the next check."""
    stances: tuple[Stance, ...]
    is_empty: bool
    is_active: bool
    largest_timestamp: int
    has_timestamps: bool
    """If not, the largest timestamp is the time of the file."""
    due_ms: int | None
    """From when on ``retention.ms`` lets it go as it is now; None if never."""
    due_with: int
    """The base offset of the segment that this depends on: itself, or an older one."""
    latest_due_ms: int | None
    """The same if records keep coming as long as they may: later for the active segment only."""
    bytes_missing: int | None
    """By how much the log must grow until ``retention.bytes`` lets it go; None if never."""
    check_interval_ms: int | None
    """None if nobody looks: the log is compacted, and the cleaner switched off."""
    file_delete_delay_ms: int
    unreadable: Window
    removed: Window


def departures(
    log: Log, endings: Sequence[Ending], times: BrokerTimes, now_ms: int
) -> list[SegmentLifetime]:
    """
    Of all segments, oldest first.

    Args:
        endings: of the segments.
        now_ms: the moment that counts as now.
    """
    config = log.config
    segments = log.segments.values()
    state = LogState(segments, log.log_start_offset, log.high_watermark, log.log_end_offset)
    decisions = plan(state, config, now_ms)
    verdicts = [
        {verdict.segment.base_offset: verdict for verdict in decision.verdicts}
        for decision in decisions
    ]
    interval = check_interval_ms(config, times)
    sizes = [segment.size for segment in segments]
    due_with, latest = segments[0], segments[0].largest_timestamp()
    found = []
    for number, (segment, ending) in enumerate(zip(segments, endings, strict=True), 1):
        largest = segment.largest_timestamp()
        if largest > latest:
            due_with, latest = segment, largest
        is_active = number == len(segments)
        stances = tuple(
            _stance(decision, by_base, segment)
            for decision, by_base in zip(decisions, verdicts, strict=True)
        )
        end = log.log_end_offset if is_active else segments[number].base_offset
        departure = SegmentLifetime(
            base_offset=segment.base_offset,
            end_offset=end,
            log_start_offset=log.log_start_offset,
            goes_by=_goes_by(stances),
            stances=stances,
            is_empty=segment.size == 0,
            is_active=is_active,
            largest_timestamp=largest,
            has_timestamps=segment.largest_record_timestamp() is not None,
            due_ms=expires_ms(config, latest),
            due_with=due_with.base_offset,
            latest_due_ms=_latest_due_ms(config, latest, ending),
            bytes_missing=bytes_missing(config, sizes, number),
            check_interval_ms=interval,
            file_delete_delay_ms=config.file_delete_delay_ms,
            unreadable=NEVER,
            removed=NEVER,
        )
        found.append(_with_windows(departure, now_ms))
    return found


def check_interval_ms(config: LogConfig, times: BrokerTimes) -> int | None:
    """
    How often somebody looks at the retention of a log; None for never.

    Of compacted logs the cleaner does, between two rests (Kafka's LogCleaner).
    """
    if not config.compact:
        return times.retention_check_interval_ms
    return times.cleaner_backoff_ms if times.cleaner_enabled else None


def _goes_by(stances: Sequence[Stance]) -> RetentionRule | None:
    return next((stance.rule for stance in stances if stance.reason is Reason.BREACHED), None)


def _latest_due_ms(config: LogConfig, latest_ms: int, ending: Ending) -> int | None:
    """
    When a segment expires at the latest: one that records are appended to takes later ones, up to
    that which rolls it.
    """
    room = ending.room
    if room is None:
        return expires_ms(config, latest_ms)
    if room.latest_timestamp is None:
        return None
    return expires_ms(config, max(latest_ms, room.latest_timestamp))


def _stance(
    decision: Decision[LogSegment],
    verdicts: Mapping[int, SegmentVerdict[LogSegment]],
    segment: LogSegment,
) -> Stance:
    verdict = verdicts.get(segment.base_offset)
    if verdict is not None:
        return Stance(decision.rule, decision.limit, verdict.reason, verdict.value, None)
    stopped = decision.stopped_by
    earlier = stopped is not None and stopped.segment.base_offset < segment.base_offset
    at = stopped.segment.base_offset if stopped is not None and earlier else None
    return Stance(decision.rule, decision.limit, None, None, at)


def _with_windows(departure: SegmentLifetime, now_ms: int) -> SegmentLifetime:
    interval = departure.check_interval_ms
    held = any(
        stance.reason in (Reason.ABOVE_HIGH_WATERMARK, Reason.LAST_AND_EMPTY)
        for stance in departure.stances
    )
    if departure.goes_by is not None:
        due: int = now_ms
        latest_due: int | None = now_ms
    elif departure.due_ms is None or held or (departure.is_empty and departure.is_active):
        return departure
    else:
        due, latest_due = max(now_ms, departure.due_ms), departure.latest_due_ms
    if interval is None:
        return departure
    delay = departure.file_delete_delay_ms
    latest = None if latest_due is None else max(now_ms, latest_due) + interval
    latest_removed = None if latest is None else latest + delay
    return replace(
        departure,
        unreadable=Window(due, latest),
        removed=Window(due + delay, latest_removed),
    )
