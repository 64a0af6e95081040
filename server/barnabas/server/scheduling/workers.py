"""
Pools of threads for blocking work, which do not wait for each other.

===========  ==================================================================================
``reads``    reads of clients that the page cache lacks
``syncs``    fsyncs that acknowledgements wait for
``batches``  the validation of large batches: one at a time, since it takes much memory, and
             fairly among the clients
``changes``  the metadata log, creation and deletion of logs, the start and the stop
``upkeep``   loading coordinators, and other work that is rare or long
===========  ==================================================================================

A disk that is busy with reads delays only reads, as far as the broker is concerned. A pool starts
its first thread for its first work, and no second one while the first is idle.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from barnabas.server.scheduling.fair_queue import FairQueue

T = TypeVar("T")


class Pool(ThreadPoolExecutor):
    """
    A pool that can be resized.
    """

    def resize(self, threads: int) -> None:
        """
        Use up to *threads* from now on. Threads beyond that stay, with less work, until the end.
        """
        # ThreadPoolExecutor compares this with its threads whenever work is submitted.
        self._max_workers = threads


class Workers:
    """
    The pools of a broker, each with up to ``background.threads``; ``batches`` has one thread.
    """

    def __init__(self, threads: int) -> None:
        self.reads = Pool(threads, thread_name_prefix="reads")
        self.syncs = Pool(threads, thread_name_prefix="syncs")
        self.batches = FairQueue(Pool(1, thread_name_prefix="batches"))
        self.changes = Pool(threads, thread_name_prefix="changes")
        self.upkeep = Pool(threads, thread_name_prefix="upkeep")

    async def in_changes(self, work: Callable[[], T]) -> T:
        """
        The result of *work*, which may block, done in ``changes``.

        Raises:
            Exception: what the work raises.
        """
        return await asyncio.get_running_loop().run_in_executor(self.changes, work)

    async def in_upkeep(self, work: Callable[[], T]) -> T:
        """
        The result of *work*, which may block, done in ``upkeep``.

        Raises:
            Exception: what the work raises.
        """
        return await asyncio.get_running_loop().run_in_executor(self.upkeep, work)

    @property
    def pools(self) -> tuple[Pool, ...]:
        """
        The pools with several threads.
        """
        return self.reads, self.syncs, self.changes, self.upkeep

    def resize(self, threads: int) -> None:
        """
        Resize each of the ``pools``.
        """
        for pool in self.pools:
            pool.resize(threads)

    def shutdown(self) -> None:
        """
        Start no more work, and do not wait for the running one.
        """
        for pool in (*self.pools, self.batches.executor):
            pool.shutdown(wait=False, cancel_futures=True)
