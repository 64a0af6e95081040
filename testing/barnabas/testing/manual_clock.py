"""
A clock that a test moves. Between two moves it stands still, or runs with real time.

Callbacks on an event loop wait for it, and background threads in ``wait``. ``advance`` runs them in
the order in which they are due, and the clock stands at the due time while one runs: a callback
until it returns, a thread until it waits again. The work that a thread does every five minutes is
done twelve times in an hour, each time at its minute. A thread that an event has woken runs until
it waits again or has ended as well.

``pass_time`` is the same for a caller on the event loop: the loop runs between two of them, so that
waiting coroutines continue before the clock does.

A thread or a task that waits for the same time again and again polls: it looks whether there is
work. In a long move it looks ``MOST_POLLS`` times, at moments at which it would have looked anyway,
the last of them before the end included. A year takes as long as a week then.

A clock that runs fires its timers when their real time has come, in the order in which the event
loop and the system wake them. It stops for the duration of a move.
"""

from __future__ import annotations

import asyncio
import heapq
import math
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any, Final
from weakref import WeakKeyDictionary

from barnabas.storage.clock import seconds_now

PATIENCE: Final = 30.0
"""
The longest real time of a thread at one moment of this clock, in seconds.
"""

TURNS: Final = 10
"""
The rounds of the event loop before the clock moves on: coroutines wake each other in chains.
"""

MOST_POLLS: Final = 1000
"""
How often something that polls does so in one move, about: every ten minutes in a week.
"""

TIDY_AT: Final = 1000
"""
The most entries of the queue before the cancelled ones are removed.
"""


class ManualTimer:
    """
    A callback that waits.
    """

    __slots__ = ("_args", "_callback", "_handle", "due", "loop")

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop | None,
        due: float,
        callback: Callable[..., Any],
        args: tuple[Any, ...],
    ) -> None:
        self.loop = loop
        self.due = due
        self._callback: Callable[..., Any] | None = callback
        self._args = args
        self._handle: asyncio.TimerHandle | None = None

    @property
    def is_over(self) -> bool:
        """
        Whether it is cancelled or has fired, or its loop is closed, as that of a broker that has
        ended is.
        """
        return self._callback is None or (self.loop is not None and self.loop.is_closed())

    def cancel(self) -> None:
        # The callback is released at once; the queue drops the timer at its due time.
        self._callback = None
        self._args = ()
        self.disarm()

    def arm(self, seconds: float, fire: Callable[[ManualTimer], None]) -> None:
        """
        Let the loop of the timer call *fire* in *seconds* of real time. Called on that loop.
        """
        self.disarm()
        if self.loop is not None and not self.is_over:
            self._handle = self.loop.call_later(max(0.0, seconds), fire, self)

    def disarm(self) -> None:
        """
        Undo ``arm``.
        """
        handle, self._handle = self._handle, None
        if handle is not None:
            handle.cancel()

    def fire(self) -> None:
        """
        Run the callback on the loop of the timer, and return when it has ended.
        """
        if self.loop is None or self.loop is _running_loop():
            self._call()
            return
        done = threading.Event()

        def call() -> None:
            try:
                self._call()
            finally:
                done.set()

        self.loop.call_soon_threadsafe(call)
        if not done.wait(PATIENCE):
            raise TimeoutError(f"{self._callback!r} does not return")

    def _call(self) -> None:
        callback, self._callback = self._callback, None
        self.disarm()
        if callback is not None:
            callback(*self._args)


