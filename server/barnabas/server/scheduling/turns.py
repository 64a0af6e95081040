"""
Large work in turns of the event loop, so that no request holds it up for long.

Work in steps is a generator: it yields where other work may run, and returns its result::

    steps:   | a a a a . . . . | . . . . . . . | a a a a | ...
    others:            reads, answers, timers            one turn is at most TURN_S

Most work ends within its first turn, at once and without a future. All other work together has one
turn in each round of the loop; while clients are served whose requests need no turn, each turn is
followed by a pause for them.
The smallest work is first, and work that has begun ends before work begins that is not much
smaller, so that all work in progress is at most twice as large as its largest part.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from heapq import heappop, heappush
from time import perf_counter
from typing import Any, Final, Generic, TypeAlias, TypeVar, cast

T = TypeVar("T")
R = TypeVar("R")
Steps: TypeAlias = Generator[None, None, T]

TURN_S: Final = 0.001
"""
The longest turn, in seconds; ``tests/server/requests/test_absurd_requests.py`` measures it.
"""
PAUSE_S: Final = 0.004
"""
The pause after a turn while clients are served, in seconds: large work gets a fifth of the time.
"""
CALM_S: Final = 1.0
"""
The time without large work after which ``on_busy`` is called, in seconds: a request with several
parts may wait between them.
"""
AS_MUCH_SMALLER: Final = 2
"""
How many times smaller than the work in progress new work has to be to interrupt it.
"""

ENTRIES_PER_STEP: Final = 16
"""
How many entries of a hot request are served in one step: a request with fewer needs no turn.
"""


class Work(Generic[T]):
    """
    Steps in progress, and their result.
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
        The result of the steps, which have ended.

        Raises:
            Exception: the steps raised it.
        """
        assert self.is_done
        error, self._error = self._error, None
        if error is not None:
            try:
                raise error
            finally:
                # Its traceback refers to this frame, and so to the work and its request.
                del error
        return self._result  # type: ignore[return-value]  # it is done

    def future(self) -> asyncio.Future[T]:
        """
        A future of the result, or of the error.
        """
        if self._future is None:
            self._future = asyncio.get_running_loop().create_future()
            self._settle()
        return self._future

    def go_on(self, now: Callable[[], float], end: float) -> None:
        """
        Take steps until *end*, or until they have ended.
        """
        steps = self.steps
        try:
            while now() < end:
                next(steps)
        except StopIteration as ended:
            self._result = ended.value
        except Exception as error:  # raised again by ``result``
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
    Lets large work take turns with all other work of the event loop.

    Used on the event loop's thread only.
    """

    def __init__(self, now: Callable[[], float] = perf_counter, calm_s: float = CALM_S) -> None:
        """
        Args:
            now: returns a time in seconds.
            calm_s: see ``CALM_S``.
        """
        self.on_busy: Callable[[bool], None] = lambda _: None
        """Called with true when work exceeds its first turn, and with false after ``calm_s``."""
        self.on_pause: Callable[[], None] = lambda: None
        """Called when all work that has begun has ended, though more may wait."""
        self.served = 0
        """The number of requests that were served without a turn here: others count them."""
        self._served = 0
        self._now = now
        self._calm_s = calm_s
        self._aside = asyncio.Lock()
        self._waiting: list[tuple[int, int, Work[Any]]] = []  # a heap
        self._begun: list[Work[Any]] = []  # each smaller than the one before; the last has the turn
        self._elsewhere = 0  # large works in threads
        self._number = 0
        self._is_scheduled = False
        self._calm: asyncio.TimerHandle | None = None  # there was large work a moment ago

    def start(self, steps: Steps[T], size: int = 0) -> Work[T]:
        """
        Begin work, at once unless it has a size and other work waits.

        Args:
            size: about how many bytes or entries the work has; the smallest is first.
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
                if not self._elsewhere:
                    self._be_busy()
            self._schedule()
        return work

    async def finish(self, steps: Steps[T], size: int = 0) -> T:
        """
        Take the *steps* in turns, and return their result.

        Raises:
            Exception: the steps raised it.
        """
        work = self.start(steps, size)
        return work.result() if work.is_done else await work.future()

    async def aside(self, steps: Steps[T], is_over: Callable[[], bool] = lambda: False) -> T | None:
        """
        Take *steps* that may last for minutes, and return their result.

        None is returned, and no further step taken, once *is_over* returns true.

        All of them together get a fifth of the time, one turn each in rotation, and no other large
        work waits for them. They end when the caller is cancelled.

        Raises:
            Exception: the steps raised it.
        """
        work = Work(steps, 0)
        work.go_on(self._now, self._now() + TURN_S)
        while not work.is_done:
            async with self._aside:
                await asyncio.sleep(PAUSE_S)
                if is_over():
                    steps.close()
                    return None
                work.go_on(self._now, self._now() + TURN_S)
        return work.result()

    @contextmanager
    def elsewhere(self) -> Iterator[None]:
        """
        Say that a thread does large work as long as the block: ``on_busy`` is called as for that of
        the event loop.
        """
        self._elsewhere += 1
        if self._is_only(1):
            self._be_busy()
        try:
            yield
        finally:
            self._elsewhere -= 1
            if self._is_only(0):
                self._calm_down()

    def _is_only(self, elsewhere: int) -> bool:
        """
        Whether there is no large work but so much in threads.
        """
        return self._elsewhere == elsewhere and not (self._begun or self._waiting)

    async def between(self, items: Iterable[T]) -> AsyncIterator[T]:
        """
        The *items*; other work runs between two of them once ``TURN_S`` has passed.
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
            before, self._served = self._served, self.served
            if before == self._served:
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
        elif not self._elsewhere:
            self._calm_down()

    def _calm_down(self) -> None:
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
    Take all *steps* at once, where the event loop does not wait for them, and return their result.
    """
    try:
        while True:
            next(steps)
    except StopIteration as ended:
        return cast("T", ended.value)


def each_in_steps(make: Callable[[T], Steps[R]], items: Iterable[T]) -> Steps[list[R]]:
    """
    The results of the steps that *make* returns for each of *items*.
    """
    made = []
    for item in items:
        made.append((yield from make(item)))
        yield
    return made


def map_in_steps(make: Callable[[T], R], items: Iterable[T]) -> Steps[list[R]]:
    """
    The results of *make* for each of *items*; other work may run between two of them.
    """
    made = []
    for item in items:
        made.append(make(item))
        yield
    return made


def at_once(make: Callable[[T], R]) -> Callable[[T], Steps[R]]:
    """
    *make* where steps are expected; it takes one.
    """

    def steps(argument: T) -> Steps[R]:
        return make(argument)
        yield

    return steps
