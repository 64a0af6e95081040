"""
A clock that moves only when asked.

Two kinds of things wait for it: callbacks on an event loop, and background threads in ``wait``.
``advance`` goes from one to the next in the order in which they are due, and the clock stands at
that moment while each of them runs: a callback until it returns, a thread until it waits again. So
what a thread does every five minutes happens twelve times in an hour, each time at its minute. A
thread that an event has woken also has the time it needs, until it waits again or has ended.

``pass_time`` is the same for whoever is on the event loop: between two of them it lets the loop
run, so that coroutines which were waiting go on before the clock does.
"""

from __future__ import annotations

import asyncio
import heapq
import threading
from collections.abc import Callable
from itertools import count
from typing import Any, Final

PATIENCE: Final = 30.0
"""
How many real seconds a thread may take for what it does at one moment of this clock.
"""

TURNS: Final = 10
"""
How often the event loop runs before the clock moves on: coroutines wake each other in chains.
"""

TIDY_AT: Final = 1000
"""
How many entries the queue may have before those that were cancelled are removed.
"""


class ManualTimer:
    """
    A callback that waits.
    """

    __slots__ = ("_args", "_callback", "_loop")

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop | None,
        callback: Callable[..., Any],
        args: tuple[Any, ...],
    ) -> None:
        self._loop = loop
        self._callback: Callable[..., Any] | None = callback
        self._args = args

    @property
    def is_over(self) -> bool:
        return self._callback is None

    def cancel(self) -> None:
        # What was to be called is let go at once; the queue comes across the rest in time.
        self._callback = None
        self._args = ()

    def fire(self) -> None:
        """
        Call back on the loop the timer was made on, and return when that is done.
        """
        if self._loop is None or self._loop is _running_loop():
            self._call()
            return
        done = threading.Event()

        def call() -> None:
            try:
                self._call()
            finally:
                done.set()

        self._loop.call_soon_threadsafe(call)
        if not done.wait(PATIENCE):
            raise TimeoutError(f"{self._callback!r} does not return")

    def _call(self) -> None:
        callback, self._callback = self._callback, None
        if callback is not None:
            callback(*self._args)


class ThreadWait:
    """
    A thread that waits for the clock or for an event, whichever is first.
    """

    __slots__ = ("_clock", "_condition", "_event", "due", "is_over", "thread")

    def __init__(self, clock: ManualClock, event: threading.Event, due: float) -> None:
        # The condition inside the event is the one thing that both ``event.set`` and the clock can
        # notify; without it, a thread would have to look at one of them again and again.
        self._condition: threading.Condition = event._cond  # type: ignore[attr-defined]
        self._event = event
        self._clock = clock
        self.due = due
        self.is_over = False
        self.thread = threading.current_thread()

    @property
    def is_woken(self) -> bool:
        """
        Whether the thread goes on, or will.
        """
        return self.is_over or self._event.is_set()

    def block(self) -> bool:
        """
        Return when the event is set or the time has come; whether the event is set.
        """
        with self._condition:
            self._condition.wait_for(lambda: self._event.is_set() or self.is_over)
        self.is_over = True
        return self._event.is_set()

    def fire(self) -> None:
        """
        Let the thread go on, and return when it waits again or has ended.
        """
        with self._condition:
            self.is_over = True
            self._condition.notify_all()
        self._clock.await_return(self)


