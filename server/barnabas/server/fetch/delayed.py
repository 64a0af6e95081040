"""
Fetches that wait: for bytes, for their time to run out, or for the disk.

Kafka looks at every waiting fetch of a partition after every append to it
(``DelayedFetch.tryComplete``). Here a fetch hears how many bytes became readable and counts down:
an append costs each of them one addition and no read.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from barnabas.server.purgatory import FetchPurgatory, Signal, WaitingFetch
from barnabas.storage.fs.interface import WouldBlock

if TYPE_CHECKING:
    from barnabas.server.fetch.reader import FetchPlan, LogReadResult


class DelayedFetch(WaitingFetch):
    """
    A fetch that cannot be answered at once (Kafka ``DelayedFetch``).
    """

    __slots__ = ("_missing", "_plan")

    def __init__(self, purgatory: FetchPurgatory, plan: FetchPlan) -> None:
        super().__init__(purgatory)
        self._plan = plan
        self._missing = 0

    async def reading(self, reading: LogReadResult | None) -> LogReadResult:
        """
        Read for the answer, after a first *reading*; return None if a thread has to read.
        """
        plan = self._plan
        if reading is None:
            reading = await self._read_elsewhere()
        if self.is_hurried or plan.is_enough(reading):
            return reading
        # Of what was appended meanwhile, no watch would tell.
        if not plan.is_outdated(reading):
            await self._wait(reading)
        try:
            return await plan.read(nowait=True)
        except WouldBlock:
            pass
        return await self._read_elsewhere()

    async def _read_elsewhere(self) -> LogReadResult:
        try:
            reading = await self.in_thread(lambda: self._plan.read(nowait=False))
        except asyncio.CancelledError:
            self.has_left = True
            raise
        assert reading is not None, "its client is there"
        return reading

    async def _wait(self, reading: LogReadResult) -> None:
        self._missing = self._plan.min_bytes - reading.size
        self.watches = self._plan.watches(reading, self)
        self._signal = Signal()
        self.begin(self._plan.max_wait_ms)
        try:
            for watch in self.watches:
                if self not in self.purgatory.waiting:  # the partition before it has changed
                    break
                watch.partition.add_watch(watch)
            await self.wait()
        finally:
            self.leave()

    def arrived(self, size: int) -> None:
        self._missing -= size
        if self._missing <= 0:
            self.wake()

    def wake(self) -> None:
        if self._signal is not None:
            super().wake()
            self.leave()
