"""
Answers that wait: for an fsync, for bytes to fetch, for members of a group, for time to pass.

Kafka keeps its ``DelayedOperation``s in purgatories, and looks at those of a key when something
happens to it. Here each holds what it waits for, and is completed by that.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor
from time import perf_counter
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from barnabas.protocol.codec.primitives import Buffer
from barnabas.protocol.codec.schema import Message
from barnabas.server.scheduling.turns import TURN_S, Turns

if TYPE_CHECKING:
    from barnabas.server.clock import ServerClock

Outcome: TypeAlias = "Message | list[Buffer] | Exception | None"
"""
A response, its bytes, the error that the request failed with, or that there is no answer.
"""


class Delayed:
    """
    The answer to a request whose effects are done.

    Invariants:

    1. There is one outcome: the first ``answer`` or ``fail`` decides, later ones do nothing.
    2. The listener hears the outcome once, also when it comes after the outcome.
    3. After ``cancel`` nobody hears anything.

    Used on the event loop's thread only.
    """

    __slots__ = ("_listener", "_outcome", "done")

    is_seen_when_answered = False
    """Whether the effects of the request are to be seen by others only when it is answered."""

    def __init__(self) -> None:
        self._listener: Callable[[Outcome], None] | None = None
        self._outcome: Outcome = None
        self.done = False

    def then(self, listener: Callable[[Outcome], None]) -> None:
        """
        Let *listener* hear the outcome, at once if there is one.
        """
        if self.done:
            listener(self._outcome)
        else:
            self._listener = listener

    async def outcome(self) -> Any:
        """
        The answer, when it is there.

        Raises:
            Exception: what it failed with.
        """
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

        def settle(outcome: Outcome) -> None:
            if future.done():
                return
            if isinstance(outcome, Exception):
                future.set_exception(outcome)
            else:
                future.set_result(outcome)

        self.then(settle)
        return await future

    def answer(self, response: Message | list[Buffer] | None) -> None:
        """
        This is the answer.
        """
        self._settle(response)

    def fail(self, error: Exception) -> None:
        """
        There is no answer, but this error.
        """
        self._settle(error)

    def cancel(self) -> None:
        """
        Nobody waits any more: the connection is gone.
        """
        self._listener = None
        self._settle(None)

    def hurry(self) -> None:
        """
        Something waits behind this answer; give the one that is possible now, if there is one.
        """

    def _settle(self, outcome: Outcome) -> None:
        if self.done:
            return
        self.done = True
        self._outcome = outcome
        listener, self._listener = self._listener, None
        if listener is not None:
            listener(outcome)


class PurgatoryFetch(Protocol):
    """
    A fetch that can wait.
    """

    def complete(self) -> None:
        """
        Answer, or look again.
        """

    def hurry(self) -> None:
        """
        End the wait.
        """

    def fail(self, error: Exception) -> None:
        """
        Answer with this error.
        """


class FetchPurgatory:
    """
    All fetches that wait, those whose turn has come, and what they share.

    The fetches of consumers and those of share groups have one each.
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
        self.waiting: set[PurgatoryFetch] = set()
        self._ready: deque[PurgatoryFetch] = deque()
        self._is_scheduled = False

    def ready(self, fetch: PurgatoryFetch) -> None:
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
            fetch.hurry()

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
