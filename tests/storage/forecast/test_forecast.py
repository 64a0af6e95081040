from __future__ import annotations

from math import inf
from typing import Final

from barnabas.storage.forecast.commits import CommitHistory
from barnabas.storage.forecast.deletions import Deletion, LogOutlook
from barnabas.storage.forecast.forecast import Forecast, ForecastVerdict, forecast
from barnabas.storage.log.retention import RetentionRule

HOUR: Final = 3_600_000
NOW: Final = 100 * HOUR
BY_TIME: Final = RetentionRule.RETENTION_MS


def log(*in_hours: float, start: int = 0, end: int | None = None) -> LogOutlook:
    """
    Segments of 100 records and 1,000 bytes, and when each is deleted.
    """
    bases = range(0, 100 * len(in_hours), 100)
    deletions = [
        Deletion(base, base + 100, 1000, NOW + hours * HOUR, None if hours == inf else BY_TIME)
        for base, hours in zip(bases, in_hours, strict=True)
    ]
    return LogOutlook(start, 100 * len(in_hours) if end is None else end, deletions)


def group(offset: int, per_hour: int = 0) -> CommitHistory:
    """
    One that has just committed *offset*, or has stood still for long.
    """
    if not per_hour:
        return CommitHistory(offset, 0)
    commits = CommitHistory(offset - per_hour, NOW - HOUR)
    commits.add(offset, NOW, log_start_offset=-per_hour)
    return commits


def foreseen(commits: CommitHistory, seen: LogOutlook) -> Forecast:
    return forecast(commits, seen, now_ms=NOW, seen_ms=NOW)


def test_unread_records_of_a_deleted_segment_are_lost() -> None:
    """
    150 records in three hours; the first half of each segment is read in time.
    """
    found = foreseen(group(0, 50), log(1, 3, inf))

    assert ForecastVerdict.LOSS is found.verdict
    assert found.loss is not None
    assert (50, 50, 500) == found.loss[:3]
    assert (NOW + HOUR, NOW + HOUR) == (found.loss.begins_ms, found.loss.ends_ms)
    assert NOW + 2 * HOUR == found.loss.reaches_ms
    assert NOW + 5 * HOUR == found.reaches_end_ms


def test_losses_of_several_segments_add_up() -> None:
    found = foreseen(group(0, 50), log(1, 2, 2, 3))

    assert found.loss is not None
    assert (50, 50 + 50 + 100 + 50, 2500) == found.loss[:3]
    assert NOW + 3 * HOUR == found.loss.ends_ms


def test_group_that_stands_still_loses_everything_that_is_deleted() -> None:
    found = foreseen(group(130), log(1, 2, 3, inf))

    assert found.loss is not None
    assert (130, 170, 1700) == found.loss[:3]
    assert (inf, None) == (found.loss.reaches_ms, found.reaches_end_ms)
    assert found.next_deletion is not None
    assert 100 == found.next_deletion.base_offset


def test_group_that_is_fast_enough_loses_nothing() -> None:
    found = foreseen(group(0, 100), log(1, 2, 3))

    assert (ForecastVerdict.IN_TIME, None) == (found.verdict, found.loss)
    assert NOW + 3 * HOUR == found.reaches_end_ms


def test_group_at_or_above_the_log_end_offset_has_no_unread_records() -> None:
    for offset in (200, 500):
        found = foreseen(group(offset), log(0, 0))
        assert (ForecastVerdict.NOTHING_UNREAD, None) == (found.verdict, found.loss)
        assert (0, offset) == (found.unread, found.position)


def test_unread_records_that_are_retained_are_not_lost() -> None:
    assert ForecastVerdict.NEVER_DELETED is foreseen(group(150), log(1, inf)).verdict


def test_single_commit_forecasts_only_when_its_segment_is_deleted() -> None:
    found = foreseen(CommitHistory(150, NOW), log(1, 2, 3))

    assert ForecastVerdict.UNKNOWN is found.verdict
    assert (None, None) == (found.loss, found.reaches_end_ms)
    assert found.next_deletion is not None
    assert NOW + 2 * HOUR == found.next_deletion.time_ms


def test_group_below_the_log_start_offset_continues_from_there() -> None:
    found = foreseen(group(20), log(1, 2, start=150))

    assert (150, 130, 50) == (found.position, found.already_deleted, found.unread)
    assert found.loss is not None
    assert (150, 50) == found.loss[:2]


def test_records_above_the_high_watermark_do_not_count() -> None:
    found = foreseen(group(20), log(1, 2, end=150))

    assert found.loss is not None
    assert (130, 20, 130) == (found.unread, *found.loss[:2])


def test_group_does_not_move_beyond_the_log_end_offset() -> None:
    commits = group(150, 100)
    found = forecast(commits, log(1, 2), now_ms=NOW + HOUR, seen_ms=NOW + HOUR)

    assert (200, ForecastVerdict.NOTHING_UNREAD) == (found.position, found.verdict)
