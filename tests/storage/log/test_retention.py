from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.storage.config.log_config import LogConfig
from barnabas.storage.log.retention import (
    UNLIMITED,
    Decision,
    LogState,
    Reason,
    RetentionRule,
    bytes_missing,
    decide,
    expires_ms,
    plan,
    rules_of,
)

NOW = 1_000_000


@dataclass(frozen=True)
class Segment:
    """
    A segment of which only the numbers are there.
    """

    base_offset: int
    size: int = 1000
    timestamp: int = 0

    def largest_timestamp(self) -> int:
        return self.timestamp


def state(
    *segments: Segment, start: int = 0, end: int = 50, high_watermark: int | None = None
) -> LogState[Segment]:
    return LogState(segments, start, end if high_watermark is None else high_watermark, end)


def five(**options: Any) -> LogState[Segment]:
    """
    Five segments of ten records and 1000 bytes; their ages are 50, 40, 30, 20 and 10 ms.
    """
    return state(*[Segment(10 * at, timestamp=NOW - 50 + 10 * at) for at in range(5)], **options)


def bases(decision: Decision[Segment]) -> list[int]:
    return [segment.base_offset for segment in decision.deletable]


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        (("delete",), list(RetentionRule)),
        (("compact", "delete"), list(RetentionRule)),
        (("compact",), [RetentionRule.LOG_START_OFFSET]),
        ((), [RetentionRule.LOG_START_OFFSET]),
    ],
)
def test_cleanup_policy_determines_the_retention_rules(
    policy: tuple[str, ...], expected: list[RetentionRule]
) -> None:
    assert expected == list(rules_of(LogConfig(cleanup_policy=policy)))


@pytest.mark.parametrize(
    ("start", "expected"),
    [(0, []), (9, []), (10, [0]), (11, [0]), (20, [0, 10]), (50, [0, 10, 20, 30])],
)
def test_segments_below_the_log_start_offset_are_deletable_except_the_last(
    start: int, expected: list[int]
) -> None:
    decision = decide(RetentionRule.LOG_START_OFFSET, five(start=start), LogConfig(), NOW)

    assert expected == bases(decision)
    assert start == decision.limit == decision.measure
    stopped = decision.stopped_by
    assert stopped is not None
    assert (Reason.WITHIN_LIMIT, stopped.end_offset) == (stopped.reason, stopped.value)


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        (5001, []),
        (5000, []),
        (4001, []),
        (4000, [0]),
        (2500, [0, 10]),
        (1, [0, 10, 20, 30]),
        (0, [0, 10, 20, 30, 40]),
        (-1, []),
        (-9, []),
    ],
)
def test_segments_are_deletable_while_the_log_stays_at_retention_bytes(
    limit: int, expected: list[int]
) -> None:
    decision = decide(RetentionRule.RETENTION_BYTES, five(), LogConfig(retention_bytes=limit), NOW)

    assert expected == bases(decision)
    assert (5000, max(limit, UNLIMITED)) == (decision.measure, decision.limit)
    verdicts = decision.verdicts
    if limit >= 0:
        assert [4000, 3000, 2000, 1000, 0][: len(verdicts)] == [each.value for each in verdicts]


@pytest.mark.parametrize(
    ("limit", "expected"), [(50, []), (49, [0]), (30, [0, 10]), (0, [0, 10, 20, 30, 40]), (-1, [])]
)
def test_segment_older_than_retention_ms_is_deletable(limit: int, expected: list[int]) -> None:
    decision = decide(RetentionRule.RETENTION_MS, five(), LogConfig(retention_ms=limit), NOW)

    assert expected == bases(decision)
    assert (NOW, limit == 0 or limit < 0) == (decision.measure, decision.stopped_by is None)
    verdicts = decision.verdicts
    if limit >= 0:
        assert [50, 40, 30, 20, 10][: len(verdicts)] == [each.value for each in verdicts]
        assert [10, 20, 30, 40, 50][: len(verdicts)] == [each.end_offset for each in verdicts]


def test_future_timestamp_keeps_its_segment_and_all_later_ones() -> None:
    segments = Segment(0, timestamp=1), Segment(10, timestamp=NOW + 1), Segment(20, timestamp=1)

    decision = decide(RetentionRule.RETENTION_MS, state(*segments), LogConfig(retention_ms=5), NOW)

    assert [0] == bases(decision)
    stopped = decision.stopped_by
    assert stopped is not None
    assert (Reason.IN_THE_FUTURE, -1) == (stopped.reason, stopped.value)