class ThreadWait:
    """
    A thread that waits for the clock or for an event.
    """

    __slots__ = ("_clock", "_condition", "_event", "due", "interval", "is_over", "thread")

    def __init__(
        self, clock: ManualClock, event: threading.Event, due: float, interval: float
    ) -> None:
        # Both ``event.set`` and the clock can notify the condition inside the event; without it, a
        # thread would have to poll one of them.
        self._condition: threading.Condition = event._cond  # type: ignore[attr-defined]
        self._event = event
        self._clock = clock
        self.due = due
        self.interval = interval
        """What the thread asked for, in seconds."""
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
            while not self.is_woken and (seconds := self._clock.seconds_until(self.due)) != 0.0:
                self._condition.wait(seconds)
        self.is_over = True
        return self._event.is_set()

    def look_again(self) -> None:
        """
        Let the thread see that the clock has moved.
        """
        with self._condition:
            self._condition.notify_all()

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
    A clock that a test moves.

    Invariants:

    1. Time moves in ``advance`` and ``pass_time``, and with real time if the clock runs; it never
       moves back.
    2. All timers up to the new time have fired when these return, in the order in which they were
       due, and those of the same moment in the order in which they were set.

    Any thread may read the clock and wait; one at a time may move it.
    """

    def __init__(self, start_ms: int = 0, *, runs: bool = False) -> None:
        """
        Args:
            start_ms: the wall clock now, in ms since 1970 UTC.
            runs: move with real time as well.
        """
        self._start_ms = start_ms
        self._real: Callable[[], float] = _seconds_since(seconds_now()) if runs else _no_time
        self._runs = runs
        self._moved = 0.0
        self._stands_at: float | None = None
        self._end = 0.0  # of the move
        self._stride = 0.0  # the least time between two looks of what polls, in the move
        self._sleeping: WeakKeyDictionary[asyncio.Task[Any], float] = WeakKeyDictionary()
        self._lock = threading.Condition()
        self._order = count()
        self._queue: list[tuple[float, int, ManualTimer | ThreadWait]] = []
        self._tidy_at = TIDY_AT
        self._waiting: dict[threading.Thread, ThreadWait] = {}

    def now_ms(self) -> int:
        return self._start_ms + round(self.monotonic() * 1000)

    def monotonic(self) -> float:
        stands_at = self._stands_at
        return self._moved + self._real() if stands_at is None else stands_at

    def call_later(self, seconds: float, callback: Callable[..., Any], *args: Any) -> ManualTimer:
        """
        Call *callback* in *seconds* of this clock; in the next round of the loop if that is now.
        """
        seconds = max(0.0, seconds)
        timer = ManualTimer(_running_loop(), self.monotonic() + seconds, callback, args)
        with self._lock:
            self._push(timer)
        if self._runs or not seconds:
            timer.arm(seconds, self._elapsed)
        return timer

    async def sleep(self, seconds: float) -> None:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        task = asyncio.current_task()
        before: float | None = None
        if task is not None:  # not what a request does
            before, self._sleeping[task] = self._sleeping.get(task), seconds
        timer = self.call_later(self._stretched(seconds, before), _wake, future)
        try:
            await future
        finally:
            timer.cancel()

    def wait(self, event: threading.Event, seconds: float) -> bool:
        before = self._waiting.get(threading.current_thread())
        stretched = self._stretched(seconds, None if before is None else before.interval)
        wait = ThreadWait(self, event, self.monotonic() + stretched, seconds)
        with self._lock:
            self._waiting[wait.thread] = wait
            self._push(wait)
            self._lock.notify_all()
        # It stays the last wait of its thread afterwards: see ``_busy``.
        return wait.block()

    def seconds_until(self, due: float) -> float | None:
        """
        The real seconds until *due*, 0 if it has come; None if only a move gets there.
        """
        if not self._runs or self._stands_at is not None:
            return None
        return min(max(0.0, due - self.monotonic()), threading.TIMEOUT_MAX)

    def advance(self, seconds: float, *, settle: Callable[[], object] = lambda: None) -> None:
        """
        Move the clock by *seconds*, and fire the timers on the way.

        Callbacks run on their loop. On the event loop use ``pass_time``: a coroutine that a
        callback wakes would not run before this returns.

        Args:
            settle: called before the first timer and after each; it returns when all is done that
                the timer began on an event loop.

        Raises:
            TimeoutError: a callback or a thread does not end.
        """
        with self._moving(seconds) as end:
            self._settle()
            settle()
            while (due := self._next(end)) is not None:
                due.fire()
                settle()
                self._settle()

    async def pass_time(self, seconds: float) -> None:
        """
        Like ``advance``, with rounds of the event loop after each timer.
        """
        loop = asyncio.get_running_loop()
        with self._moving(seconds) as end:
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

    @contextmanager
    def _moving(self, seconds: float) -> Iterator[float]:
        """
        Stop the clock, and let it continue at the end, which is *seconds* later.
        """
        assert self._stands_at is None, "one caller at a time moves the clock"
        self._stands_at = now = self.monotonic()
        self._end, self._stride = now + seconds, seconds / MOST_POLLS
        try:
            yield self._end
        finally:
            self._moved = self._stands_at - self._real()
            self._stands_at = None
            if self._runs:
                self._look_again()

    def _stretched(self, seconds: float, before: float | None) -> float:
        """
        The wait of one that has waited for *before* seconds the last time: some intervals more in a
        long move, if it polls.
        """
        if self._stands_at is None or seconds != before or not 0.0 < seconds < self._stride:
            return seconds
        most = (self._end - self._stands_at) // seconds
        return seconds * max(1.0, min(math.ceil(self._stride / seconds), most))

    def _look_again(self) -> None:
        """
        Let all that waits for real time see the new time.
        """
        with self._lock:
            waiting = [entry[2] for entry in self._queue if not entry[2].is_over]
        for wait in waiting:
            if isinstance(wait, ThreadWait):
                wait.look_again()
            elif wait.loop is not None and not wait.loop.is_closed():
                wait.loop.call_soon_threadsafe(self._arm, wait)

    def _arm(self, timer: ManualTimer) -> None:
        seconds = self.seconds_until(timer.due)
        if seconds is not None:
            timer.arm(seconds, self._elapsed)

    def _elapsed(self, timer: ManualTimer) -> None:
        # While the clock is moved, the move fires what is due, and the rest is armed at its end.
        if self._stands_at is None:
            timer.fire()

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
        The last waits of the other threads that an event has woken.
        """
        here = threading.current_thread()
        with self._lock:
            for thread in [thread for thread in self._waiting if not thread.is_alive()]:
                del self._waiting[thread]
            return [
                wait for wait in self._waiting.values() if wait.is_woken and wait.thread is not here
            ]

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
                    self._stand_at(due)
                    return waiting
            self._stand_at(end)
            return None

    def _stand_at(self, moment: float) -> None:
        self._stands_at = max(self.monotonic(), moment)

    def _push(self, waiting: ManualTimer | ThreadWait) -> None:
        if len(self._queue) > self._tidy_at:
            self._queue = [entry for entry in self._queue if not entry[2].is_over]
            heapq.heapify(self._queue)
            self._tidy_at = max(TIDY_AT, 2 * len(self._queue))
        heapq.heappush(self._queue, (waiting.due, next(self._order), waiting))


def _no_time() -> float:
    return 0.0


def _seconds_since(moment: float) -> Callable[[], float]:
    return lambda: seconds_now() - moment


def _wake(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
