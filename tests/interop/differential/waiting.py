"""
Waiting for what a broker does by itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from barnabas.protocol.records.batch import build_batch
from barnabas.protocol.records.record import SimpleRecord
from tests.interop.differential.sides import PAUSE, Session
from tests.interop.differential.steps import (
    EARLIEST,
    LATEST,
    Ready,
    create_topic,
    list_offsets_request,
    produce_request,
)

LONG_AGO_MS: Final = 1_000_000_000_000
PATIENCE: Final = 120.0
CLEANER_CHECKPOINT: Final = "cleaner-offset-checkpoint"


@dataclass(frozen=True, slots=True)
class Settled:
    """
    Wait until retention has nothing more to do: a whole check has changed nothing.

    The answer is where the partitions start and end, and their segments begin.

    Args:
        policy: the topic's ``cleanup.policy``. Topics that are compacted as well are checked by
            the cleaner.
    """

    topic: str
    partitions: Sequence[int]
    policy: str = "delete"

    async def run(self, session: Session) -> Any:
        visits = Visits(session, f"visits-to-{self.topic}", self.policy)
        await visits.begin()
        await visits.next()
        before, now = None, await self._bounds(session)
        while now != before:
            # All other logs have their turn between two visits to one.
            await visits.next()
            before, now = now, await self._bounds(session)
        return now

    async def _bounds(self, session: Session) -> str:
        bounds = []
        for timestamp in (EARLIEST, LATEST):
            asked = list_offsets_request(self.topic, dict.fromkeys(self.partitions, timestamp))
            answer = await session.ask(asked, 5)
            if isinstance(answer, str):
                return answer
            found = answer.topics[0].partitions
            bounds.append(sorted((p.partition_index, p.error_code, p.offset) for p in found))
        segments = [
            sorted(path.name for path in (session.side.data / f"{self.topic}-{n}").glob("*.log"))
            for n in self.partitions
        ]
        return f"{bounds} {segments}"

    def __str__(self) -> str:
        return "wait until retention is done"


class Visits:
    """
    Tells when a broker's check of retention comes by: at a topic of its own, in which each record
    is due at once.
    """

    def __init__(self, session: Session, topic: str, policy: str) -> None:
        self._session = session
        self._topic = topic
        self._policy = policy
        self._records = 0

    async def begin(self) -> None:
        configs = {
            "cleanup.policy": self._policy,
            "retention.ms": "1",
            "min.cleanable.dirty.ratio": "1",
        }
        await create_topic(self._topic, configs=configs).run(self._session)
        await Ready(self._topic, 1).run(self._session)
        self._records = await self._offset(LATEST)  # It may be there from an earlier wait.

    async def next(self) -> None:
        """
        Return after a visit that began after this call.
        """
        record = bytes(build_batch([SimpleRecord(LONG_AGO_MS, b"key", b"due")]))
        request = produce_request(self._session, self._topic, {0: record})
        await self._session.ask(request, 9)
        self._records += 1
        for _ in range(round(PATIENCE / PAUSE)):
            if await self._offset(EARLIEST) == self._records:
                return
            await asyncio.sleep(PAUSE)
        raise TimeoutError(f"{self._session.side.name} does not apply retention to {self._topic}")

    async def _offset(self, timestamp: int) -> int:
        answer = await self._session.ask(list_offsets_request(self._topic, {0: timestamp}), 5)
        return -1 if isinstance(answer, str) else answer.topics[0].partitions[0].offset


@dataclass(frozen=True, slots=True)
class Cleaned:
    """
    Wait until the cleaner has come as far as the active segment.

    The answer is what its checkpoint says about the partition.
    """

    topic: str
    partition: int = 0

    async def run(self, session: Session) -> Any:
        wanted = self._active_base(session.side.data)
        if not wanted:
            return "nothing to clean: the log has one segment"
        for _ in range(round(PATIENCE / PAUSE)):
            # What it has cleaned it puts in place before it writes down how far it came.
            cleaned = self._checkpoint(session.side.data)
            if cleaned is not None and cleaned >= wanted:
                return f"cleaned to {cleaned}"
            await asyncio.sleep(PAUSE)
        raise TimeoutError(f"{session.side.name} has cleaned to {cleaned}, not to {wanted}")

    def _checkpoint(self, data: Path) -> int | None:
        path = data / CLEANER_CHECKPOINT
        if not path.exists():
            return None
        entries = (line.split() for line in path.read_text().splitlines()[2:])
        found = {(topic, partition): offset for topic, partition, offset in entries}
        offset = found.get((self.topic, str(self.partition)))
        return None if offset is None else int(offset)

    def _active_base(self, data: Path) -> int:
        directory = data / f"{self.topic}-{self.partition}"
        return max(int(path.stem) for path in directory.glob("*.log"))

    def __str__(self) -> str:
        return f"wait until {self.partition} is cleaned up to its active segment"
