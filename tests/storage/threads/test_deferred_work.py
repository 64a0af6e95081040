from __future__ import annotations

import pytest

from barnabas.storage.threads.deferred_work import DeferredWork
from tests.support.clock import StillClock


@pytest.fixture
def clock() -> StillClock:
    return StillClock()


@pytest.fixture
def deferred(clock: StillClock) -> DeferredWork:
    return DeferredWork(clock)


def test_deferred_work_runs_once_when_it_is_due(deferred: DeferredWork, clock: StillClock) -> None:
    done: list[str] = []
    deferred.later(20, lambda: done.append("late"))
    deferred.later(10, lambda: done.append("early"))
    deferred.soon(lambda: done.append("soon"))

    deferred.run_due()
    assert ["soon"] == done
    clock.advance(10)
    deferred.run_due()
    assert ["soon", "early"] == done
    clock.advance(1000)
    deferred.run_due()
    deferred.run_due()
    assert ["soon", "early", "late"] == done


def test_deferred_work_of_the_same_time_runs_in_order(deferred: DeferredWork) -> None:
    done: list[int] = []
    for number in range(20):
        deferred.later(0, lambda number=number: done.append(number))  # type: ignore[misc]  # a default is how a loop binds

    deferred.run_due()

    assert list(range(20)) == done


def test_failure_does_not_block_other_deferred_work(deferred: DeferredWork) -> None:
    done: list[str] = []

    def fail() -> None:
        raise ValueError("first")

    deferred.soon(fail)
    deferred.soon(lambda: done.append("second"))
    deferred.later(0, lambda: done.append("third"))

    with pytest.raises(ValueError, match="first"):
        deferred.run_due()
    assert ["second", "third"] == done


def test_deferred_work_may_add_more_work(deferred: DeferredWork) -> None:
    done: list[str] = []
    deferred.soon(lambda: deferred.soon(lambda: done.append("more")))

    deferred.run_due()
    assert [] == done
    deferred.run_due()
    assert ["more"] == done


def test_stop_runs_only_work_without_a_delay(deferred: DeferredWork) -> None:
    done: list[str] = []
    deferred.soon(lambda: done.append("soon"))
    deferred.later(0, lambda: done.append("later"))

    deferred.run_soon()

    assert ["soon"] == done
    deferred.drop()
    deferred.run_due()
    assert ["soon"] == done


def test_next_due_time_is_available(deferred: DeferredWork, clock: StillClock) -> None:
    assert None is deferred.next_due_ms
    deferred.later(30, lambda: None)
    deferred.later(20, lambda: None)
    assert clock.now_ms() + 20 == deferred.next_due_ms


def test_owner_of_the_log_is_told_when_deferred_work_is_due(clock: StillClock) -> None:
    """
    Also in time for the next start: a new log without its topic id would be taken for a stray then.
    """
    times: list[int] = []
    deferred = DeferredWork(clock, times.append)
    start = clock.now_ms()

    deferred.later(20_000, lambda: None)
    deferred.later(30_000, lambda: None)
    deferred.later(10_000, lambda: None)
    assert [start + 20_000, start + 10_000] == times
    deferred.soon(lambda: None)
    deferred.soon(lambda: None)
    assert [start + 100] == times[2:]
    clock.advance(100)
    deferred.run_due()
    assert [start + 10_000] == times[3:]
    clock.advance(29_900)
    deferred.run_due()
    assert [start + 10_000] == times[3:]
