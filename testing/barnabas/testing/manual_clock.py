"""
A clock that moves only when asked.

Callbacks on an event loop wait for it, and background threads in ``wait``. ``advance`` runs them in
the order in which they are due, and the clock stands at the due time while one runs: a callback
until it returns, a thread until it waits again. The work that a thread does every five minutes is
done twelve times in an hour, each time at its minute. A thread that an event has woken runs until
it waits again or has ended as well.

``pass_time`` is the same for a caller on the event loop: the loop runs between two of them, so that
waiting coroutines continue before the clock does.
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
The longest real time of a thread at one moment of this clock, in seconds.
"""

TURNS: Final = 10
"""
The rounds of the event loop before the clock moves on: coroutines wake each other in chains.
"""

TIDY_AT: Final = 1000
"""
The most entries of the queue before the cancelled ones are removed.
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
        # The callback is released at once; the queue drops the timer at its due time.
        self._callback = None
        self._args = ()

    def fire(self) -> None:
        """
        Run the callback on the loop of the timer, and return when it has ended.
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
    A thread that waits for the clock or for an event.
    """

    __slots__ = ("_clock", "_condition", "_event", "due", "is_over", "thread")

    def __init__(self, clock: ManualClock, event: threading.Event, due: float) -> None:
        # Both ``event.set`` and the clock can notify the condition inside the event; without it, a
        # thread would have to poll one of them.
        self._condition: threading.Condition = event._cond  # type: ignore[attr-defined]
        self._event = event
        self._clock = clock
        self.due = due
        self.is_over = False
        self.thread = threading.current_thread()

    @property
    def is_woken(self) -> bool:
        """
        Whether the thread continues.
        """
        return self.is_over or self._event.is_set()

    def block(self) -> bool:
        """
        Wait for the event or the time; return whether the event is set.
        """
        with self._condition:
            self._condition.wait_for(lambda: self._event.is_set() or self.is_over)
        self.is_over = True
        return self._event.is_set()

    def fire(self) -> None:
        """
        Wake the thread, and return when it waits again or has ended.
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
    2. All timers up to the new time have fired when they return, in the order in which they were
       due, and those of the same moment in the order in which they were set.

    Any thread may read the clock and wait; one at a time may move it.
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
        # It stays the last wait of its thread afterwards: see ``_busy``.
        return wait.block()

    def advance(self, seconds: float) -> None:
        """
        Move the clock by *seconds*, and fire the timers on the way.

        Callbacks run on their loop. On the event loop use ``pass_time``: a coroutine that a
        callback wakes would not run before this returns.

        Raises:
            TimeoutError: a callback or a thread does not end.
        """
        end = self._now + seconds
        self._settle()
        while (due := self._next(end)) is not None:
            due.fire()
            self._settle()

    async def pass_time(self, seconds: float) -> None:
        """
        Like ``advance``, with rounds of the event loop after each timer.
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
        Return when *thread* waits for the clock, as at the begin of a test.

        Raises:
            TimeoutError: it does not wait.
        """
        with self._lock:
            if not self._lock.wait_for(lambda: self._is_waiting(thread), PATIENCE):
                raise TimeoutError(f"{thread.name} does not wait for the clock")

    def await_return(self, wait: ThreadWait) -> None:
        """
        Return when the thread is in another wait than *wait*, or has ended.
        """
        thread = wait.thread

        def returned() -> bool:
            return self._waiting.get(thread, wait) is not wait or not thread.is_alive()

        with self._lock:
            for _ in range(int(PATIENCE / 0.05)):
                # The end of a thread notifies no condition: poll for it.
                if self._lock.wait_for(returned, 0.05):
                    return
        raise TimeoutError(f"{thread.name} does not wait for the clock again")

    def _is_waiting(self, thread: threading.Thread) -> bool:
        wait = self._waiting.get(thread)
        return wait is not None and not wait.is_woken

    def _busy(self) -> list[ThreadWait]:
        """
        The last waits of the threads that an event has woken.
        """
        with self._lock:
            for thread in [thread for thread in self._waiting if not thread.is_alive()]:
                del self._waiting[thread]
            return [wait for wait in self._waiting.values() if wait.is_woken]

    def _settle(self) -> None:
        # The event of a thread's next wait may be set already.
        while busy := self._busy():
            for wait in busy:
                self.await_return(wait)

    def _next(self, end: float) -> ManualTimer | ThreadWait | None:
        """
        Move to the first due time up to *end*, and return its timer; else move to *end*.
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