@pytest.mark.parametrize("rule", [RetentionRule.RETENTION_BYTES, RetentionRule.RETENTION_MS])
@pytest.mark.parametrize(
    ("high_watermark", "expected"), [(9, []), (10, [0]), (49, [0, 10, 20, 30])]
)
def test_segment_that_reaches_beyond_the_high_watermark_is_kept(
    rule: RetentionRule, high_watermark: int, expected: list[int]
) -> None:
    config = LogConfig(retention_bytes=0, retention_ms=0)

    decision = decide(rule, five(high_watermark=high_watermark), config, NOW)

    assert expected == bases(decision)
    stopped = decision.stopped_by
    assert stopped is not None
    assert (Reason.ABOVE_HIGH_WATERMARK, None) == (stopped.reason, stopped.value)


@pytest.mark.parametrize("rule", [RetentionRule.RETENTION_BYTES, RetentionRule.RETENTION_MS])
def test_empty_last_segment_is_kept(rule: RetentionRule) -> None:
    log = state(Segment(0), Segment(50, size=0))

    decision = decide(rule, log, LogConfig(retention_bytes=0, retention_ms=0), NOW)

    assert [0] == bases(decision)
    stopped = decision.stopped_by
    assert stopped is not None
    assert stopped.reason is Reason.LAST_AND_EMPTY


@pytest.mark.parametrize("rule", list(RetentionRule))
def test_log_of_one_empty_segment_is_kept(rule: RetentionRule) -> None:
    log = state(Segment(0, size=0), end=0)

    assert [] == bases(decide(rule, log, LogConfig(retention_bytes=0, retention_ms=0), NOW))


def test_later_retention_rule_sees_what_the_earlier_ones_left() -> None:
    config = LogConfig(retention_bytes=3000, retention_ms=25)

    start, size, age = plan(five(start=10), config, NOW)

    assert [0] == bases(start)
    assert (4000, [10]) == (size.measure, bases(size))
    assert [20] == bases(age)


@given(
    st.lists(st.tuples(st.integers(0, 500), st.integers(-5, NOW + 5)), min_size=1, max_size=8),
    st.integers(-1, 3000),
    st.integers(-1, NOW),
    st.integers(0, 90),
    st.integers(0, 90),
)
def test_retention_deletes_a_prefix_below_the_high_watermark(
    sizes: list[tuple[int, int]], size: int, age: int, start: int, high_watermark: int
) -> None:
    segments = [Segment(10 * at, *numbers) for at, numbers in enumerate(sizes)]
    log = LogState(segments, start, high_watermark, 10 * len(segments))
    config = LogConfig(retention_bytes=size, retention_ms=age)

    gone = [segment for decision in plan(log, config, NOW) for segment in decision.deletable]

    assert segments[: len(gone)] == gone
    assert 10 * len(gone) <= high_watermark or not gone


@given(
    times=st.lists(st.integers(0, 2_000_000), min_size=1, max_size=5),
    retention_ms=st.integers(0, 1_000_000),
)
def test_segment_is_deletable_exactly_from_its_due_time(
    times: list[int], retention_ms: int
) -> None:
    """
    The due time is the latest of its own and those of older segments.
    """
    config = LogConfig(retention_ms=retention_ms)
    log = state(*[Segment(10 * at, timestamp=time) for at, time in enumerate(times)])

    for number in range(1, len(times) + 1):
        expires = [expires_ms(config, time) for time in times[:number]]
        due = max(time for time in expires if time is not None)
        assert len(bases(decide(RetentionRule.RETENTION_MS, log, config, due - 1))) < number
        assert len(bases(decide(RetentionRule.RETENTION_MS, log, config, due))) >= number


@pytest.mark.parametrize(
    "config", [LogConfig(retention_ms=-1), LogConfig(cleanup_policy=("compact",))]
)
def test_segment_that_never_expires_has_no_due_time(config: LogConfig) -> None:
    assert expires_ms(config, NOW) is None


@given(
    sizes=st.lists(st.integers(1, 100), min_size=2, max_size=5),
    retention_bytes=st.integers(0, 600),
    data=st.data(),
)
def test_segment_is_deletable_once_the_log_grew_by_the_missing_bytes(
    sizes: list[int], retention_bytes: int, data: st.DataObject
) -> None:
    config = LogConfig(retention_bytes=retention_bytes)
    number = data.draw(st.integers(1, len(sizes) - 1))

    missing = bytes_missing(config, sum(sizes[number:]))

    def gone_after(growth: int) -> int:
        grown = [*sizes[:-1], sizes[-1] + growth]
        log = state(*[Segment(10 * at, size) for at, size in enumerate(grown)])
        return len(bases(decide(RetentionRule.RETENTION_BYTES, log, config, NOW)))

    assert missing is not None
    assert gone_after(missing) >= number
    assert missing == 0 or gone_after(missing - 1) < number


@pytest.mark.parametrize(
    "config", [LogConfig(), LogConfig(retention_bytes=1, cleanup_policy=("compact",))]
)
def test_log_without_size_limit_has_no_missing_bytes(config: LogConfig) -> None:
    assert bytes_missing(config, 10) is None
