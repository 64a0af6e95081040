"""
A process that archives, and dies at one of the steps with which it changes files.

Run as ``python -m tests.pipeline.archive.killed_at LOGS ARCHIVE STEP SPARK``: the STEPth time that
something in the archive is made, renamed or removed, it kills itself. SPARK is a master, or ``-``
to do without. If it comes to its end, it prints how many steps there were.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

from barnabas.pipeline.jobs.archive.job import archive
from barnabas.pipeline.spark.session import spark_session

_CHANGES = {"os.mkdir", "os.rename", "os.remove", "os.truncate"}


class Killer:
    """
    Counts what changes files below a directory.
    """

    def __init__(self, directory: str, step: int) -> None:
        self._directory = directory
        self._step = step
        self.steps = 0

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        makes = event == "open" and int(arguments[2]) & os.O_CREAT
        if not (makes or event in _CHANGES):
            return
        if not str(arguments[0]).startswith(self._directory):
            return
        self.steps += 1
        if self.steps == self._step:
            os.kill(os.getpid(), signal.SIGKILL)


def main(logs: str, to: str, step: str, master: str) -> None:
    killer = Killer(to, int(step))
    sys.addaudithook(killer)
    if master == "-":
        archive(None, logs, Path(to), bytes_per_file=1)
    else:
        with spark_session(master, "512m") as spark:
            archive(spark, logs, Path(to), bytes_per_file=1)
    print(killer.steps)


if __name__ == "__main__":
    main(*sys.argv[1:])
