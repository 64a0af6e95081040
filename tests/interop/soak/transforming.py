"""
A process that transforms, as whoever started it sees it.
"""

from __future__ import annotations

import os
import signal
import subprocess

from tests.interop.soak.task import Task, Transaction, transactions

OPEN = {"begin", "abort", "commit"}
"""
The steps after which a transaction is under way.
"""


class Transforming:
    """
    A process that runs `transform`, and what it has written down.
    """

    def __init__(self, task: Task, command: list[str]) -> None:
        self.task = task
        self.was_killed = False
        self._errors = task.ledger.with_suffix(".errors")
        with self._errors.open("wb") as errors:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=errors, stderr=errors
            )

    @property
    def runs(self) -> bool:
        return self._process.poll() is None

    @property
    def lines(self) -> list[str]:
        ledger = self.task.ledger
        return ledger.read_text().splitlines() if ledger.exists() else []

    @property
    def has_started(self) -> bool:
        """
        Whether the producer before it is fenced.
        """
        return "started" in self.lines

    @property
    def is_done(self) -> bool:
        return "done" in self.lines

    @property
    def is_in_transaction(self) -> bool:
        """
        Whether its last step was not the end of a transaction, nor what follows.
        """
        return self.lines[-1:] != [] and self.lines[-1].split()[0] in OPEN

    @property
    def failure(self) -> str | None:
        return next((line.split()[1] for line in self.lines if line.startswith("failed")), None)

    @property
    def transactions(self) -> list[Transaction]:
        return transactions(self.task.ledger)

    @property
    def story(self) -> str:
        said = self._errors.read_text(errors="replace")[-600:]
        return f"{self.task.name}: {self.lines[-3:]} {said}"

    def pause(self) -> None:
        self._process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self._process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)

    def resume(self) -> None:
        self._process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        self.was_killed = self.was_killed or self.runs
        self._process.kill()
        self._process.wait()
