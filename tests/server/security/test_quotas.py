"""
Rates, quotas and what a client has to wait, without a broker.
"""

from __future__ import annotations

import math
import random
import tracemalloc
from collections.abc import Iterator
from typing import Any, Final

import pytest

from barnabas.protocol.errors import ThrottlingQuotaExceeded
from barnabas.server.security.quotas import counters
from barnabas.server.security.quotas.limits import DEFAULT, Entity, QuotaLimits, Share
from barnabas.server.security.quotas.quotas import MutationQuota, MutationQuotas, RateQuotas
from barnabas.server.security.quotas.rate import Rate, Windows, rounded_ms
from barnabas.server.security.quotas.token_bucket import TokenBucket
from barnabas.storage.units import INT_MAX
from barnabas.testing.manual_clock import ManualClock
from tests.support.limits import stated

WINDOWS: Final = Windows(11, 1000)
START: Final = 1_700_000_000_000
SEED: Final = 20_261_125

# Rates


class NaiveRate:
    """
    The same from a list of all samples, none of which is ever summed up.
    """

    def __init__(self, windows: Windows, now: int) -> None:
        self.num, self.size = windows
        self.samples = [[0.0, now, now]]
        self.at = 0

    def record(self, value: float, now: int) -> None:
        if now - self.samples[self.at][1] >= self.size:
            self.at = (self.at + 1) % (self.num + 1)
            if self.at < len(self.samples):
                self.samples[self.at] = [0.0, now, now]
            else:
                self.samples.append([0.0, now, now])
        self.samples[self.at][0] += value
        self.samples[self.at][2] = now

    def window(self, now: int) -> int:
        for sample in self.samples:
            if now - sample[2] >= self.num * self.size:
                sample[:] = [0.0, now, now]
        elapsed = now - int(min(start for _, start, _ in self.samples))
        while elapsed // self.size < self.num - 1:
            elapsed += self.size
        return max(1, elapsed)

    def per_second(self, now: int) -> float:
        window = self.window(now)
        return math.fsum(value for value, _, _ in self.samples) * 1000 / window


def random_times(chance: random.Random, size_ms: int) -> Iterator[int]:
    now = START
    for _ in range(300):
        now += round(size_ms * chance.choice((0, 0, 0.01, 0.3, 0.999, 1, 1.5, 7, 20)))
        yield now


@pytest.mark.parametrize("windows", [WINDOWS, Windows(2, 1000), Windows(1, 3000), Windows(5, 7000)])
def test_a_rate_is_that_of_all_samples(windows: Windows) -> None:
    chance = random.Random(SEED)
    rate, naive = Rate(windows, START), NaiveRate(windows, START)

    for now in random_times(chance, windows.size_ms):
        value = chance.choice((0.5, 1, 1000, -3, 10**6))
        rate.record(value, now)
        naive.record(value, now)

        assert naive.window(now) == rate.window_ms(now)
        assert rate.per_second(now) == pytest.approx(naive.per_second(now))


def test_a_quiet_client_may_use_all_windows_but_one_at_once() -> None:
    rate = Rate(WINDOWS, START)
    rate.record(10 * 100, START)

    assert 0 == rate.throttle_ms(100, START)

    rate.record(100, START)
    assert 1000 == rate.throttle_ms(100, START)


def test_after_the_wait_the_rate_is_the_limit_again() -> None:
    rate = Rate(WINDOWS, START)
    rate.record(5000, START)
    wait = rate.throttle_ms(100, START)

    assert 40_000 == wait
    assert 0 == rate.throttle_ms(100, START + wait)


def test_what_is_taken_back_does_not_count() -> None:
    rate = Rate(WINDOWS, START)
    rate.record(5000, START)
    rate.record(-5000, START + 900)

    assert 0.0 == rate.per_second(START + 900)


