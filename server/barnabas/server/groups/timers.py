"""
Timeouts of members and groups.

Almost no timeout of a group ever happens: a session is prolonged by every heartbeat. So prolonging
one costs a dictionary look-up and an assignment, however many there are; only when the time it had
*before* comes does the queue look, see that it has moved, and put it back.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from enum import Enum
from typing import Final, Protocol, TypeAlias

from barnabas.server.groups.changes import Changes

LEFT_OVERS: Final = 1000


class Timeout(Enum):
    """
    What a group may wait for in vain.
    """

    SESSION = "session"  # a sign of life of one member
    JOIN = "join"  # the members' joins
    SYNC = "sync"  # the members' syncs


TimerKey: TypeAlias = tuple[Timeout, str, str]
"""
What is waited for, in which group, and of which member; "" where it is all of them.
"""

Operation: TypeAlias = Callable[[int], Changes]
"""
What happens when the time is up; it is told the time of day in ms.
"""


class Timers(Protocol):
    """
    What a state machine may ask of time.
    """

    def schedule(self, key: TimerKey, delay_ms: int, operation: Operation) -> None:
        """
        Have the operation run that much later, instead of what the key stood for before.
        """

    def cancel(self, key: TimerKey) -> None:
        """
        See to it that the operation of a key does not run; harmless if there is none.
        """


class _Timer:
    __slots__ = ("deadline", "operation", "queued")

    def __init__(self, deadline: int, operation: Operation) -> None:
        self.deadline = deadline  # when it is due
        self.queued = deadline  # when the queue will look at it: never later than that
        self.operation = operation


_Entry: TypeAlias = tuple[int, int, TimerKey, _Timer]


class TimerQueue:
    """
    Deadlines of any number of keys, of which few are ever reached.

    Invariants:

    1. A key has at most one operation.
    2. Every scheduled key has an entry in the heap at its ``queued`` time, which is never after its
       deadline. Other entries are left-overs. They are dropped when they come up, and when the heap
       has more than ``LEFT_OVERS`` of them and they are more than half of it.

    Args:
        now: seconds of a monotonic clock. To the queue, time is whole milliseconds of it: so an
            alarm that rings a rounding error too early is in time.
        moved_forward: called when ``next_look`` has become earlier than it was.
    """

    def __init__(
        self, now: Callable[[], float], moved_forward: Callable[[], None] = lambda: None
    ) -> None:
        self._now = now
        self._moved_forward = moved_forward
        self._timers: dict[TimerKey, _Timer] = {}
        self._heap: list[_Entry] = []
        self._counter = 0  # breaks ties in the heap, in the order of scheduling

    def __len__(self) -> int:
        return len(self._timers)

    def __contains__(self, key: TimerKey) -> bool:
        return key in self._timers

    def schedule(self, key: TimerKey, delay_ms: int, operation: Operation) -> None:
        """
        Have the operation run that much later, instead of what the key stood for before.
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

    def cancel(self, key: TimerKey) -> None:
        """
        Forget a key; harmless if it is not there.
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
        When ``pop_due`` has something to look at, in ms: never after the first deadline.
        """
        while self._heap:
            if self._is_current(self._heap[0]):
                return self._heap[0][0]
            heapq.heappop(self._heap)
        return None

    @property
    def is_overdue(self) -> bool:
        """
        Whether ``pop_due`` should have been called before now.
        """
        return bool(self._heap) and self._heap[0][0] < self._now_ms()

    def pop_due(self) -> Operation | None:
        """
        Take out the operation that was due first, if any is by now.
        """
        now = self._now_ms()
        while (queued := self.next_look()) is not None and queued <= now:
            _, _, key, timer = heapq.heappop(self._heap)
            if timer.deadline > now:
                self._push(key, timer)  # It was prolonged.
            else:
                del self._timers[key]
                return timer.operation
        return None

    def _is_current(self, entry: _Entry) -> bool:
        queued, _, key, timer = entry
        return self._timers.get(key) is timer and timer.queued == queued

    def _now_ms(self) -> int:
        return round(self._now() * 1000)

    def _push(self, key: TimerKey, timer: _Timer) -> None:
        self._counter += 1
        timer.queued = timer.deadline
        heapq.heappush(self._heap, (timer.deadline, self._counter, key, timer))
