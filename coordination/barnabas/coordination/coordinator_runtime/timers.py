"""
Timers of a coordinator's shard (Kafka's ``CoordinatorTimer``).

Hardly any timer of a group ever fires: each heartbeat prolongs a session. To prolong one costs a
dictionary look-up and an assignment, however many there are; only at the deadline that the timer
had *before* does the queue look at it, find the later deadline, and put it back.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any, Final, Generic, Protocol, TypeAlias, TypeVar

from barnabas.coordination.coordinator_runtime.result import CoordinatorResult

K = TypeVar("K")
T = TypeVar("T")

TimedOperation: TypeAlias = Callable[[int], CoordinatorResult[Any]]
"""
Called at the deadline, with the time in ms since the epoch.
"""

LEFT_OVERS: Final = 1000


class Timers(Protocol):
    """
    The timers of a shard, as its state uses them.
    """

    def __contains__(self, key: Any) -> bool:
        """
        Whether *key* has an operation.
        """

    def schedule(self, key: Any, delay_ms: int, operation: TimedOperation) -> None:
        """
        Run *operation* after *delay_ms*, in place of the one that *key* had.
        """

    def cancel(self, key: Any) -> None:
        """
        Do not run the operation of *key*; without effect if there is none.
        """


class _Timer(Generic[T]):
    __slots__ = ("deadline", "operation", "queued")

    def __init__(self, deadline: int, operation: T) -> None:
        self.deadline = deadline
        self.queued = deadline  # when the queue looks at the timer: never after the deadline
        self.operation = operation


class TimerQueue(Generic[K, T]):
    """
    Deadlines of any number of keys, each with an operation that the owner of the queue runs.

    Invariants:

    1. A key has at most one operation.
    2. Every scheduled key has an entry in the heap at its ``queued`` time, which is never after its
       deadline. Other entries are stale. They are dropped when they are first, and when the heap
       has more than ``LEFT_OVERS`` of them and they are more than half of it.

    Args:
        now: seconds of a monotonic clock. The queue rounds them to whole milliseconds, so that an
            alarm which rings a rounding error too early is in time.
        moved_forward: called when ``next_look`` has become earlier.
    """

    def __init__(
        self, now: Callable[[], float], moved_forward: Callable[[], None] = lambda: None
    ) -> None:
        self._now = now
        self._moved_forward = moved_forward
        self._timers: dict[K, _Timer[T]] = {}
        self._heap: list[tuple[int, int, K, _Timer[T]]] = []
        self._counter = 0  # breaks ties in the heap, in the order of scheduling

    def __len__(self) -> int:
        return len(self._timers)

    def __contains__(self, key: K) -> bool:
        return key in self._timers

    def schedule(self, key: K, delay_ms: int, operation: T) -> None:
        """
        Set the deadline and the operation of *key*, in place of those it had.
        """
        deadline = self._now_ms() + delay_ms
        timer = self._timers.get(key)
        if timer is None:
            timer = self._timers[key] = _Timer(deadline, operation)
        else:
            timer.deadline = deadline
            timer.operation = operation
            if deadline >= timer.queued:
                return
        self._push(key, timer)
        if self._heap[0][3] is timer:
            self._moved_forward()

    def cancel(self, key: K) -> None:
        """
        Forget *key*; without effect if it is not scheduled.
        """
        self._timers.pop(key, None)
        if len(self._heap) > LEFT_OVERS + 2 * len(self._timers):
            self._heap = [entry for entry in self._heap if self._is_current(entry)]
            heapq.heapify(self._heap)

    def clear(self) -> None:
        """
        Forget every key.
        """
        self._timers.clear()
        self._heap.clear()

    def next_look(self) -> int | None:
        """
        The time in ms at which to call ``pop_due``, never after the first deadline; None if nothing
        is scheduled.
        """
        while self._heap:
            if self._is_current(self._heap[0]):
                return self._heap[0][0]
            heapq.heappop(self._heap)
        return None

    @property
    def is_overdue(self) -> bool:
        """
        Whether ``next_look`` has passed.
        """
        return bool(self._heap) and self._heap[0][0] < self._now_ms()

    def pop_due(self) -> T | None:
        """
        Remove and return the operation with the earliest deadline, if that has passed.
        """
        now = self._now_ms()
        while (queued := self.next_look()) is not None and queued <= now:
            _, _, key, timer = heapq.heappop(self._heap)
            if timer.deadline > now:
                self._push(key, timer)  # The deadline was prolonged.
            else:
                del self._timers[key]
                return timer.operation
        return None

    def _is_current(self, entry: tuple[int, int, K, _Timer[T]]) -> bool:
        queued, _, key, timer = entry
        return self._timers.get(key) is timer and timer.queued == queued

    def _now_ms(self) -> int:
        return round(self._now() * 1000)

    def _push(self, key: K, timer: _Timer[T]) -> None:
        self._counter += 1
        timer.queued = timer.deadline
        heapq.heappush(self._heap, (timer.deadline, self._counter, key, timer))
