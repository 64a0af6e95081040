from __future__ import annotations

import asyncio
import threading

import pytest

from barnabas.storage.threads.background import periodic_thread
from barnabas.testing.manual_clock import MOST_POLLS, ManualClock

HOUR = 3600.0


def test_manual_clock_starts_at_the_given_time_and_stands_still() -> None:
    clock = ManualClock(start_ms=1_000)

    assert [1_000, 1_000] == [clock.now_ms(), clock.now_ms()]
    assert 0.0 == clock.monotonic()


def test_manual_clock_moves_by_the_given_time() -> None:
    clock = ManualClock(start_ms=1_000)

    clock.advance(2.5)

    assert 3_500 == clock.now_ms()
    assert 2.5 == clock.monotonic()


def test_callbacks_run_in_order_at_their_time() -> None:
    clock = ManualClock()
    seen: list[tuple[str, float]] = []
    for name, seconds in (("late", 3.0), ("early", 1.0), ("also early", 1.0), ("never", 9.0)):
        clock.call_later(seconds, lambda name=name: seen.append((name, clock.monotonic())))

    clock.advance(5.0)

    assert [("early", 1.0), ("also early", 1.0), ("late", 3.0)] == seen
    assert 5.0 == clock.monotonic()


def test_callback_may_schedule_another_one_within_the_same_move() -> None:
    clock = ManualClock()
    seen: list[float] = []

    def tick() -> None:
        seen.append(clock.monotonic())
        clock.call_later(1.0, tick)

    clock.call_later(1.0, tick)

    clock.advance(3.5)

    assert [1.0, 2.0, 3.0] == seen


def test_cancelled_timer_does_not_fire() -> None:
    clock = ManualClock()
    seen: list[str] = []
    clock.call_later(1.0, seen.append, "cancelled").cancel()

    clock.advance(2.0)

    assert [] == seen


class Worker:
    """
    A thread that works at intervals, as those of the storage engine.
    """

    def __init__(self, clock: ManualClock, interval: float) -> None:
        self.rounds: list[float] = []
        self._clock = clock
        self._interval = interval
        self._stop = threading.Event()
        self._first = threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        while not self._clock.wait(self._stop, self._interval):
            self.rounds.append(self._clock.monotonic())

    def stop(self) -> None:
        self._stop.set()
        self.thread.join(60)
        assert not self.thread.is_alive()


def test_thread_runs_every_round_at_its_time() -> None:
    clock = ManualClock()
    worker = Worker(clock, 300.0)
    clock.until_waiting(worker.thread)

    clock.advance(HOUR)

    assert [300.0 * (n + 1) for n in range(12)] == worker.rounds
    worker.stop()


def test_threads_and_callbacks_share_one_order() -> None:
    clock = ManualClock()
    slow, fast = Worker(clock, 10.0), Worker(clock, 4.0)
    clock.until_waiting(slow.thread)
    clock.until_waiting(fast.thread)
    seen: list[tuple[int, int]] = []
    clock.call_later(9.0, lambda: seen.append((len(slow.rounds), len(fast.rounds))))

    clock.advance(12.0)

    assert [(0, 2)] == seen
    assert ([10.0], [4.0, 8.0, 12.0]) == (slow.rounds, fast.rounds)
    slow.stop()
    fast.stop()


def test_setting_the_event_ends_a_wait_without_moving_the_clock() -> None:
    clock = ManualClock()
    worker = Worker(clock, HOUR)
    clock.until_waiting(worker.thread)

    worker.stop()

    assert [] == worker.rounds


def test_clock_stands_still_until_a_woken_thread_waits_again() -> None:
    clock = ManualClock()
    woken, never = threading.Event(), threading.Event()
    seen: list[float] = []

    def work() -> None:
        clock.wait(woken, HOUR)
        for _ in range(100):
            # The event is still set.
            clock.wait(woken, HOUR)
            seen.append(clock.monotonic())
        clock.wait(never, 5.0)
        seen.append(clock.monotonic())

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    clock.until_waiting(thread)

    woken.set()
    clock.advance(10.0)

    assert [0.0] * 100 + [5.0] == seen


def test_ended_thread_does_not_block_the_clock() -> None:
    clock = ManualClock()
    thread = threading.Thread(target=lambda: clock.wait(threading.Event(), 1.0))
    thread.start()
    clock.until_waiting(thread)

    clock.advance(2.0)

    thread.join(60)
    assert not thread.is_alive()


