"""
Long work of a shard, beside its requests (Kafka's ``CoordinatorExecutor``).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

from barnabas.coordination.coordinator_runtime.result import CoordinatorResult
from barnabas.server.scheduling.turns import PlaceLost, Turns, WorkKind

logger = logging.getLogger(__name__)


class TurnsExecutor:
    """
    Does work in turns of the event loop.

    Invariants:

    1. Of the works with one key at most one is in progress.
    """

    def __init__(self, turns: Turns, write: Callable[[CoordinatorResult[Any]], None]) -> None:
        """
        Args:
            write: writes the records of a result.
        """
        self._turns = turns
        self._write = write
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def schedule(
        self, key: str, work: Callable[[], Coroutine[Any, Any, CoordinatorResult[Any]]]
    ) -> None:
        """
        Begin *work* after this request, and write its result.
        """
        assert key not in self._tasks, key
        self._tasks[key] = asyncio.get_running_loop().create_task(self._run(key, work))

    def is_scheduled(self, key: str) -> bool:
        """
        Return true if work with that key is running or waits.
        """
        return key in self._tasks

    def cancel_all(self) -> None:
        """
        End all work: the shard resigns.
        """
        for task in self._tasks.values():
            task.cancel()
        self._tasks.clear()

    async def _run(
        self, key: str, work: Callable[[], Coroutine[Any, Any, CoordinatorResult[Any]]]
    ) -> None:
        try:
            result = await self._turns.aside(work, WorkKind.COORDINATOR)
        except PlaceLost:
            logger.warning("The work %s of a coordinator took too long while others waited", key)
            return
        except Exception:
            logger.exception("The work %s of a coordinator failed", key)
            return
        finally:
            self._tasks.pop(key, None)
        assert result is not None
        self._write(result)
