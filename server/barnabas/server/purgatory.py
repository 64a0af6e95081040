"""
Fetches that wait: for records, or for their time to run out.

Kafka keeps its ``DelayedOperation``s in purgatories, and looks at those of a key when something
happens to it. Here each watches what it waits for, and is woken by that.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Coroutine, Generator
from concurrent.futures import Executor
from typing import TYPE_CHECKING, Any, TypeVar

from barnabas.coordination.steps import finished_unless
from barnabas.server.scheduling.turns import TURN_S
from barnabas.storage.clock import perf_counter

if TYPE_CHECKING:
    from barnabas.coordination.clock import ServerClock, Timer
    from barnabas.server.partitions.watch import Watch

logger = logging.getLogger(__name__)

T = TypeVar("T")


class Signal:
    """
    A future without a result, whose waiter goes on at once when it is set.

    Futures of asyncio let their waiters go on in a later round of the loop, all in the same one.
    """

    __slots__ = ("_asyncio_future_blocking", "_listener", "_was_cancelled", "is_set")

    def __init__(self) -> None:
        self._asyncio_future_blocking = False
        self._listener: Callable[[Any], None] | None = None
        self._was_cancelled = False
        self.is_set = False

    def __await__(self) -> Generator[Signal, None, None]:
        if not self.is_set:
            self._asyncio_future_blocking = True
            yield self
        if self._was_cancelled:
            raise asyncio.CancelledError

    def add_done_callback(self, listener: Callable[[Any], None]) -> None:
        """
        Let *listener* hear when it is set.
        """
        self._listener = listener

    def set(self) -> None:
        """
        Let the waiter go on.
        """
        if not self.is_set:
            self.is_set = True
            if self._listener is not None:
                self._listener(self)

    def cancel(self) -> None:
        """
        Cancel the waiter.
        """
        self._was_cancelled = True
        self.set()


class WaitingFetch:
    """
    A fetch that waits until something happens to its partitions, or its time is up.

    Invariants:

    1. It watches its partitions, has a timer, and is in the purgatory's ``waiting``, from ``begin``
       to ``leave``.
    """

    __slots__ = ("_is_ready", "_signal", "_timer", "has_left", "is_hurried", "purgatory", "watches")

    def __init__(self, purgatory: FetchPurgatory) -> None:
        self.purgatory = purgatory
        self.watches: list[Watch] = []
        self.is_hurried = False
        self.has_left = False
        """Whether its client has left while a thread reads."""
        self._signal: Signal | None = None
        self._is_ready = False
        self._timer: Timer | None = None

    @property
    def has_begun(self) -> bool:
        """
        Whether it waits, or has waited.
        """
        return self._timer is not None

    def begin(self, wait_ms: int) -> None:
        """
        Begin to wait, for at most so long.
        """
        self._timer = self.purgatory.clock.call_later(wait_ms / 1000, self.hurry)
        self.purgatory.waiting.add(self)

    async def wait(self) -> None:
        """
        Return once this fetch is woken.
        """
        if self._signal is None:
            self._signal = Signal()
        try:
            await self._signal
        finally:
            self._signal = None

    def arrived(self, size: int) -> None:
        """
        So many bytes became readable.
        """

    def wake(self) -> None:
        """
        Go on, once this turn of the loop has ended.

        Not at once: the append that woke this fetch is often one of several from the same read of a
        socket, and one answer that carries all of them is cheaper than one for the first and a new
        fetch.
        """
        if self._signal is not None and not self._is_ready:
            self._is_ready = True
            self.purgatory.ready(self)

    def hurry(self) -> None:
        """
        End the wait, also one that has not begun.
        """
        self.is_hurried = True
        self.wake()

    def complete(self) -> None:
        """
        Go on now.
        """
        self._is_ready = False
        if self._signal is not None:
            self._signal.set()

    def leave(self) -> None:
        """
        Wait no more.
        """
        for watch in self.watches:
            watch.partition.remove_watch(watch)
        self.watches = []
        if self._timer is not None:
            self._timer.cancel()
        self.purgatory.waiting.discard(self)

    def in_thread(self, read: Callable[[], Coroutine[Any, Any, T]]) -> asyncio.Future[T | None]:
        """
        The result of *read* in a thread, where it does no harm to wait for the disk; None once the
        client has left.
        """
        return asyncio.get_running_loop().run_in_executor(
            self.purgatory.reads, lambda: finished_unless(read(), lambda: self.has_left)
        )


class FetchPurgatory:
    """
    All fetches that wait, those whose turn has come, and what they share.

    The fetches of consumers and those of share groups have one each.
    """

    __slots__ = ("_is_scheduled", "_ready", "clock", "reads", "waiting")

    def __init__(self, clock: ServerClock, reads: Executor) -> None:
        """
        Args:
            reads: threads that read what the page cache lacks.
        """
        self.clock = clock
        self.reads = reads
        self.waiting: set[WaitingFetch] = set()
        self._ready: deque[WaitingFetch] = deque()
        self._is_scheduled = False

    def ready(self, fetch: WaitingFetch) -> None:
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
            except Exception:  # whatever it is, the other fetches are answered
                logger.exception("A fetch that has waited cannot be answered")
            if perf_counter() >= end:
                break
        self._is_scheduled = bool(ready)
        if ready:
            asyncio.get_running_loop().call_soon(self._complete)
