"""
One run: three sources are transformed while producers, and the broker, are killed and fenced.
"""

from __future__ import annotations

import random
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias

from tests.interop.soak.task import PARTITIONS, PATIENCE, Task, Transaction, transactions
from tests.support.broker_process import BrokerProcess, wait_for

RECORDS = 150
"""
Records of each source.
"""

MOST_PROCESSES = 40
"""
More than this for one run is not bad luck with killed brokers: something does not go on.
"""

EVENTS = ("kill a producer", "kill a producer", "kill the broker", "take over")

Command: TypeAlias = Callable[[Task], list[str]]


class Transforming:
    """
    A process that runs `transform`, and what it has written down.
    """

    def __init__(self, task: Task, command: list[str]) -> None:
        self.task = task
        self.errors = task.ledger.with_suffix(".errors")
        with self.errors.open("wb") as errors:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=errors, stderr=errors
            )

    @property
    def runs(self) -> bool:
        """
        Whether it has not ended.
        """
        return self.process.poll() is None

    @property
    def is_done(self) -> bool:
        """
        Whether the whole source is transformed.
        """
        return "done" in self.lines()

    def lines(self) -> list[str]:
        """
        Its ledger.
        """
        ledger = self.task.ledger
        return ledger.read_text().splitlines() if ledger.exists() else []

    def kill(self) -> None:
        """
        SIGKILL.
        """
        self.process.kill()
        self.process.wait()


class Run:
    """
    What happens when is drawn from the seed, and counted in lines of the ledgers, not in seconds.

    Args:
        commands: for each source, how its processes are started.
    """

    def __init__(
        self, broker: BrokerProcess, seed: int, commands: Sequence[Command], directory: Path
    ) -> None:
        self.topic_in, self.topic_out = f"{directory.name}-in", f"{directory.name}-out"
        self._broker = broker
        self._commands = commands
        self._chance = random.Random(seed)
        self._directory = directory
        self._processes: list[list[Transforming]] = [[] for _ in range(PARTITIONS)]

    def play(self) -> None:
        """
        Until all sources are transformed.
        """
        try:
            for source in range(PARTITIONS):
                self._start(source)
            for event in self._chance.sample(EVENTS, len(EVENTS)):
                self._wait_for_lines(self._chance.randint(10, 60))
                self._do(event)
            wait_for(self._is_done, "all to be done", 2 * PATIENCE)
        except TimeoutError as error:
            raise AssertionError(f"{error}\n{self.story()}") from error
        finally:
            for process in self._all():
                process.kill()

    def _do(self, event: str) -> None:
        source = self._chance.randrange(PARTITIONS)
        if event == "kill the broker":
            self._broker.kill()
            self._broker.start()
        elif event == "kill a producer":
            self._processes[source][-1].kill()
        else:
            self._take_over(source)

    def _take_over(self, source: int) -> None:
        """
        Start a second process beside the first, which has to end: it is done, or it is fenced.
        """
        before = self._processes[source][-1]
        self._start(source)
        what = f"{before.task.name} to be fenced"
        wait_for(lambda: not before.runs, what, 2 * PATIENCE)

    def _wait_for_lines(self, count: int) -> None:
        wanted = sum(len(process.lines()) for process in self._all()) + count
        wait_for(
            lambda: (
                self._is_done() or sum(len(process.lines()) for process in self._all()) >= wanted
            ),
            f"{count} more steps",
            2 * PATIENCE,
        )

    def _is_done(self) -> bool:
        """
        Whether all sources are; a process that has ended too early gets a successor.
        """
        for source, processes in enumerate(self._processes):
            if not processes[-1].runs and not processes[-1].is_done:
                self._start(source)
        return all(processes[-1].is_done for processes in self._processes)

    def _start(self, source: int) -> None:
        number = len(self._processes[source])
        assert len(self._all()) < MOST_PROCESSES, self.story()
        name = f"{source}-{number}"
        task = Task(
            self._broker.bootstrap,
            source,
            name,
            self.topic_in,
            self.topic_out,
            f"{self.topic_out}-group",
            RECORDS,
            self._chance.randrange(1 << 30),
            self._directory / f"{name}.ledger",
        )
        self._processes[source].append(Transforming(task, self._commands[source](task)))

    def _all(self) -> list[Transforming]:
        return [process for processes in self._processes for process in processes]

    def transactions(self, source: int) -> list[Transaction]:
        """
        All of all processes of a source, in order.
        """
        return [
            transaction
            for process in self._processes[source]
            for transaction in transactions(process.task.ledger)
        ]

    def story(self) -> str:
        """
        What each process did last, and what it said in the end.
        """
        return "\n".join(
            f"{process.task.name}: {process.lines()[-2:]}"
            f" {process.errors.read_text(errors='replace')[-600:]}"
            for process in self._all()
        )
