from __future__ import annotations

import threading

import pytest

from barnabas.storage.cleaner.throttler import Throttler
from tests.support.clock import StillClock


class RestingClock(StillClock):
    def __init__(self) -> None:
        super().__init__()
        self.rests: list[float] = []

    def wait(self, event: threading.Event, seconds: float) -> bool:
        self.rests.append(seconds)
        if not event.is_set():
            self.advance(round(seconds * 1000))
        return event.is_set()


EVENT = threading.Event()


@pytest.mark.parametrize(("rate", "size"), [(1000, 500), (-1, 10**12)])
def test_throttler_does_not_sleep_below_its_rate_or_without_one(rate: int, size: int) -> None:
    clock = RestingClock()
    throttler = Throttler(rate, clock)

    for _ in range(10):
        clock.advance(500)
        throttler.throttle(size, EVENT)

    assert [] == clock.rests


def test_throttler_sleeps_until_the_rate_is_met() -> None:
    clock = RestingClock()
    throttler = Throttler(1000, clock)

    throttler.throttle(1000, EVENT)
    assert [] == clock.rests
    clock.advance(400)
    throttler.throttle(1000, EVENT)

    assert [pytest.approx(1.6)] == clock.rests


def test_throttler_holds_the_rate_apart_from_work_between_two_checks() -> None:
    clock = RestingClock()
    throttler = Throttler(10_000, clock)

    for _ in range(1000):
        clock.advance(1)
        throttler.throttle(512, EVENT)

    ahead = 512_000 - 10_000 * clock.monotonic()
    assert 0 <= ahead <= 512 * 301


def test_throttler_sleep_blocks_all_threads() -> None:
    clock = StillClock()
    throttler = Throttler(1000, clock)
    clock.advance(500)

    assert 1.5 == pytest.approx(throttler._note(2000))
    clock.advance(500)
    assert 1.0 == pytest.approx(throttler._note(100))


def test_throttle_rate_of_0_blocks_until_the_event_is_set() -> None:
    clock = RestingClock()
    clock.rests = []
    throttler = Throttler(0, clock)
    clock.advance(500)
    woken = threading.Event()
    woken.set()

    throttler.throttle(1, woken)

    assert [float("inf")] == clock.rests
