"""
Long work of a shard, beside its requests (Kafka's ``CoordinatorExecutor``).
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Protocol

from barnabas.coordination.coordinator_runtime.result import CoordinatorResult


class Executor(Protocol):
    """
    The executor of a shard, as its state uses it.
    """

    def schedule(
        self, key: str, work: Callable[[], Coroutine[Any, Any, CoordinatorResult[Any]]]
    ) -> None:
        """
        Begin *work* after this request, and write its result. It may begin twice, and ends without
        a result if it takes too long while the work of others waits.
        """

    def is_scheduled(self, key: str) -> bool:
        """
        Return true if work with that key is running or waits.
        """

    def cancel_all(self) -> None:
        """
        End all work: the shard resigns.
        """
