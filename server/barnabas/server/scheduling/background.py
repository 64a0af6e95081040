"""
Work that goes on beside the requests.

Loops and one-off jobs are named tasks of one ``Background``. A loop survives a failed round; a part
that cannot live without its task declares it essential, and its death ends the broker rather than
leave it serving wrong.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from barnabas.server.clock import ServerClock

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
        Run *work* beside everything else. Its failure is logged.

        Args:
            essential: the broker cannot go on without it; see ``failure``.
        """
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(lambda task: self._ended(task, essential))

    def every(self, name: str, seconds: float, work: Callable[[], Awaitable[None] | None]) -> None:
        """
        Do *work* again and again, the first time after *seconds*.

        A round that fails is logged and the next one still happens.
        """
        self.spawn(name, self._loop(name, seconds, work))

    async def failure(self) -> BaseException:
        """
        Return when an essential task has died, with what it died of.
        """
        await self._failed.wait()
        assert self._failure is not None
        return self._failure

    def fail(self, error: BaseException) -> None:
        """
        Say that something the broker cannot go on without has failed, though it was no task.
        """
        self._failure = self._failure or error
        self._failed.set()

    async def stop(self) -> None:
        """
        End all tasks and wait until they have ended.
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
        logger.error("%s died", task.get_name(), exc_info=error)
        if essential:
            self.fail(error)