class ManualClock:
    """
    A clock that stands still.

    Invariants:

    1. Time moves in ``advance`` and ``pass_time`` only, and never back.
    2. Everything that is due up to the new time has happened when they return, in the order in
       which it was due; what was due at the same moment, in the order in which it was asked for.

    Any thread may ask what time it is and wait; one at a time may move the clock.
    """

    def __init__(self, start_ms: int = 0) -> None:
        self._start_ms = start_ms
        self._now = 0.0
        self._lock = threading.Condition()
        self._order = count()
        self._queue: list[tuple[float, int, ManualTimer | ThreadWait]] = []
        self._tidy_at = TIDY_AT
        self._waiting: dict[threading.Thread, ThreadWait] = {}

    def now_ms(self) -> int:
        return self._start_ms + round(self._now * 1000)

    def monotonic(self) -> float:
        return self._now

    def call_later(self, seconds: float, callback: Callable[..., Any], *args: Any) -> ManualTimer:
        timer = ManualTimer(_running_loop(), callback, args)
        self._push(seconds, timer)
        return timer

    async def sleep(self, seconds: float) -> None:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        timer = self.call_later(seconds, _wake, future)
        try:
            await future
        finally:
            timer.cancel()

    def wait(self, event: threading.Event, seconds: float) -> bool:
        wait = ThreadWait(self, event, self._now + seconds)
        with self._lock:
            self._waiting[wait.thread] = wait
            heapq.heappush(self._queue, (wait.due, next(self._order), wait))
            self._lock.notify_all()
        # It stays the last wait of its thread when it is over: see ``_busy``.
        return wait.block()

    def advance(self, seconds: float) -> None:
        """
        Move on by that much, and let happen what falls due.

        Callbacks happen on their loop. A coroutine that one of them wakes runs only when this has
        returned, if it is called on the event loop; use ``pass_time`` there.

        Raises:
            TimeoutError: something does not come to an end.
        """
        end = self._now + seconds
        self._settle()
        while (due := self._next(end)) is not None:
            due.fire()
            self._settle()

    async def pass_time(self, seconds: float) -> None:
        """
        The same, letting the event loop run after each thing that happens.
        """
        loop = asyncio.get_running_loop()
        end = self._now + seconds
        await loop.run_in_executor(None, self._settle)
        while (due := self._next(end)) is not None:
            if isinstance(due, ThreadWait):
                await loop.run_in_executor(None, due.fire)
            else:
                due.fire()
            for _ in range(TURNS):
                await asyncio.sleep(0)
            if self._busy():
                await loop.run_in_executor(None, self._settle)

    def until_waiting(self, thread: threading.Thread) -> None:
        """
        Return when that thread waits for the clock: a test begins when everything has started.

        Raises:
            TimeoutError: it does not.
        """
        with self._lock:
            if not self._lock.wait_for(lambda: self._is_waiting(thread), PATIENCE):
                raise TimeoutError(f"{thread.name} does not wait for the clock")

    def await_return(self, wait: ThreadWait) -> None:
        """
        Return when the thread waits for something else than *wait*, or has ended.
        """
        thread = wait.thread

        def returned() -> bool:
            return self._waiting.get(thread, wait) is not wait or not thread.is_alive()

        with self._lock:
            for _ in range(int(PATIENCE / 0.05)):
                # A thread that ends tells nobody, so this looks again from time to time.
                if self._lock.wait_for(returned, 0.05):
                    return
        raise TimeoutError(f"{thread.name} does not wait for the clock again")

    def _is_waiting(self, thread: threading.Thread) -> bool:
        wait = self._waiting.get(thread)
        return wait is not None and not wait.is_woken

    def _busy(self) -> list[ThreadWait]:
        """
        The last waits of those threads that something else than the clock has let go on.
        """
        with self._lock:
            for thread in [thread for thread in self._waiting if not thread.is_alive()]:
                del self._waiting[thread]
            return [wait for wait in self._waiting.values() if wait.is_woken]

    def _settle(self) -> None:
        # A thread may meet an event that is set already, and go on from its next wait as well.
        while busy := self._busy():
            for wait in busy:
                self.await_return(wait)

    def _next(self, end: float) -> ManualTimer | ThreadWait | None:
        """
        Move to what is due first, if that is not after *end*, else to *end*.
        """
        with self._lock:
            while self._queue and self._queue[0][0] <= end:
                due, _, waiting = heapq.heappop(self._queue)
                if not waiting.is_over:
                    self._now = max(self._now, due)
                    return waiting
            self._now = max(self._now, end)
            return None

    def _push(self, seconds: float, timer: ManualTimer) -> None:
        with self._lock:
            if len(self._queue) > self._tidy_at:
                self._queue = [entry for entry in self._queue if not entry[2].is_over]
                heapq.heapify(self._queue)
                self._tidy_at = max(TIDY_AT, 2 * len(self._queue))
            due = self._now + max(0.0, seconds)
            heapq.heappush(self._queue, (due, next(self._order), timer))


def _wake(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
