"""
Running workloads against both brokers at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.interop.differential.answers import Difference, Reader, differences
from tests.interop.differential.directories import compare_directories
from tests.interop.differential.kinds import GROUP_KINDS
from tests.interop.differential.known import Place, class_of
from tests.interop.differential.scripts import ACTS, Workload
from tests.interop.differential.sides import Pair, Session
from tests.interop.differential.steps import Ask, Step
from tests.interop.differential.transacting import Initialize

AT_ONCE: Final = 12
"""
How many workloads of groups run side by side, and how many others: the latter wait for answers most
of their time, the former for what a broker does by itself.
"""


@dataclass(slots=True)
class Findings:
    workload: Workload
    steps: list[str] = field(default_factory=list)
    unexplained: list[Difference] = field(default_factory=list)
    known: set[str] = field(default_factory=set)
    over: bool = False

    @property
    def failed(self) -> bool:
        return bool(self.unexplained)

    def add(self, found: Iterable[Difference]) -> None:
        """
        Take in the differences after the last step.
        """
        all_found = list(found)
        for difference in all_found:
            match class_of(Place(self.workload.kind, self.steps[-1], difference, all_found)):
                case None:
                    self.unexplained.append(difference)
                    self.over = True
                case name, known:
                    self.known.add(name)
                    self.over |= known.ends

    def report(self, started_ms: int) -> str:
        """
        What was done and where the brokers differ, for a reader.
        """
        lines = [
            f"workload {self.workload.name}, started at {started_ms}",
            f"replayed by: {self.workload.replayed_by()}",
            *(f"  {number:3} {step}" for number, step in enumerate(self.steps)),
            *(f"  DIFFERENCE {difference}" for difference in self.unexplained[:10]),
        ]
        return "\n".join(lines)


class Trial:
    """
    Plays all workloads, one act of all of them after the other.

    A workload ends at its first difference in an answer: what follows would only follow from that.
    """

    def __init__(
        self,
        directory: Path,
        workloads: Sequence[Workload],
        started_ms: int,
        settings: Mapping[str, str],
    ) -> None:
        self.settings = settings
        self.pair = Pair(directory, settings)
        self.started_ms = started_ms
        self.findings = [Findings(workload) for workload in workloads]
        self._places = {is_group: asyncio.Semaphore(AT_ONCE) for is_group in (True, False)}
        self._turn = asyncio.Lock()

    async def run(self) -> None:
        """
        Three acts: the brokers are stopped after the first, killed after the second, and stopped
        after the last. Whenever they are down, their directories are compared.
        """
        try:
            for act in range(ACTS):
                await self.pair.start()
                await asyncio.gather(*(self._play(found, act) for found in self.findings))
                if act == 1:
                    self.pair.kill()
                else:
                    await self.pair.stop()
                self._compare_directories(f"after act {act}")
        finally:
            self.pair.close()

    def comparable(self) -> frozenset[str]:
        """
        The directories of partitions whose files are the same on both sides.
        """
        workloads = [
            found.workload for found in self.findings if not (found.over or found.workload.loosely)
        ]
        return frozenset(
            path.name
            for workload in workloads
            for path in self.pair.barnabas.data.glob(f"{workload.topic}-*[0-9]")
            if path.name.removeprefix(f"{workload.topic}-").isdecimal()
        )

    async def _play(self, found: Findings, act: int) -> None:
        async with self._places[found.workload.kind in GROUP_KINDS]:
            kafka, barnabas = (Session(side) for side in self.pair.sides)
            readers = [
                Reader(side, self.started_ms, found.workload.loosely) for side in self.pair.sides
            ]
            try:
                for step in found.workload.acts[act]:
                    if found.over:
                        return
                    number = len(found.steps)
                    found.steps.append(str(step))
                    async with self._turn_of(step):
                        answers = await asyncio.gather(step.run(kafka), step.run(barnabas))
                    one, other = (
                        reader.plain(answer)
                        for reader, answer in zip(readers, answers, strict=True)
                    )
                    found.add(differences(one, other, f"step {number}"))
            finally:
                await kafka.close()
                await barnabas.close()

    def _turn_of(self, step: Step) -> AbstractAsyncContextManager[None]:
        alone = isinstance(step, Ask | Initialize) and step.alone
        return self._turn if alone else nullcontext()

    def _compare_directories(self, when: str) -> None:
        for found in self.findings:
            if not found.over:
                found.steps.append(f"-- {when} both are down")
                found.add(compare_directories(self.pair, found.workload, self.started_ms))
