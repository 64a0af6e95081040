from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterator

import pytest

from barnabas.storage.threads.background import Alarm, alarm_thread
from barnabas.testing.manual_clock import ManualClock


def test_alarm_fires_once_at_its_earliest_time() -> None:
    alarm = Alarm()
    assert math.inf == alarm.take(0)

    alarm.at(3000)
    alarm.at(2000)
    alarm.at(4000)

    assert 1.5 == alarm.take(500)
    assert 0.0 == alarm.take(2000)
    assert math.inf == alarm.take(2000)


def test_only_an_earlier_time_resets_the_alarm() -> None:
    alarm = Alarm()
    alarm.at(2000)
    assert alarm.changed.is_set()
    alarm.take(0)
    assert not alarm.changed.is_set()

    alarm.at(2000)
    assert not alarm.changed.is_set()
    alarm.at(1999)
    assert alarm.changed.is_set()


class Worker:
    """
    A thread on a clock that the test moves, and the times at which it worked.
    """

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.alarm = Alarm()
        self.rounds: list[int] = []
        self.on_round: Callable[[], None] = lambda: None
        self.thread = alarm_thread("worker", self.alarm, self._work, clock=self.clock)

    def _work(self) -> None:
        self.rounds.append(self.clock.now_ms())
        self.on_round()


@pytest.fixture
def worker() -> Iterator[Worker]:
    worker = Worker()
    worker.thread.start()
    worker.clock.until_waiting(worker.thread.thread)
    yield worker
    worker.thread.stop()
    assert worker.thread.join(60)


def test_background_thread_does_nothing_while_nothing_is_due(worker: Worker) -> None:
    worker.clock.advance(1_000_000.0)

    assert [] == worker.rounds


def test_moving_the_clock_does_not_require_waiting_for_the_woken_thread(
    worker: Worker,
) -> None:
    for due_ms in range(1000, 101_000, 1000):
        worker.alarm.at(due_ms)
        worker.clock.advance(1.0)

    assert list(range(1000, 101_000, 1000)) == worker.rounds


def test_background_work_may_schedule_the_next_work(worker: Worker) -> None:
    worker.on_round = lambda: worker.alarm.at(worker.clock.now_ms() + 1000)
    worker.alarm.at(1000)

    worker.clock.advance(3.5)

    assert [1000, 2000, 3000] == worker.rounds


def test_background_thread_continues_after_a_failed_round(
    worker: Worker, caplog: pytest.LogCaptureFixture
) -> None:
    def fail() -> None:
        raise ValueError("broken")

    worker.on_round = fail
    with caplog.at_level(logging.ERROR):
        worker.alarm.at(1000)
        worker.clock.advance(1.0)
        worker.alarm.at(2000)
        worker.clock.advance(1.0)

    assert [1000, 2000] == worker.rounds
    assert ["worker: a round failed"] * 2 == caplog.messages


def test_overdue_work_runs_at_once(worker: Worker) -> None:
    worker.clock.advance(10.0)
    worker.alarm.at(5000)

    worker.clock.advance(0.0)

    assert [10_000] == worker.rounds
