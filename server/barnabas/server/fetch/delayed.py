"""
Fetches that wait: for bytes, for their time to run out, or for the disk.

Kafka looks at every waiting fetch of a partition after every append to it
(``DelayedFetch.tryComplete``). Here a fetch hears how many bytes became readable and counts down:
an append costs each of them one addition and no read.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor
from enum import Enum
from time import perf_counter
from typing import TYPE_CHECKING, Final

from barnabas.protocol.errors import UnknownServerError
from barnabas.server.purgatory import Delayed
from barnabas.server.scheduling.turns import TURN_S, Steps, Turns, finished
from barnabas.storage.fs.interface import WouldBlock

if TYPE_CHECKING:
    from barnabas.protocol.messages.fetch import FetchResponse
    from barnabas.server.clock import ServerClock, Timer
    from barnabas.server.fetch.reader import FetchPlan, LogReadResult
    from barnabas.server.partitions.watch import Watch


class FetchState(Enum):
    """
    What a delayed fetch does.

    ::

        READING ---> WAITING ---> READY ---> READING ---> ANSWERING
           |                        |                         ^
           +------------------------+-------------------------+
    """

    READING = "a thread looks for what the page cache lacks"
    WAITING = "too few bytes are there"
    READY = "its wait is over, and its turn comes"
    ANSWERING = "its response is made"


S = FetchState
TRANSITIONS: Final = {
    S.READING: frozenset({S.WAITING, S.READING, S.ANSWERING}),
    S.WAITING: frozenset({S.READY}),
    S.READY: frozenset({S.READING, S.ANSWERING}),
    S.ANSWERING: frozenset({S.READING}),
}


class DelayedFetch(Delayed):
    """
    A fetch that cannot be answered at once (Kafka ``DelayedFetch``).

    Invariants:

    1. It watches its partitions, has a timer, and is in the purgatory's ``waiting``, while it is
       WAITING, and at no other time.
    2. ``hurry`` ends its wait, also one that has not begun.
    """

    __slots__ = (
        "_is_hurried",
        "_min_bytes",
        "_missing",
        "_plan",
        "_purgatory",
        "_respond",
        "_timer",
        "_wait_s",
        "_watches",
        "state",
    )

    def __init__(
        self,
        purgatory: FetchPurgatory,
        plan: FetchPlan,
        respond: Callable[[LogReadResult], Steps[FetchResponse]],
    ) -> None:
        """
        Args:
            respond: makes the response of what was read.
        """
        super().__init__()
        self._purgatory = purgatory
        self._plan = plan
        self._respond = respond
        self._missing = 0
        self._is_hurried = False
        self._watches: list[Watch] = []
        self._timer: Timer | None = None
        self.state = S.READING

    def _become(self, state: FetchState) -> None:
        assert state in TRANSITIONS[self.state], f"a fetch: {self.state} -> {state}"
        self.state = state

    # Reading

    def read_elsewhere(self, *, is_last: bool = False) -> None:
        """
        Read in a thread, where it does no harm to wait for the disk.

        Args:
            is_last: the wait is over; answer with whatever is there.
        """
        self._become(S.READING)

        def read(future: asyncio.Future[LogReadResult]) -> None:
            if future.cancelled() or self.done:
                return
            error = future.exception()
            if error is not None:
                self.fail(error if isinstance(error, Exception) else UnknownServerError())
            elif is_last:
                self._answer(self._respond(future.result()))
            else:
                self.proceed(future.result())

        future = asyncio.get_running_loop().run_in_executor(
            self._purgatory.reads, lambda: finished(self._plan.read(nowait=False))
        )
        future.add_done_callback(read)

    def proceed(self, reading: LogReadResult) -> None:
        """
        Answer with the *reading*, or wait for more.
        """
        plan = self._plan
        if self._is_hurried or plan.is_enough(reading):
            self._answer(self._respond(reading))
        elif plan.is_outdated(reading):
            # No watch has seen what was appended, and others may have come between.
            self._read_and_answer()
        else:
            self._wait(reading)

    def complete(self) -> None:
        """
        The wait is over: answer with whatever is there.
        """
        if not self.done:
            self._read_and_answer()

    def _read_and_answer(self) -> None:
        def read() -> Steps[FetchResponse | None]:
            try:
                reading = yield from self._plan.read(nowait=True)
            except WouldBlock:
                self.read_elsewhere(is_last=True)
                return None
            return (yield from self._respond(reading))

        self._answer(read())

    def _answer(self, steps: Steps[FetchResponse | None]) -> None:
        """
        Answer with what *steps* return, if that is an answer.
        """
        self._become(S.ANSWERING)

        def answer() -> Steps[None]:
            try:
                response = yield from steps
            except Exception as error:  # the client gets an answer, whatever it is
                self.fail(error)
            else:
                if response is not None:
                    self.answer(response)

        self._purgatory.turns.start(answer())

    # Waiting

    def _wait(self, reading: LogReadResult) -> None:
        plan = self._plan
        self._become(S.WAITING)
        self._missing = plan.min_bytes - reading.size
        self._watches = plan.watches(reading, self)
        self._timer = self._purgatory.clock.call_later(plan.max_wait_ms / 1000, self.wake)
        self._purgatory.waiting.add(self)
        for watch in self._watches:
            if self.state is not S.WAITING:  # the partition before it has changed
                return
            watch.partition.add_watch(watch)

    def arrived(self, size: int) -> None:
        self._missing -= size
        if self._missing <= 0:
            self.wake()

    def wake(self) -> None:
        """
        Answer with what is there, once this turn of the loop has ended.

        Not at once: the append that woke this fetch is often one of several from the same read of a
        socket, and one answer that carries all of them is cheaper than one for the first and a new
        fetch.
        """
        if self.state is S.WAITING and not self.done:
            self._become(S.READY)
            self._leave()
            self._purgatory.ready(self)

    def hurry(self) -> None:
        self._is_hurried = True
        self.wake()

    def cancel(self) -> None:
        self._leave()
        super().cancel()

    def _leave(self) -> None:
        for watch in self._watches:
            watch.partition.remove_watch(watch)
        self._watches = []
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._purgatory.waiting.discard(self)


class FetchPurgatory:
    """
    All fetches that wait, those whose turn has come, and what they share.
    """

    __slots__ = ("_is_scheduled", "_ready", "clock", "reads", "turns", "waiting")

    def __init__(self, clock: ServerClock, reads: Executor, turns: Turns) -> None:
        """
        Args:
            reads: threads that read what the page cache lacks.
        """
        self.clock = clock
        self.reads = reads
        self.turns = turns
        self.waiting: set[DelayedFetch] = set()
        self._ready: deque[DelayedFetch] = deque()
        self._is_scheduled = False

    def ready(self, fetch: DelayedFetch) -> None:
        """
        Complete that fetch when this turn of the loop has ended, and those before it are complete.

        Where very many are ready, others are served in between.
        """
        self._ready.append(fetch)
        if not self._is_scheduled:
            self._is_scheduled = True
            asyncio.get_running_loop().call_soon(self._complete)

    def wake_all(self) -> None:
        """
        The broker stops: each fetch gets what there is.
        """
        for fetch in tuple(self.waiting):
            fetch.wake()

    def _complete(self) -> None:
        ready = self._ready
        end = perf_counter() + TURN_S
        # Not those that an answer makes ready: what follows closely is answered together.
        for _ in range(len(ready)):
            fetch = ready.popleft()
            try:
                fetch.complete()
            except Exception as error:  # whatever it is, the other fetches are answered
                fetch.fail(error)
            if perf_counter() >= end:
                break
        self._is_scheduled = bool(ready)
        if ready:
            asyncio.get_running_loop().call_soon(self._complete)
