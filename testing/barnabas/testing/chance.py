"""
Faults that chance deals out, the same ones for the same seed.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from random import Random
from typing import Final

from barnabas.protocol.errors import ErrorCode
from barnabas.testing.rule import Kind, Rule

logger = logging.getLogger(__name__)

MOST_DELAY_S: Final = 0.2

MOST_LINES: Final = 1000
"""
Of a schedule; the last ones are kept.
"""

_LEADER = ErrorCode.NOT_LEADER_OR_FOLLOWER
_COORDINATOR = ErrorCode.NOT_COORDINATOR

ERRORS: Final[Mapping[str, ErrorCode]] = {
    "Produce": _LEADER,
    "Fetch": _LEADER,
    "ListOffsets": _LEADER,
    "Metadata": ErrorCode.LEADER_NOT_AVAILABLE,
    "FindCoordinator": ErrorCode.COORDINATOR_NOT_AVAILABLE,
    "JoinGroup": _COORDINATOR,
    "SyncGroup": _COORDINATOR,
    "Heartbeat": _COORDINATOR,
    "OffsetCommit": _COORDINATOR,
    # A consumer of librdkafka (2.16) asks again after this error, and never after NOT_COORDINATOR.
    "OffsetFetch": ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    "InitProducerId": _COORDINATOR,
    "AddPartitionsToTxn": _COORDINATOR,
    "AddOffsetsToTxn": _COORDINATOR,
    "TxnOffsetCommit": _COORDINATOR,
    "EndTxn": _COORDINATOR,
}
"""
The APIs that chance strikes, and for each the error that a client takes as a reason to try again.
"""

KINDS: Final = (Kind.FAIL, Kind.DELAY, Kind.DROP, Kind.CLOSE)


class Chance:
    """
    What happens to the n-th request of an API is a function of the seed, the API and n: not of the
    time, nor of the requests of other APIs.
    """

    def __init__(self, seed: int, one_in: int) -> None:
        """
        Args:
            one_in: one of so many requests meets a fault.
        """
        self.seed = seed
        self._one_in = one_in
        self._numbers: dict[str, int] = {}
        self._lines: list[str] = []

    @property
    def schedule(self) -> list[str]:
        """
        What it has done, a line for each fault, such as ``Produce 3: drop``.
        """
        return list(self._lines)

    def draw(self, api: str) -> Rule | None:
        """
        What happens to the next request of an API.
        """
        if api not in ERRORS:
            return None
        number = self._numbers[api] = self._numbers.get(api, 0) + 1
        random = Random(f"{self.seed} {api} {number}")
        if random.randrange(self._one_in):
            return None
        kind = random.choice(KINDS)
        rule = Rule(kind, api)
        what = kind.value
        if kind is Kind.FAIL:
            rule = rule._replace(error=ERRORS[api])
            what += f" {ERRORS[api].name}"
        elif kind is Kind.DELAY:
            rule = rule._replace(seconds=round(random.uniform(0, MOST_DELAY_S), 3))
            what += f" {rule.seconds} s"
        self.note(f"{api} {number}: {what}")
        return rule

    def note(self, line: str) -> None:
        """
        Put a *line* into the schedule and the log.
        """
        self._lines.append(line)
        del self._lines[:-MOST_LINES]
        logger.info("chaos of seed %d: %s", self.seed, line)