@pytest.mark.parametrize("limit", [1000.0, 0.01, 33.3])
def test_a_client_that_waits_as_told_keeps_to_the_limit(limit: float) -> None:
    chance = random.Random(SEED)
    rate, now, used = Rate(WINDOWS, START), START, 0.0
    burst = limit * (WINDOWS.num - 1) * WINDOWS.size_ms / 1000

    while now < START + 3_600_000:
        value = limit * chance.choice((0.1, 0.5, 1, 2))
        used += value
        rate.record(value, now)
        now += rate.throttle_ms(limit, now) + chance.randrange(20)

    seconds = (now - START) / 1000
    assert 0.95 * limit * seconds < used <= 1.05 * limit * seconds + burst


def test_a_wait_has_a_place_on_the_wire() -> None:
    rate = Rate(WINDOWS, START)
    rate.record(1e30, START)

    assert INT_MAX == rate.throttle_ms(1e-3, START)
    assert [0, 1, 1, 2] == [rounded_ms(value) for value in (0.49, 0.5, 1.49, 1.5)]


# Tokens


def test_a_bucket_begins_full_and_may_go_below_zero_once() -> None:
    bucket = TokenBucket(WINDOWS, 2.0, START)
    assert 22.0 == bucket.tokens(2.0, START)

    bucket.take(30, 2.0, START)

    assert 4000 == bucket.throttle_ms(2.0, START)
    assert 0 == bucket.throttle_ms(2.0, START + 4000)
    assert 22.0 == bucket.tokens(2.0, START + 100_000)


def test_tokens_are_those_of_a_step_by_step_refill() -> None:
    chance = random.Random(SEED)
    windows, limit = Windows(3, 1000), 5.0
    bucket, tokens, last = TokenBucket(windows, limit, START), 15.0, START

    for now in random_times(chance, 1000):
        for _ in range(min(now - last, 20_000)):
            tokens = min(15.0, tokens + limit / 1000)
        last = now
        count = chance.choice((1, 3, 20))
        bucket.take(count, limit, now)
        tokens -= count

        assert bucket.tokens(limit, now) == pytest.approx(tokens)


# Which quota


def naive_share(there: dict[Entity, float], user: str, client: str) -> tuple[Share, float | None]:
    order: list[tuple[Entity, Share]] = [
        ((user, client), (user, client)),
        ((user, DEFAULT), (user, client)),
        ((user, None), (user, DEFAULT)),
        ((DEFAULT, client), (user, client)),
        ((DEFAULT, DEFAULT), (user, client)),
        ((DEFAULT, None), (user, DEFAULT)),
        ((None, client), (DEFAULT, client)),
        ((None, DEFAULT), (DEFAULT, client)),
    ]
    for entity, share in order:
        if entity in there:
            return share, there[entity]
    return (DEFAULT, client), None


def test_the_first_quota_that_is_there_decides() -> None:
    """
    Each combination of quotas, with the one that Kafka's order says.
    """
    users, clients = ("u", "v"), ("c", "d")
    every: list[Entity] = [
        (user, client) for user in ("u", DEFAULT, None) for client in ("c", DEFAULT, None)
    ]
    every.remove((None, None))
    for bits in range(1 << len(every)):
        there = {entity: 1.0 + i for i, entity in enumerate(every) if bits >> i & 1}
        limits = QuotaLimits()
        for entity, value in there.items():
            limits.change(entity, value)
        for user in users:
            for client in clients:
                share = limits.share_of(user, client)
                expected, limit = naive_share(there, user, client)
                assert limit == limits.limit_of(share)
                assert limit is None or expected == share, (there, user, client)


@pytest.mark.parametrize(
    ("entity", "limit"),
    [((None, DEFAULT), None), ((None, "c"), None), (("u", DEFAULT), None), (("u", None), 7.0)],
)
def test_a_client_without_an_id_has_the_quota_of_its_user_only(
    entity: Entity, limit: float | None
) -> None:
    limits = QuotaLimits()
    limits.change(entity, 7.0)

    assert limit == limits.limit_of(limits.share_of("u", ""))


