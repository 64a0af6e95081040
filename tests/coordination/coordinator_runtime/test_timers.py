from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from barnabas.coordination.coordinator_runtime.result import NOTHING, CoordinatorResult
from barnabas.coordination.coordinator_runtime.timers import TimedOperation, TimerQueue
from barnabas.coordination.groups.timeouts import Timeout, TimerKey


class Stopwatch:
    """
    A queue whose clock stands until it is moved, and the names of what has run.
    """

    def __init__(self) -> None:
        self.now = 1000.0
        self.ran: list[tuple[str, float]] = []
        self.alarms = 0
        self.queue: TimerQueue[TimerKey, TimedOperation] = TimerQueue(
            lambda: self.now, self.count_alarm
        )

    def count_alarm(self) -> None:
        self.alarms += 1

    def operation(self, name: str) -> TimedOperation:
        def run(_now_ms: int) -> CoordinatorResult[Any]:
            self.ran.append((name, self.now))
            return NOTHING

        return run

    def schedule(self, name: str, delay_ms: int, label: str = "") -> None:
        self.queue.schedule(key(name), delay_ms, self.operation(label or name))

    def run_until(self, seconds: float) -> list[str]:
        """
        What runs up to that time, looking only when the queue says so.
        """
        while (when := self.queue.next_look()) is not None and when / 1000 <= seconds:
            self.now = max(self.now, when / 1000)
            while (operation := self.queue.pop_due()) is not None:
                operation(0)
        self.now = seconds
        return [name for name, _ in self.ran]


def key(name: str) -> TimerKey:
    return (Timeout.SESSION, name, "")


def test_later_deadline_does_not_reset_the_alarm() -> None:
    # A heartbeat only stores the later deadline; the queue checks it when the alarm fires.
    watch = Stopwatch()
    watch.schedule("a", 100)
    alarms = watch.alarms

    for _ in range(50):
        watch.now += 0.05
        watch.schedule("a", 100)

    assert alarms == watch.alarms
    assert [] == watch.run_until(1002.599)
    assert ["a"] == watch.run_until(1002.6)


def test_earlier_deadline_resets_the_alarm() -> None:
    watch = Stopwatch()
    watch.schedule("a", 1000)
    alarms = watch.alarms

    watch.schedule("a", 10)

    assert watch.alarms == alarms + 1
    assert ["a"] == watch.run_until(1000.01)
    assert ["a"] == watch.run_until(1002.0), "the deadline before is no more"


def test_alarm_may_fire_early_by_a_rounding_error() -> None:
    # Otherwise a manual clock would have to be moved twice.
    watch = Stopwatch()
    watch.now = 1000.0000001
    watch.schedule("a", 100)
    watch.now = 1000.0999999

    assert watch.queue.pop_due() is not None


@given(
    st.lists(
        st.tuples(
            st.sampled_from("abcd"),
            st.one_of(st.none(), st.integers(0, 300)),
            st.integers(0, 100),
        ),
        max_size=40,
    )
)
def test_timer_queue_agrees_with_a_plain_list_of_deadlines(
    steps: list[tuple[str, int | None, int]],
) -> None:
    watch = Stopwatch()
    deadlines: dict[str, tuple[int, str]] = {}
    expected: list[tuple[int, str]] = []
    now_ms = 1_000_000
    for number, (name, delay_ms, wait_ms) in enumerate(steps):
        if delay_ms is None:
            deadlines.pop(name, None)
            watch.queue.cancel(key(name))
        else:
            label = f"{name}{number}"
            deadlines[name] = now_ms + delay_ms, label
            watch.schedule(name, delay_ms, label)
        now_ms += wait_ms
        expected += sorted(each for each in deadlines.values() if each[0] <= now_ms)
        deadlines = {name: each for name, each in deadlines.items() if each[0] > now_ms}
        watch.run_until(now_ms / 1000)

    ran = sorted((round(when * 1000), who) for who, when in watch.ran)
    assert sorted(expected) == ran
    assert len(deadlines) == len(watch.queue)
