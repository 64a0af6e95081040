"""
Fetches that wait: for bytes, for their time to run out, or for the disk.

Kafka looks at every waiting fetch of a partition after every append to it
(``DelayedFetch.tryComplete``). Here a fetch hears how many bytes became readable and counts down:
an append costs each of them one addition and no read.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING, Final

from barnabas.protocol.errors import UnknownServerError
from barnabas.server.purgatory import Delayed, FetchPurgatory
from barnabas.server.scheduling.turns import Steps, finished
from barnabas.storage.fs.interface import WouldBlock

if TYPE_CHECKING:
    from barnabas.protocol.messages.fetch import FetchResponse
    from barnabas.server.clock import Timer
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
