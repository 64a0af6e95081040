"""
Large work in turns of the event loop, so that no request holds it up for long.

Work is a coroutine. It awaits a ``checkpoint`` where other work may run, and futures::

    work:    | a a a a . . . . | . . . . . . . | a a a a | ...
    others:            reads, answers, timers            one turn is at most TURN_S

Nothing else drives coroutines step by step. Most work ends within its first turn, at once and
without a future. All other work together has one turn in each round of the loop; while clients are
served whose requests need no turn, each turn is followed by a pause for them.
The smallest work is first, and work that has begun ends before work begins that is not much
smaller, so that all work in progress is at most twice as large as its largest part.

Work with a ``may_go_on`` is asked before each of its steps. While that returns false, the work has
no turn, and ``resume`` asks again.
"""

from __future__ import annotations

import asyncio
from collections.abc import (
    AsyncIterator,
    Callable,
    Coroutine,
    Iterable,
    Iterator,
)
from contextlib import ExitStack, asynccontextmanager, contextmanager
from enum import Enum
from heapq import heappop, heappush
from typing import Any, Final, Generic, TypeVar

from barnabas.storage.clock import perf_counter

T = TypeVar("T")
R = TypeVar("R")

TURN_S: Final = 0.001
"""
The longest turn, in seconds; ``tests/server/requests/test_absurd_requests.py`` measures it.
"""
PAUSE_S: Final = 0.004
"""
The pause after a turn while clients are served, in seconds: large work gets a fifth of the time.
"""
SLOW_S: Final = 0.000_5
"""
The time, in seconds, from which a first turn is slow.
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
PLACES: Final = 4
"""
How many works of each kind take turns aside at once. A match of a pattern keeps up to 8 MiB.
"""
PLACE_S: Final = 1.0
"""
The time, in seconds of turns, after which a work aside gives up its place to one that waits.
``.*orders.*`` takes 0.15 s for 10,000 topics.
"""


class WorkKind(Enum):
    """
    Kinds of work aside, which do not wait for places of each other.
    """

    REQUEST = "request"
    COORDINATOR = "coordinator"


class PlaceLost(Exception):
    """
    A work aside has had its time, and others wait.
    """


class Places:
    """
    The places of works of one kind.
    """

    def __init__(self) -> None:
        self._free = asyncio.Semaphore(PLACES)
        self._waiting = 0

    @property
    def is_full(self) -> bool:
        """
        Whether the next work has to wait.
        """
        return self._free.locked()

    @property
    def is_wanted(self) -> bool:
        """
        Whether a work waits for a place.
        """
        return self._waiting > 0

    @asynccontextmanager
    async def taken(self) -> AsyncIterator[None]:
        """
        Hold a place as long as the block; the first that waits is the first to get one.
        """
        self._waiting += 1
        try:
            await self._free.acquire()
        finally:
            self._waiting -= 1
        try:
            yield
        finally:
            self._free.release()


class Work(Generic[T]):
    """
    A coroutine in progress, and its result.

    It needs no task: the work itself goes on when a future that it awaits is done. What asks for
    the current task (``asyncio.timeout``) does not work in it.
    """

    __slots__ = (
        "_awaited",
        "_error",
        "_future",
        "_is_cancelled",
        "_listener",
        "_result",
        "_turns",
        "is_done",
        "is_held",
        "may_go_on",
        "size",
        "steps",
    )

    def __init__(
        self,
        turns: Turns,
        steps: Coroutine[Any, Any, T],
        size: int,
        may_go_on: Callable[[], bool] | None = None,
    ) -> None:
        self.steps = steps
        self.size = size
        self.may_go_on = may_go_on
        self.is_done = False
        self.is_held = False
        """Whether it has stopped because ``may_go_on`` returned false."""
        self._turns = turns
        self._awaited: asyncio.Future[Any] | None = None
        self._is_cancelled = False
        self._result: T | None = None
        self._error: BaseException | None = None
        self._future: asyncio.Future[T] | None = None
        self._listener: Callable[[T | BaseException], None] | None = None

    @property
    def is_waiting(self) -> bool:
        """
        Whether it awaits a future, and so needs no turn.
        """
        return self._awaited is not None

    def result(self) -> T:
        """
        The result of the steps, which have ended.

        Raises:
            Exception: the steps raised it.
            CancelledError: they were cancelled.
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

    def then(self, listener: Callable[[T | BaseException], None]) -> None:
        """
        Call *listener* with the result or the error when the steps end, soon if they have ended.

        A future would keep the traceback of an error, which refers to this work.
        """
        self._listener = listener
        if self.is_done:
            asyncio.get_running_loop().call_soon(self._settle)

    def future(self) -> asyncio.Future[T]:
        """
        A future of the result, or of the error.
        """
        if self._future is None:
            self._future = asyncio.get_running_loop().create_future()
            self._settle()
        return self._future

    def cancel(self) -> None:
        """
        Raise ``CancelledError`` where the steps are, when they go on.
        """
        if self._awaited is not None:
            self._awaited.cancel()
        else:
            self._is_cancelled = True

    def go_on(self, now: Callable[[], float], end: float) -> None:
        """
        Take steps until *end*, until they have ended or await a future, or as long as they may go
        on.
        """
        steps, may_go_on = self.steps, self.may_go_on
        try:
            while now() < end:
                if self._is_cancelled:
                    self._is_cancelled = False
                    awaited = steps.throw(asyncio.CancelledError())
                elif may_go_on is not None and not may_go_on():
                    self.is_held = True
                    return
                else:
                    awaited = steps.send(None)
                if awaited is not None:
                    self.wait_for(awaited)
                    return
        except StopIteration as ended:
            self._result = ended.value
        except (Exception, asyncio.CancelledError) as error:  # raised again by ``result``
            self._error = error
        else:
            return
        self.is_done = True
        self._settle()

    def wait_for(self, future: asyncio.Future[Any]) -> None:
        """
        Go on when *future* is done.
        """
        # A future asks for this of whoever drives a coroutine, as asyncio's tasks do.
        future._asyncio_future_blocking = False
        self._awaited = future
        future.add_done_callback(self._wake)
        if self._is_cancelled:
            self._is_cancelled = False
            future.cancel()

    def _wake(self, _future: asyncio.Future[Any]) -> None:
        self._awaited = None
        self._turns.advance(self)

    def _settle(self) -> None:
        if not self.is_done:
            return
        future, listener = self._future, self._listener
        if future is not None and not future.done():
            if isinstance(self._error, asyncio.CancelledError):
                future.cancel()
            elif self._error is not None:
                future.set_exception(self._error)
            else:
                future.set_result(self._result)  # type: ignore[arg-type]  # it is done
        if listener is not None:
            self._listener = None
            error, self._error = self._error, None
            outcome: Any = self._result if error is None else error
            listener(outcome)


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
        self.on_slow: Callable[[], None] = lambda: None
        """Called when a first turn has taken ``SLOW_S`` or longer."""
        self.on_pause: Callable[[], None] = lambda: None
        """Called when all work that has begun has ended, though more may wait."""
        self.served = 0
        """The number of requests that were served without a turn here: others count them."""
        self._served = 0
        self._now = now
        self._calm_s = calm_s
        self._aside = asyncio.Lock()
        self._places = {kind: Places() for kind in WorkKind}
        self._waiting: list[tuple[int, int, Work[Any]]] = []  # a heap
        self._begun: list[Work[Any]] = []  # each smaller than the one before; the last has the turn
        self._held: list[Work[Any]] = []  # those that may not go on, oldest first
        self._elsewhere = 0  # large works in threads and coroutines
        self._number = 0
        self._is_scheduled = False
        self._calm: asyncio.TimerHandle | None = None  # there was large work a moment ago

    @property
    def is_busy(self) -> bool:
        """
        Whether there is large work, or was within ``calm_s``.
        """
        return bool(self._begun or self._waiting or self._elsewhere) or self._calm is not None

    def start(
        self,
        steps: Coroutine[Any, Any, T],
        size: int = 0,
        may_go_on: Callable[[], bool] | None = None,
    ) -> Work[T]:
        """
        Begin work, at once unless it has a size and other work waits.

        Args:
            size: about how many bytes or entries the work has; the smallest is first.
            may_go_on: returns whether the work may take its next step; whoever lets it go on calls
                ``resume``.
        """
        work = Work(self, steps, size, may_go_on)
        if size and (self._begun or self._waiting):
            self._go_on_later(work)
        else:
            self.advance(work)
        return work

    def begin(self, steps: Coroutine[Any, Any, T], may_go_on: Callable[[], bool]) -> T | Work[T]:
        """
        Take the first step, and return the result, or the work that goes on.

        Here and not in its compiled caller: compiled code makes a code object and a frame for the
        traceback of each exception, also of the one by which a coroutine ends.

        Raises:
            Exception: the steps raised it.
        """
        try:
            awaited = steps.send(None)
        except StopIteration as ended:
            result: T = ended.value
            return result
        work = Work(self, steps, 0, may_go_on)
        if awaited is None:
            self.advance(work)
        else:
            work.wait_for(awaited)
        return work

    def advance(self, work: Work[Any]) -> None:
        """
        Let *work* take a turn, and further ones later unless it waits for something else.
        """
        self._take_first_turn(work)
        if work.is_held:
            self._held.append(work)
        elif not (work.is_done or work.is_waiting):
            self._go_on_later(work)

    def _go_on_later(self, work: Work[Any]) -> None:
        self._number += 1
        if self._begun or self._waiting:
            heappush(self._waiting, (work.size, self._number, work))
        else:
            self._begun.append(work)
            if not self._elsewhere:
                self._be_busy()
        self._schedule()

    def resume(self) -> None:
        """
        Let work go on that was held and may go on now.
        """
        held, self._held = self._held, []
        for work in held:
            if work.may_go_on is None or work.may_go_on():
                work.is_held = False
                self._go_on_later(work)
            else:
                self._held.append(work)

    async def finish(
        self,
        steps: Coroutine[Any, Any, T],
        size: int = 0,
        may_go_on: Callable[[], bool] | None = None,
    ) -> T:
        """
        Take the *steps* in turns, and return their result.

        Raises:
            Exception: the steps raised it.
        """
        work = self.start(steps, size, may_go_on)
        return work.result() if work.is_done else await work.future()

    async def aside(
        self,
        make: Callable[[], Coroutine[Any, Any, T]],
        kind: WorkKind,
        is_over: Callable[[], bool] = lambda: False,
    ) -> T | None:
        """
        Take steps that may last for minutes, and return their result.

        None is returned, and no further step taken, once *is_over* returns true.

        All of them together get a fifth of the time, and no other large work waits for them. Those
        that do not end within their first turn take turns in rotation, ``PLACES`` of each kind at
        once; the others wait for a place and begin again, so that they keep nothing meanwhile. They
        end when the caller is cancelled.

        Args:
            make: returns the steps, which change nothing else.

        Raises:
            Exception: the steps raised it.
            PlaceLost: the steps have taken ``PLACE_S``, and another work of the kind waits.
        """
        work = self._first_turn(make)
        if work.is_done:
            return work.result()
        places = self._places[kind]
        is_full = places.is_full
        if is_full:
            work.steps.close()
        async with places.taken():
            if is_full:
                if is_over():
                    return None
                work = self._first_turn(make)
            spent_s = 0.0
            while not work.is_done:
                if spent_s >= PLACE_S and places.is_wanted:
                    work.steps.close()
                    raise PlaceLost
                async with self._aside:
                    if is_over():
                        work.steps.close()
                        return None
                    await asyncio.sleep(PAUSE_S)
                    begin = self._now()
                    work.go_on(self._now, begin + TURN_S)
                    spent_s += self._now() - begin
        return work.result()

    def _first_turn(self, make: Callable[[], Coroutine[Any, Any, T]]) -> Work[T]:
        work = Work(self, make(), 0)
        self._take_first_turn(work)
        return work

    def _take_first_turn(self, work: Work[Any]) -> None:
        began = self._now()
        work.go_on(self._now, began + TURN_S)
        if self._now() - began >= SLOW_S:
            self.on_slow()

    @contextmanager
    def elsewhere(self) -> Iterator[None]:
        """
        Say that a thread or a coroutine does large work as long as the block: ``on_busy`` is called
        as for that of the turns.
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
        Whether there is no large work but so much in threads and coroutines.
        """
        return self._elsewhere == elsewhere and not (self._begun or self._waiting)

    async def between(self, items: Iterable[T]) -> AsyncIterator[T]:
        """
        The *items*; other work runs between two of them once ``TURN_S`` has passed. From then on
        this is large work.
        """
        end = self._now() + TURN_S
        with ExitStack() as busy:
            is_busy = False
            for item in items:
                yield item
                if self._now() >= end:
                    if not is_busy:
                        is_busy = True
                        busy.enter_context(self.elsewhere())
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
        work = begun[-1]
        work.go_on(self._now, self._now() + TURN_S)
        if work.is_done or work.is_held or work.is_waiting:
            begun.pop()
            if work.is_held:
                self._held.append(work)
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


def settle(future: asyncio.Future[T], result: T) -> None:
    """
    Set the *result*, unless there is one or the waiter was cancelled.
    """
    if not future.done():
        future.set_result(result)
