"""
Logs that are opened for explanations, and kept for the next ones.

A log with thousands of segments takes a second to open. A slider that is moved asks about it
several times in that time, each time with other settings.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from barnabas.coordination.clock import ServerClock, Timer
    from barnabas.storage.explain.logs import ReadOnlyLog, ReadOnlyLogs
    from barnabas.storage.topic_partition import TopicPartition

T = TypeVar("T")

MOST: Final = 2
KEEP_S: Final = 60.0
"""The seconds that logs are kept after the last question."""


class _Kept:
    """
    A log, which one thread at a time uses.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.stamp: object = None
        self.opened: ReadOnlyLog | None = None


class OpenedLogs:
    """
    The logs of the last questions.

    ``use`` is safe from any thread, ``expire`` is called on the event loop.
    """

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._kept: dict[TopicPartition, _Kept] = {}
        self._timer: Timer | None = None

    def use(
        self,
        logs: ReadOnlyLogs,
        partition: TopicPartition,
        stamp: object,
        work: Callable[[ReadOnlyLog], T],
    ) -> T:
        """
        What *work* makes of a log, which is opened unless it is kept with the same *stamp*.

        Args:
            stamp: changes whenever the log does; None if it is not known.

        Raises:
            ExplainError: the log cannot be read.
        """
        kept = self._take(partition)
        with kept.lock:
            again = kept.opened if stamp is not None and kept.stamp == stamp else None
            kept.opened = None
            opened = logs.open(partition, again)
            found = work(opened)
            kept.opened, kept.stamp = opened, stamp
            return found

    def _take(self, partition: TopicPartition) -> _Kept:
        with self._guard:
            kept = self._kept.pop(partition, None) or _Kept()
            self._kept[partition] = kept
            if len(self._kept) > MOST:
                del self._kept[next(iter(self._kept))]
            return kept

    def expire(self, clock: ServerClock) -> None:
        """
        Keep the logs for a while, unless there are further questions.
        """
        if self._timer is not None:
            self._timer.cancel()
        self._timer = clock.call_later(KEEP_S, self.clear)

    def clear(self) -> None:
        """
        Keep no log.
        """
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        with self._guard:
            self._kept.clear()
