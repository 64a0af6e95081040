"""
Tasks beside the requests: loops, and jobs that run once.

All of them are named tasks of one ``Background``. A loop survives a failed round. If an essential
task fails, the broker ends rather than serve without it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from barnabas.coordination.clock import ServerClock

logger = logging.getLogger(__name__)


class Background:
    """
    The tasks of a broker.
    """

    def __init__(self, clock: ServerClock) -> None:
        self._clock = clock
        self._tasks: set[asyncio.Task[None]] = set()
        self._failed = asyncio.Event()
        self._failure: BaseException | None = None

    def spawn(self, name: str, work: Coroutine[Any, Any, None], *, essential: bool = False) -> None:
        """
        Run *work* as a task; its failure is logged.

        Args:
            essential: its failure ends the broker; see ``failure``.
        """
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(lambda task: self._ended(task, essential))

    def every(self, name: str, seconds: float, work: Callable[[], Awaitable[None] | None]) -> None:
        """
        Run *work* every *seconds*, the first time after *seconds*.

        The failure of a round is logged, and the next round runs.
        """
        self.spawn(name, self._loop(name, seconds, work))

    async def failure(self) -> BaseException:
        """
        Wait for the failure of an essential task, and return its error.
        """
        await self._failed.wait()
        assert self._failure is not None
        return self._failure

    def fail(self, error: BaseException) -> None:
        """
        Report the failure of an essential part that is no task.
        """
        self._failure = self._failure or error
        self._failed.set()

    async def stop(self) -> None:
        """
        Cancel all tasks, and wait until they have ended.
        """
        tasks = tuple(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _loop(
        self, name: str, seconds: float, work: Callable[[], Awaitable[None] | None]
    ) -> None:
        while True:
            await self._clock.sleep(seconds)
            try:
                result = work()
                if result is not None:
                    await result
            except Exception:
                logger.exception("%s failed; the next round is in %g s", name, seconds)

    def _ended(self, task: asyncio.Task[None], essential: bool) -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is None:
            return
        logger.error("%s failed", task.get_name(), exc_info=error)
        if essential:
            self.fail(error)


class NoLoops(Background):
    """
    The tasks of a read-only broker, which does nothing as time passes: what the loops of others
    expire, remove or roll, it shows.
    """

    def every(self, name: str, seconds: float, work: Callable[[], Awaitable[None] | None]) -> None:
        """
        Do nothing.
        """
