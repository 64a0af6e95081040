"""
Fetches that wait for bytes.

Kafka looks at every waiting fetch of a partition after every append to it
(``DelayedFetch.tryComplete``). Here a fetch is told how many bytes became readable and counts down:
an append costs each of them one addition and no read.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from time import perf_counter
from typing import TYPE_CHECKING

from barnabas.server.requests.delayed import Delayed
from barnabas.server.scheduling.turns import TURN_S

if TYPE_CHECKING:
    from barnabas.server.clock import Timer
    from barnabas.server.partitions.partition import Partition


class Watch:
    """
    What one waiting fetch wants of one partition.

    ``available`` counts the readable bytes, never more than the partition's limit in the request:
    bytes beyond it would not be part of the answer, so they do not count towards ``min_bytes``
    (Kafka ``DelayedFetch.tryComplete``). ``segment`` is the base offset of the one the fetch would
    read from, -1 where that is not known.
    """

    __slots__ = ("available", "fetch", "limit", "partition", "read_committed", "segment")

    def __init__(
        self,
        fetch: DelayedFetch,
        partition: Partition,
        *,
        available: int,
        limit: int,
        segment: int,
        read_committed: bool,
    ) -> None:
        self.fetch = fetch
        self.partition = partition
        self.available = available
        self.limit = limit
        self.segment = segment
        self.read_committed = read_committed

    def more(self, size: int) -> None:
        """
        That many more bytes can be read.
        """
        added = min(size, self.limit - self.available)
        if added > 0:
            self.available += added
            self.fetch.arrived(added)

    def changed(self) -> None:
        """
        The partition is not what it was: gone, offline, truncated. The fetch has to look again.
        """
        self.fetch.wake()


class DelayedFetch(Delayed):
    """
    A fetch that waits until enough bytes are there, or its time is up.

    ``read`` makes the answer from what the logs hold by then; it may answer later still, when the
    page cache lacks the bytes, so it is given the fetch and calls ``answer`` itself.
    """

    __slots__ = ("_missing", "_purgatory", "_read", "_timer", "_watches", "_woken", "is_hurried")

    def __init__(self, purgatory: FetchPurgatory, read: Callable[[DelayedFetch], None]) -> None:
        super().__init__()
        self._purgatory = purgatory
        self._read = read
        self._missing = 0
        self.is_hurried = False  # it may not begin to wait any more
        self._watches: list[Watch] = []
        self._timer: Timer | None = None
        self._woken = False

    def wait(self, watches: list[Watch], missing: int, timer: Timer) -> None:
        """
        Begin to wait for that many more bytes. The timer is one that calls ``wake``.
        """
        self._watches = watches
        self._missing = missing
        self._timer = timer
        self._purgatory.waiting.add(self)
        for watch in watches:
            if self._woken:
                return
            watch.partition.add_watch(watch)

    def arrived(self, size: int) -> None:
        self._missing -= size
        if self._missing <= 0:
            self.wake()

    def wake(self) -> None:
        """
        Answer with what is there, once this turn of the loop has ended.

        Not at once: the append that woke us is often one of several from the same read of a socket,
        and one answer that carries all of them is cheaper than one for the first and a new fetch.
        """
        if not self._woken and not self.done:
            self._woken = True
            self._leave()
            self._purgatory.ready(self)

    def complete(self) -> None:
        """
        Read and answer.
        """
        if not self.done:
            self._read(self)

    def hurry(self) -> None:
        self.is_hurried = True
        if self._timer is not None:
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
    All fetches that wait, and those whose turn has come.
    """

    __slots__ = ("_is_scheduled", "_ready", "waiting")

    def __init__(self) -> None:
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
        The broker stops: everybody gets what there is.
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
