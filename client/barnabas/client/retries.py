"""
Errors that may pass, and how long they are waited for.
"""

from __future__ import annotations

import threading
from typing import Final

from barnabas.client.errors import BrokerError, ClientError, Disconnected, NotABroker
from barnabas.protocol.errors import ErrorCode
from barnabas.storage.clock import Clock, SystemClock

MAY_PASS: Final = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.BROKER_NOT_AVAILABLE,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.UNSTABLE_OFFSET_COMMIT,
    }
)
"""Those that a Java client tries again after, too (``RetriableException``)."""

_FIRST_PAUSE_S: Final = 0.01
_LONGEST_PAUSE_S: Final = 1.0


def may_pass(error: ClientError) -> bool:
    """
    Whether a request that ended so may succeed later.
    """
    if isinstance(error, BrokerError):
        return error.code in MAY_PASS
    return isinstance(error, Disconnected) and not isinstance(error, NotABroker)


class Patience:
    """
    Pauses between tries, each twice as long as the one before, for some seconds in all.
    """

    def __init__(self, seconds: float, clock: Clock | None = None) -> None:
        self._clock: Clock = clock or SystemClock()
        self._seconds = seconds
        self.restart()

    def restart(self) -> None:
        """
        Begin again, for something has succeeded meanwhile.
        """
        self._until = self._clock.monotonic() + self._seconds
        self._pause = _FIRST_PAUSE_S

    def after(self, error: ClientError) -> None:
        """
        Pause, so that what failed can be tried again.

        Raises:
            ClientError: the *error*, if it will not pass or has not passed in time.
        """
        if not may_pass(error) or self._clock.monotonic() >= self._until:
            raise error
        self._clock.wait(threading.Event(), self._pause)
        self._pause = min(2 * self._pause, _LONGEST_PAUSE_S)
