from __future__ import annotations

import tracemalloc
from typing import Any, Final

import pytest

from barnabas.server.security.quotas import counters
from barnabas.server.security.quotas.limits import DEFAULT, Entity, QuotaLimits
from barnabas.server.security.quotas.quotas import MutationQuotas, RateQuotas
from barnabas.server.security.quotas.rate import Rate, Windows, rounded_ms
from barnabas.storage.units import INT_MAX
from barnabas.testing.manual_clock import ManualClock
from tests.support.limits import stated

WINDOWS: Final = Windows(11, 1000)
START: Final = 1_700_000_000_000
SEED: Final = 20_261_125

# Rates


def test_throttle_time_fits_its_field() -> None:
    rate = Rate(WINDOWS, START)
    rate.record(1e30, START)

    assert INT_MAX == rate.throttle_ms(1e-3, START)
    assert [0, 1, 1, 2] == [rounded_ms(value) for value in (0.49, 0.5, 1.49, 1.5)]


# Which quota


@pytest.mark.parametrize(
    ("entity", "limit"),
    [((None, DEFAULT), None), ((None, "c"), None), (("u", DEFAULT), None), (("u", None), 7.0)],
)
def test_client_without_an_id_has_the_quota_of_its_user_only(
    entity: Entity, limit: float | None
) -> None:
    limits = QuotaLimits()
    limits.change(entity, 7.0)

    assert limit == limits.limit_of(limits.share_of("u", ""))


# Counters


def quotas(*changes: tuple[Entity, float], **options: Any) -> RateQuotas:
    made = RateQuotas(WINDOWS, **options)
    for entity, value in changes:
        made.change(entity, value)
    return made


def test_throttle_time_may_be_limited() -> None:
    made = quotas((("u", None), 100.0), longest_ms=1000)

    assert 1000 == made.record("u", "a", 10**6, START)


def test_client_without_a_quota_has_no_counter() -> None:
    made = quotas((("u", None), 100.0))

    for number in range(100):
        made.record("v", str(number), 10, START)

    assert 0 == len(made)


def test_idle_counters_are_evicted_when_others_are_added() -> None:
    made = quotas(((None, DEFAULT), 100.0))
    for number in range(100):
        made.record("u", f"a{number}", 10, START)

    for number in range(50):
        made.record("u", f"b{number}", 10, START + WINDOWS.span_ms)

    assert 50 == len(made)


def test_counter_limit_matches_the_documentation() -> None:
    assert stated("quota-counters") == counters.MOST_COUNTERS
    tracemalloc.start()
    try:
        made = quotas(((None, DEFAULT), 100.0))
        before, _ = tracemalloc.get_traced_memory()
        for second in range(2 * WINDOWS.num):
            for number in range(200):
                made.record("u", str(number), 1, START + 1000 * second)
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert (after - before) / 200 < 1200


def test_number_of_counters_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counters, "MOST_COUNTERS", 10)
    made = quotas(((None, DEFAULT), 100.0))
    made.record("u", "busy", 2000, START)

    for number in range(1000):
        made.record("u", f"x{number}", 10, START + number)
        waits = made.record("u", "busy", 0, START + number)
        assert waits
        assert len(made) <= 10


# Mutations


def mutations(clock: ManualClock, limit: float = 1.0) -> MutationQuotas:
    made = MutationQuotas(Windows(2, 1000), clock)
    made.change(("u", None), limit)
    return made


def test_client_without_a_mutation_quota_is_not_counted() -> None:
    assert None is mutations(ManualClock()).of("v", "c", is_strict=True)


def test_full_token_buckets_are_evicted_when_others_are_added() -> None:
    clock = ManualClock(START)
    made = MutationQuotas(Windows(2, 1000), clock)
    made.change((None, DEFAULT), 1.0)

    def charge(name: str, count: int) -> None:
        quota = made.of("u", name, is_strict=True)
        assert quota is not None
        quota.charge(count)

    charge("deep", 10)
    charge("a", 1)
    clock.advance(5.0)
    charge("b", 1)
    assert 3 == len(made), "the oldest one is still below zero"
    clock.advance(5.0)
    charge("c", 1)

    assert 2 == len(made)
