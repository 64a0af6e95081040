"""
Waiting for what a broker does by itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.interop.differential.sides import PAUSE, SETTINGS, Session
from tests.interop.differential.steps import EARLIEST, LATEST, list_offsets_request

ROUND_SECONDS: Final = int(SETTINGS["log.retention.check.interval.ms"]) / 1000
QUIET_ROUNDS: Final = 4
CLEANER_CHECKPOINT: Final = "cleaner-offset-checkpoint"
CLEANER_PATIENCE: Final = 120.0


@dataclass(frozen=True, slots=True)
class Settled:
    """
    Wait until retention has nothing more to do: so many checks have changed nothing.

    The answer is where the partitions start and end, and their segments begin.
    """

    topic: str
    partitions: Sequence[int]

    async def run(self, session: Session) -> Any:
        quiet, before = 0, ""
        while quiet < QUIET_ROUNDS:
            await asyncio.sleep(ROUND_SECONDS)
            now = await self._bounds(session)
            quiet, before = (quiet + 1 if now == before else 0), now
        return before

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


@dataclass(frozen=True, slots=True)
class Cleaned:
    """
    Wait until the cleaner has come as far as the active segment.

    The answer is what its checkpoint says about the partition.
    """

    topic: str
    partition: int = 0

    async def run(self, session: Session) -> Any:
        quiet, before = 0, None
        wanted = self._active_base(session.side.data)
        for _ in range(round(CLEANER_PATIENCE / PAUSE)):
            await asyncio.sleep(5 * PAUSE)
            now = self._checkpoint(session.side.data)
            quiet = quiet + 1 if now == before else 0
            before = now
            if quiet >= 3 and now is not None and now >= wanted:
                break
            if quiet >= 60:
                break
        return f"cleaned to {before}"

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
