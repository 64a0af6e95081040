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


Judged = tuple[Reason, int, int | None]


def judged(rule: RetentionRule, log: LogState[Segment], limit: int) -> list[Judged]:
    """
    The reason, end offset and compared value of each segment up to the first that stays.
    """
    found: list[Judged] = []
    for number, segment in enumerate(log.segments, 1):
        later = log.segments[number:]
        end = later[0].base_offset if later else log.log_end_offset
        value, is_breached = {
            RetentionRule.LOG_START_OFFSET: (end, bool(later) and end <= limit),
            RetentionRule.RETENTION_BYTES: (rest := sum(s.size for s in later), rest >= limit),
            RetentionRule.RETENTION_MS: (age := NOW - segment.timestamp, age > limit),
        }[rule]
        reason = Reason.BREACHED if is_breached else Reason.WITHIN_LIMIT
        if is_breached and not later and not segment.size:
            reason = Reason.LAST_AND_EMPTY
        elif rule is RetentionRule.RETENTION_MS and age < 0:
            reason = Reason.IN_THE_FUTURE
        if end > log.high_watermark:
            found.append((Reason.ABOVE_HIGH_WATERMARK, end, None))
        else:
            found.append((reason, end, value))
        if found[-1][0] is not Reason.BREACHED:
            break
    return found


@pytest.mark.parametrize("rule", RetentionRule)
@given(
    numbers=st.lists(
        st.tuples(st.integers(0, 3), st.integers(NOW - 4, NOW + 2)), min_size=1, max_size=5
    ),
    option=st.integers(-2, 12),
    start=st.integers(0, 55),
    high_watermark=st.integers(0, 55),
)
def test_each_retention_rule_agrees_with_a_plain_walk(
    rule: RetentionRule,
    numbers: list[tuple[int, int]],
    option: int,
    start: int,
    high_watermark: int,
) -> None:
    segments = [Segment(10 * at, *each) for at, each in enumerate(numbers)]
    log = LogState(segments, start, high_watermark, 10 * len(segments))
    option = max(option, UNLIMITED) if rule is RetentionRule.RETENTION_MS else option
    size = sum(segment.size for segment in segments)
    limit, measure = {
        RetentionRule.LOG_START_OFFSET: (start, start),
        RetentionRule.RETENTION_BYTES: (max(option, UNLIMITED), size),
        RetentionRule.RETENTION_MS: (option, NOW),
    }[rule]
    is_off = limit == UNLIMITED or (rule is RetentionRule.RETENTION_BYTES and size < limit)
    expected = [] if is_off else judged(rule, log, limit)

    config = LogConfig(retention_bytes=option, retention_ms=max(option, UNLIMITED))
    decision = decide(rule, log, config, NOW)

    assert expected == [(each.reason, each.end_offset, each.value) for each in decision.verdicts]
    gone = sum(reason is Reason.BREACHED for reason, _, _ in expected)
    assert segments[:gone] == decision.deletable
    assert (limit, measure) == (decision.limit, decision.measure)
    assert (len(expected) > gone) == (decision.stopped_by is not None)


def test_later_retention_rule_sees_what_the_earlier_ones_left() -> None:
    config = LogConfig(retention_bytes=3000, retention_ms=25)

    start, size, age = plan(five(start=10), config, NOW)

    assert [0] == bases(start)
    assert (4000, [10]) == (size.measure, bases(size))
    assert [20] == bases(age)


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
