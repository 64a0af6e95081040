"""
Deleted logs, until their files are removed.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterator
from typing import Final

from barnabas.protocol.structs import NamedTuple
from barnabas.storage.clock import Clock
from barnabas.storage.errors import TooManyOpenFiles
from barnabas.storage.log.log import Log
from barnabas.storage.threads.background import Alarm

logger = logging.getLogger(__name__)

AGAIN_MS: Final = 1000
"""
The delay in ms before another attempt for a log, if no descriptor was left. Not tuned: descriptors
are freed within seconds.
"""


class _Deletion(NamedTuple):
    log: Log
    due_ms: int


class LogDeletions:
    """
    The logs whose directories were renamed, each until its delay is over.

    Safe from any thread, but ``remove_due`` for one at a time.
    """

    def __init__(self, clock: Clock, alarm: Alarm) -> None:
        """
        Args:
            alarm: set to the time of the next removal.
        """
        self._clock = clock
        self._alarm = alarm
        self._waiting: deque[_Deletion] = deque()

    def __iter__(self) -> Iterator[Log]:
        return iter([deletion.log for deletion in self._waiting])

    def schedule(self, log: Log, delay_ms: int) -> None:
        """
        Remove *log* once *delay_ms* have passed.
        """
        due_ms = self._clock.now_ms() + delay_ms
        self._waiting.append(_Deletion(log, due_ms))
        self._alarm.at(due_ms)

    def remove_due(self) -> None:
        """
        Remove the logs whose delay is over, in the order in which they came. One that fails is
        logged.
        """
        now_ms = self._clock.now_ms()
        while self._waiting and self._waiting[0].due_ms <= now_ms:
            log = self._waiting.popleft().log
            try:
                log.delete()
                logger.info("Deleted log for partition %s in %s", log.topic_partition, log.dir)
            except TooManyOpenFiles as error:
                logger.warning("%s is deleted later: %s", log.dir, error)
                self.schedule(log, AGAIN_MS)
                break
            except Exception:
                logger.exception("%s could not be deleted", log.dir)
        if self._waiting:
            self._alarm.at(self._waiting[0].due_ms)
