"""
Large work in turns of the event loop, so that nobody waits long for anybody's request.

A generator is work in steps: it yields wherever others may come between, and its last word is its
result::

    steps:   | a a a a . . . . | . . . . . . . | a a a a | ...
    others:            reads, answers, timers            one turn is at most TURN_S

Most of it ends within its first turn, at once and without a future. The rest takes its turns when
the loop comes round, all of it together one turn each time; while others are served, they have the
loop to themselves for some turns after each. The smallest is first, and what has
begun ends before what is not much smaller begins: what is under way at the same time is at most
twice as large as the largest of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Generator, Iterable
from heapq import heappop, heappush
from time import perf_counter
from typing import Any, Final, Generic, TypeAlias, TypeVar, cast

T = TypeVar("T")
R = TypeVar("R")
Steps: TypeAlias = Generator[None, None, T]

TURN_S: Final = 0.001
"""
How long large work may hold the event loop at a time, in seconds.
"""
PAUSE_S: Final = 0.004
"""
How long others have the loop to themselves after each turn, while there are some, in seconds.
"""
CALM_S: Final = 1.0
"""
How long after the last large work it is told that there is none: what has several parts, with
waits between them, is still there.
"""
AS_MUCH_SMALLER: Final = 2
"""
How many times smaller work has to be to come before what has begun.
"""

ENTRIES_PER_STEP: Final = 16
"""
How many entries of a hot request are served in one step: a request with fewer needs no turn.
"""


class Work(Generic[T]):
    """
    Steps, and what has become of them.
    """

    __slots__ = ("_error", "_future", "_result", "is_done", "size", "steps")

    def __init__(self, steps: Steps[T], size: int) -> None:
        self.steps = steps
        self.size = size
        self.is_done = False
        self._result: T | None = None
        self._error: Exception | None = None
        self._future: asyncio.Future[T] | None = None

    def result(self) -> T:
        """
        What the steps have returned.

        Raises:
            Exception: what they have raised.
        """
        assert self.is_done
        error, self._error = self._error, None
        if error is not None:
            try:
                raise error
            finally:
                # What an error has gone through it refers to: this work, and the request with it.
                del error
        return self._result  # type: ignore[return-value]  # it is done

    def future(self) -> asyncio.Future[T]:
        """
        What has the result, or the error, when the steps have ended.
        """
        if self._future is None:
            self._future = asyncio.get_running_loop().create_future()
            self._settle()
        return self._future

    def go_on(self, now: Callable[[], float], end: float) -> None:
        """
        Take steps until it is *end*, or there are no more.
        """
        steps = self.steps
        try:
            while now() < end:
                next(steps)
        except StopIteration as ended:
            self._result = ended.value
        except Exception as error:  # whoever waits for the result gets it
            self._error = error
        else:
            return
        self.is_done = True
        self._settle()

    def _settle(self) -> None:
        future = self._future
        if future is None or not self.is_done or future.done():
            return
        if self._error is not None:
            future.set_exception(self._error)
        else:
            future.set_result(self._result)  # type: ignore[arg-type]  # it is done


class Turns:
    """
    Lets large work take turns with all that the event loop does.

    Used on the event loop's thread only.
    """

    def __init__(self, now: Callable[[], float] = perf_counter, calm_s: float = CALM_S) -> None:
        """
        Args:
            now: a time in seconds.
            calm_s: how long after the last large work there is none.
        """
        self.on_busy: Callable[[bool], None] = lambda _: None
        """Hears when work goes beyond its first turn, and when none was left for a while."""
        self.on_pause: Callable[[], None] = lambda: None
        """Hears when none is begun that has not ended, though more may wait."""
        self.activity: Callable[[], int] = lambda: 0
        """Another number whenever somebody was served."""
        self._activity = 0
        self._now = now
        self._calm_s = calm_s
        self._waiting: list[tuple[int, int, Work[Any]]] = []  # a heap
        self._begun: list[Work[Any]] = []  # each smaller than the one before; the last has the turn
        self._number = 0
        self._is_scheduled = False
        self._calm: asyncio.TimerHandle | None = None  # there was large work a moment ago

    def start(self, steps: Steps[T], size: int = 0) -> Work[T]:
        """
        Begin work, at once unless it is large and other work waits.

        Args:
            size: the smallest is first; in bytes or entries, roughly.
        """
        work = Work(steps, size)
        if not (size and (self._begun or self._waiting)):
            work.go_on(self._now, self._now() + TURN_S)
        if not work.is_done:
            self._number += 1
            if self._begun or self._waiting:
                heappush(self._waiting, (size, self._number, work))
            else:
                self._begun.append(work)
                self._be_busy()
            self._schedule()
        return work

    async def finish(self, steps: Steps[T], size: int = 0) -> T:
        """
        The result of *steps*.

        Raises:
            Exception: what they raise.
        """
        work = self.start(steps, size)
        return work.result() if work.is_done else await work.future()

    async def between(self, items: Iterable[T]) -> AsyncIterator[T]:
        """
        The *items*, one after the other; others come between those that take long.
        """
        end = self._now() + TURN_S
        for item in items:
            yield item
            if self._now() >= end:
                await asyncio.sleep(0)
                end = self._now() + TURN_S

    def _schedule(self) -> None:
        if not self._is_scheduled:
            self._is_scheduled = True
            loop = asyncio.get_running_loop()
            before, self._activity = self._activity, self.activity()
            if before == self._activity:
                loop.call_soon(self._turn)
            else:
                loop.call_later(PAUSE_S, self._turn)

    def _turn(self) -> None:
        self._is_scheduled = False
        begun, waiting = self._begun, self._waiting
        if waiting and (not begun or waiting[0][0] * AS_MUCH_SMALLER <= begun[-1].size):
            begun.append(heappop(waiting)[-1])
        begun[-1].go_on(self._now, self._now() + TURN_S)
        if begun[-1].is_done:
            begun.pop()
            if not begun:
                self.on_pause()
        if begun or waiting:
            self._schedule()
        else:
            self._calm = asyncio.get_running_loop().call_later(self._calm_s, self._be_calm)

    def _be_busy(self) -> None:
        if self._calm is None:
            self.on_busy(True)
        else:
            self._calm.cancel()
            self._calm = None

    def _be_calm(self) -> None:
        self._calm = None
        self.on_busy(False)


def finished(steps: Steps[T]) -> T:
    """
    What *steps* return, all taken at once: where the event loop does not wait for them.
    """
    try:
        while True:
            next(steps)
    except StopIteration as ended:
        return cast("T", ended.value)


def each_in_steps(make: Callable[[T], Steps[R]], items: Iterable[T]) -> Steps[list[R]]:
    """
    What the steps that *make* makes of each of *items* return, one after the other.
    """
    made = []
    for item in items:
        made.append((yield from make(item)))
        yield
    return made


def map_in_steps(make: Callable[[T], R], items: Iterable[T]) -> Steps[list[R]]:
    """
    What *make* makes of each of *items*; others may come between any two.
    """
    made = []
    for item in items:
        made.append(make(item))
        yield
    return made
