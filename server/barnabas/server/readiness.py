"""
The state of a broker from its start to its stop, and what it waits for.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import Final


class BrokerState(IntEnum):
    """
    The states of a broker, with the numbers of Kafka's ``BrokerState``.
    """

    NOT_RUNNING = 0
    STARTING = 1
    RECOVERY = 2
    RUNNING = 3
    PENDING_CONTROLLED_SHUTDOWN = 6
    SHUTTING_DOWN = 7


_WAITS_FOR: Final = {
    BrokerState.NOT_RUNNING: "the start",
    BrokerState.STARTING: "the metadata log",
    BrokerState.RECOVERY: "the logs",
    BrokerState.PENDING_CONTROLLED_SHUTDOWN: "the end of requests in progress",
    BrokerState.SHUTTING_DOWN: "the logs to be closed",
}


class Readiness:
    """
    Says whether clients are served, and since when the broker is in its state.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        """
        Args:
            now: returns a time in seconds.
        """
        self._now = now
        self._since = now()
        self.state = BrokerState.NOT_RUNNING

    def enter(self, state: BrokerState) -> None:
        """
        Note that the broker is in another *state* from now on.
        """
        self.state = state
        self._since = self._now()

    @property
    def is_ready(self) -> bool:
        return self.state is BrokerState.RUNNING

    @property
    def waits_for(self) -> str:
        """
        What has to end before the next state; empty while clients are served.
        """
        return _WAITS_FOR.get(self.state, "")

    @property
    def seconds(self) -> float:
        """
        How long the broker has been in its state.
        """
        return self._now() - self._since
