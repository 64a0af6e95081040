"""
What the operations share.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from barnabas.protocol.errors import KafkaError
from barnabas.server.http.guard import Refused
from barnabas.testing.broker import Broker
from barnabas.testing.disks.faulty import FaultyFiles
from barnabas.testing.errors import (
    BrokerError,
    InvalidConfig,
    InvalidFault,
    InvalidTopic,
    NotRunning,
    UnknownTopic,
)
from barnabas.testing.faults import Chaos, Fault


class Control:
    """
    A broker, and what was ordered over HTTP.

    One thread at a time uses it.
    """

    def __init__(self, broker: Broker, disk: FaultyFiles | None) -> None:
        """
        Args:
            disk: the one of the broker; None if its files are in a directory.
        """
        self.broker = broker
        self.faults: dict[int, NumberedFault] = {}
        self.faults_so_far = 0
        self.chaos: Chaos | None = None
        self._disk = disk

    def expect_disk(self) -> FaultyFiles:
        """
        The disk in memory.

        Raises:
            Refused: the broker is in a directory.
        """
        if self._disk is None:
            raise Refused(
                409,
                "the broker is in a directory, and this needs its files in memory: leave out"
                " --data-dir and log.dirs",
            )
        return self._disk


@dataclass(frozen=True, slots=True)
class NumberedFault:
    """
    A fault that has a number over HTTP, and the fields that describe it.
    """

    fields: dict[str, Any]
    fault: Fault


def refusal(error: Exception) -> Refused | None:
    """
    The answer to an error of a broker, with a hint for HTTP in place of the one for Python.
    """
    if isinstance(error, NotRunning):
        hint = "POST /v1/broker/start continues with the same data"
        return Refused(409, f"{error.sentence}: {hint}")
    for kind, status in _STATUSES.items():
        if isinstance(error, kind):
            sentence = error.sentence if isinstance(error, BrokerError) else str(error)
            return Refused(status, sentence)
    return None


_STATUSES: Final[Mapping[type[Exception], int]] = {
    UnknownTopic: 404,
    InvalidConfig: 400,
    InvalidFault: 400,
    InvalidTopic: 400,
    ValueError: 400,
    BrokerError: 409,
    KafkaError: 409,
}
"""
The first one that fits counts.
"""
