"""
The threads for what blocks, in pools that do not wait for each other.

===========  ==================================================================================
``reads``    what clients read and the page cache lacks
``syncs``    what acknowledgements wait for
``batches``  batches that take long to examine; they take much memory as well: one at a time, and
             no client before all others
``changes``  the metadata log, logs that are made and deleted, the start and the stop
``upkeep``   loading coordinators, and other work of which there is little or which is long
===========  ==================================================================================

A disk that is busy with reads can then delay reads only, as far as the broker decides it. A pool
has no thread until something is submitted to it, and no second one while the first is idle.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from barnabas.server.fair_queue import FairQueue

T = TypeVar("T")


class Pool(ThreadPoolExecutor):
    """
    Threads of which there can be more or fewer later.
    """

    def resize(self, threads: int) -> None:
        """
        Have up to so many *threads* from now on; those above stay, with less to do, until the end.
        """
        # Compared with the threads that there are whenever work is submitted.
        self._max_workers = threads


class Workers:
    """
    The pools of a broker, each with up to ``background.threads``, but for ``batches``.
    """

    def __init__(self, threads: int) -> None:
        self.reads = Pool(threads, thread_name_prefix="reads")
        self.syncs = Pool(threads, thread_name_prefix="syncs")
        self.batches = FairQueue(Pool(1, thread_name_prefix="batches"))
        self.changes = Pool(threads, thread_name_prefix="changes")
        self.upkeep = Pool(threads, thread_name_prefix="upkeep")

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
        Those of several threads.
        """
        return self.reads, self.syncs, self.changes, self.upkeep

    def resize(self, threads: int) -> None:
        """
        Have up to so many *threads* in each of the ``pools`` from now on.
        """
        for pool in self.pools:
            pool.resize(threads)

    def shutdown(self) -> None:
        """
        Begin nothing more. What is under way is not waited for.
        """
        for pool in (*self.pools, self.batches.executor):
            pool.shutdown(wait=False, cancel_futures=True)
