from __future__ import annotations

from math import inf
from typing import Any, Final, NamedTuple

import pytest

from barnabas.storage.config.log_config import LogConfig
from barnabas.storage.forecast.deletions import Checks, bytes_per_ms, checks_of, outlook
from barnabas.storage.log.retention import LogState, RetentionRule
from barnabas.storage.units import LONG_MAX

HOUR: Final = 3_600_000
NOW: Final = 100 * HOUR
CHECKED: Final = Checks(1)


class Segment(NamedTuple):
    """
    A segment of 100 records.
    """

    base_offset: int
    size: int
    first_ms: int
    last_ms: int

    def largest_timestamp(self) -> int:
        return self.last_ms

    def first_batch_timestamp(self) -> int:
        return self.first_ms


def log(*last_hours: float, size: int = 1000) -> list[Segment]:
    """
    Segments of *size* bytes whose latest records are of so many hours before now.
    """
    segments = []
    first_ms = round(NOW - (last_hours[0] + 1) * HOUR)
    for number, hours in enumerate(last_hours):
        last_ms = round(NOW - hours * HOUR)
        segments.append(Segment(100 * number, size, first_ms, last_ms))
        first_ms = last_ms
    return segments


def hours(
    segments: list[Segment], checks: Checks = CHECKED, *, seen_ms: int = NOW, **options: Any
) -> list[float]:
    """
    In how many hours each of them is deleted.
    """
    config = LogConfig(**{"internal_segment_bytes": 1000, "segment_ms": 10**15, **options})
    end = 100 * len(segments)
    state = LogState(segments, 0, end, end)
    found = outlook(state, config, checks, now_ms=NOW, seen_ms=seen_ms).deletions
    return [round((each.time_ms - NOW) / HOUR, 2) for each in found]


@pytest.mark.parametrize(
    ("last_hours", "expected"),
    [((3, 2, 1), [1, 2]), ((1, 2, 0), [3, 3]), ((3, 2), [1, 2])],
    ids=["in order", "a late timestamp keeps later segments", "idle producers do not roll"],
)
def test_latest_record_of_a_segment_decides_its_deletion_by_age(
    last_hours: tuple[float, ...], expected: list[float]
) -> None:
    assert expected == hours(log(*last_hours), retention_ms=4 * HOUR)[:2]


def test_active_segment_takes_records_until_it_is_full_or_older_than_segment_ms() -> None:
    """
    It has 500 of 1,000 bytes, and 1,500 bytes an hour arrive.
    """
    segments = [*log(3, 2, 1, 0.5), Segment(400, 500, NOW - HOUR // 2, NOW)]

    assert [1, 2, 3, 3.5, 4.33] == hours(segments, retention_ms=4 * HOUR)
    assert 4.1 == hours(segments, retention_ms=4 * HOUR, segment_ms=round(0.6 * HOUR))[-1]


def test_expired_active_segment_takes_no_more_records() -> None:
    """
    Producers continue, but the next retention check comes first, for example after a downtime.
    """
    segments = log(8, 7, 6)

    assert [0, 0, 0] == hours(segments, retention_ms=5 * HOUR, seen_ms=NOW - 6 * HOUR)
    assert [0, 0, 7] == hours(segments, retention_ms=7 * HOUR, seen_ms=NOW - 6 * HOUR)


def test_size_based_deletion_waits_until_producers_have_written_the_missing_bytes() -> None:
    """
    1,000 bytes an hour: a segment is deleted once 3,000 bytes follow it.
    """
    segments = [*log(3, 2, 1, 0), Segment(400, 0, LONG_MAX, NOW)]

    assert [0, 1, 2, 3, 4] == hours(segments, retention_ms=-1, retention_bytes=3000)


def test_idle_producers_write_no_bytes() -> None:
    assert [0, inf] == hours(log(9, 5, size=4000), retention_ms=-1, retention_bytes=4000)


def test_earlier_of_time_and_size_retention_decides() -> None:
    segments = log(3, 2, 1, 0)
    both: dict[str, Any] = {"retention_ms": 6 * HOUR, "retention_bytes": 3000}
    config = LogConfig(internal_segment_bytes=1000, **both)
    found = outlook(LogState(segments, 0, 400, 400), config, CHECKED, now_ms=NOW, seen_ms=NOW)

    assert [0, 1, 2, 3] == hours(segments, **both)
    assert {RetentionRule.RETENTION_BYTES} == {each.rule for each in found.deletions}


def test_size_retention_deletes_a_segment_that_a_future_timestamp_keeps() -> None:
    segments = [Segment(0, 1000, NOW, NOW + 90 * HOUR), *log(3, 2, 1, 0)[1:]]

    assert [94, 94, 94] == hours(segments, retention_ms=4 * HOUR)[:3]
    assert [1, 2, 3] == hours(segments, retention_ms=4 * HOUR, retention_bytes=4000)[:3]


@pytest.mark.parametrize(
    "options",
    [
        {"cleanup_policy": ("compact",), "retention_ms": 1},
        {"retention_ms": -1},
        {"cleanup_policy": (), "retention_bytes": 1},
    ],
)
def test_nothing_is_deleted_without_retention_limits(options: dict[str, Any]) -> None:
    assert [inf, inf] == hours(log(3, 0), **options)


def test_segments_are_deleted_at_retention_checks_only() -> None:
    segments = log(3, 2, 1, 0)
    known = Checks(HOUR, NOW + HOUR // 2)

    assert [1.5, 2.5] == hours(segments, known, retention_ms=4 * HOUR)[:2]
    assert [0.5] == hours(segments, known, retention_ms=HOUR)[:1]
    assert [inf] == hours(segments, Checks(None), retention_ms=HOUR)[:1]


def test_cleaner_interval_applies_to_compacted_logs() -> None:
    both, every = LogConfig(cleanup_policy=("compact", "delete")), Checks(300_000, 5)

    assert every == checks_of(LogConfig(), every, cleaner_backoff_ms=None)
    assert Checks(15_000) == checks_of(both, every, cleaner_backoff_ms=15_000)
    assert Checks(None) == checks_of(both, every, cleaner_backoff_ms=None)


def test_rate_comes_from_the_newest_segments_that_cover_an_hour() -> None:
    slowly, quickly = log(90, 60, 30, 1), log(1, 0.5, 0.25, 0, size=4000)[1:]

    assert pytest.approx(12_000 / HOUR) == bytes_per_ms([*slowly, *quickly], NOW)


def test_rate_is_unknown_without_timestamps() -> None:
    assert 0.0 == bytes_per_ms([Segment(0, 1000, LONG_MAX, NOW)], NOW)