async def test_coroutine_sleeps_until_its_time() -> None:
    clock = ManualClock()
    rounds: list[float] = []

    async def work() -> None:
        while True:
            await clock.sleep(60.0)
            rounds.append(clock.monotonic())

    task = asyncio.create_task(work())
    await asyncio.sleep(0)

    await clock.pass_time(180.0)

    assert [60.0, 120.0, 180.0] == rounds
    task.cancel()


def test_timer_of_a_closed_loop_does_not_fire() -> None:
    """
    A killed broker does not cancel its timers.
    """
    clock = ManualClock()
    seen: list[str] = []

    async def set_a_timer() -> None:
        clock.call_later(1.0, seen.append, "closed")

    asyncio.run(set_a_timer())
    clock.call_later(2.0, seen.append, "open")
    clock.advance(3.0)

    assert ["open"] == seen


async def test_callback_runs_on_its_loop_when_another_thread_moves_the_clock() -> None:
    clock = ManualClock()
    threads: list[threading.Thread] = []
    clock.call_later(1.0, lambda: threads.append(threading.current_thread()))

    await asyncio.get_running_loop().run_in_executor(None, clock.advance, 2.0)

    assert [threading.current_thread()] == threads


async def test_cancelled_sleep_leaves_nothing_behind() -> None:
    clock = ManualClock()
    task = asyncio.create_task(clock.sleep(1.0))
    await asyncio.sleep(0)

    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    await clock.pass_time(2.0)
    assert 2.0 == clock.monotonic()


async def test_timer_due_immediately_needs_no_move() -> None:
    clock = ManualClock()
    fired = asyncio.Event()

    clock.call_later(0, fired.set)

    await asyncio.wait_for(fired.wait(), 30)
    assert 0.0 == clock.monotonic()


async def test_running_clock_fires_timers_in_real_time() -> None:
    clock = ManualClock(runs=True)
    fired: list[str] = []

    later = clock.call_later(0.01, fired.append, "later")
    clock.call_later(0.005, fired.append, "sooner")
    clock.call_later(0.001, fired.append, "never").cancel()
    await clock.sleep(0.02)

    assert ["sooner", "later"] == fired
    assert later.is_over
    assert clock.monotonic() >= 0.02


async def test_move_of_a_running_clock_fires_pending_timers() -> None:
    """
    Timers not yet due continue to wait in real time, for less time.
    """
    clock = ManualClock(runs=True)
    first, second = asyncio.Event(), asyncio.Event()
    clock.call_later(3600, first.set)
    clock.call_later(7200, second.set)

    await clock.pass_time(3600)
    assert (True, False) == (first.is_set(), second.is_set())
    await clock.pass_time(3599.99)
    await asyncio.wait_for(second.wait(), 30)

    assert 7200 <= clock.monotonic() < 7260


def test_thread_waits_in_real_time_with_a_running_clock() -> None:
    clock = ManualClock(runs=True)
    event = threading.Event()
    seen: list[bool] = []
    thread = threading.Thread(target=lambda: seen.append(clock.wait(event, 3600)))
    thread.start()
    clock.until_waiting(thread)

    assert not clock.wait(threading.Event(), 0.001)
    clock.advance(3599.99)
    thread.join(30)

    assert [False] == seen


def test_long_move_skips_most_polls_of_a_thread() -> None:
    """
    The remaining polls are at multiples of the interval, including the last one.
    """
    clock = ManualClock()
    looks: list[float] = []
    thread = periodic_thread("poll", 60_000, lambda: looks.append(clock.monotonic()), clock=clock)
    thread.start()
    clock.until_waiting(thread.thread)

    clock.advance(10 * MOST_POLLS * 60 + 90)

    assert 0.9 * MOST_POLLS <= len(looks) <= MOST_POLLS
    assert not [look for look in looks if look % 60]
    assert clock.monotonic() - 90 < looks[-1]
    thread.stop()
    clock.advance(60)


async def test_long_move_skips_most_polls_of_a_task() -> None:
    clock = ManualClock()
    looks: list[float] = []

    async def poll() -> None:
        while True:
            await clock.sleep(60)
            looks.append(clock.monotonic())

    task = asyncio.create_task(poll())
    await asyncio.sleep(0)

    await clock.pass_time(10 * MOST_POLLS * 60 + 90)

    assert 0.9 * MOST_POLLS <= len(looks) <= MOST_POLLS
    assert clock.monotonic() - 90 < looks[-1]
    task.cancel()