def test_quotas_are_gone_when_they_are_removed() -> None:
    limits = QuotaLimits()
    limits.change(("u", None), 7.0)
    assert limits

    limits.change(("u", None), None)

    assert not limits
    assert None is limits.limit_of(limits.share_of("u", "c"))


# Counters


def quotas(*changes: tuple[Entity, float], **options: Any) -> RateQuotas:
    made = RateQuotas(WINDOWS, **options)
    for entity, value in changes:
        made.change(entity, value)
    return made


def test_a_user_has_one_counter_for_all_its_client_ids() -> None:
    made = quotas((("u", None), 100.0))

    assert 0 == made.record("u", "a", 1000, START)
    assert 1000 == made.record("u", "b", 100, START)
    assert 0 == made.record("v", "b", 10**9, START)


def test_each_client_id_has_a_counter_of_the_default() -> None:
    made = quotas(((None, DEFAULT), 100.0))

    assert 10_000 == made.record("u", "a", 2000, START)
    assert 0 == made.record("u", "b", 1000, START)
    assert 10_000 == made.record("v", "b", 1000, START)


def test_a_new_value_counts_for_what_was_recorded_before() -> None:
    made = quotas((("u", None), 100.0))
    made.record("u", "a", 2000, START)

    made.change(("u", None), 200.0)
    assert 0 == made.record("u", "a", 0, START)

    made.change(("u", None), None)
    assert 0 == made.record("u", "a", 10**9, START)
    assert 0 == len(made)


def test_a_wait_may_have_a_limit() -> None:
    made = quotas((("u", None), 100.0), longest_ms=1000)

    assert 1000 == made.record("u", "a", 10**6, START)


def test_what_a_quiet_client_may_use_at_once() -> None:
    made = quotas((("u", None), 100.0))

    assert 1000.0 == made.most_at_once("u", "a")
    assert None is made.most_at_once("v", "a")


def test_a_client_without_a_quota_has_no_counter() -> None:
    made = quotas((("u", None), 100.0))

    for number in range(100):
        made.record("v", str(number), 10, START)

    assert 0 == len(made)


def test_idle_counters_go_when_others_come() -> None:
    made = quotas(((None, DEFAULT), 100.0))
    for number in range(100):
        made.record("u", f"a{number}", 10, START)

    for number in range(50):
        made.record("u", f"b{number}", 10, START + WINDOWS.span_ms)

    assert 50 == len(made)


def test_the_bound_of_the_page() -> None:
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


def test_there_is_a_bound_on_counters(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Of too many the one that was idle for longest goes.
    """
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


def quota_of(made: MutationQuotas, *, is_strict: bool) -> MutationQuota:
    quota = made.of("u", "c", is_strict=is_strict)
    assert quota is not None
    return quota


def test_a_strict_request_is_taken_while_there_are_tokens() -> None:
    clock = ManualClock(START)
    made = mutations(clock)
    quota = quota_of(made, is_strict=True)

    quota.charge(5)
    assert 0 == quota.throttle_ms()
    with pytest.raises(ThrottlingQuotaExceeded):
        quota.charge(1)

    assert 3000 == quota.throttle_ms()
    clock.advance(1.0)
    assert 2000 == quota.throttle_ms()
    clock.advance(2.0)
    quota_of(made, is_strict=True).charge(1)


def test_an_old_request_is_taken_and_told_to_wait() -> None:
    clock = ManualClock(START)
    made = mutations(clock)
    quota = quota_of(made, is_strict=False)

    quota.charge(5)
    quota.charge(1)

    assert 4000 == quota.throttle_ms()


def test_a_client_without_a_quota_is_not_counted() -> None:
    assert None is mutations(ManualClock()).of("v", "c", is_strict=True)


def test_full_buckets_go_when_others_come() -> None:
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
