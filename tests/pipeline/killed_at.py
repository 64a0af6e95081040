"""
A process that runs a job, and dies at one of the steps with which it changes files.

Run as ``python -m tests.pipeline.killed_at JOB LOGS TO STEP SPARK``: the STEPth time that something
in the directory TO is made, renamed or removed, it kills itself. SPARK is a master, or ``-`` to do
without. If it comes to its end, it prints how many steps there were.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from pyspark.sql import SparkSession

from barnabas.pipeline.jobs.archive.job import archive
from barnabas.pipeline.jobs.compact.job import compact
from barnabas.pipeline.spark.session import spark_session
from tests.support.spark import QUICK

PATIENCE: Final = 120
JOBS: Final[Mapping[str, Callable[[SparkSession | None, str, Path], object]]] = {
    "archive": lambda spark, logs, to: archive(spark, logs, to, bytes_per_file=1),
    "compact": compact,
}
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


def main(job: str, logs: str, to: str, step: str, master: str) -> None:
    killer = Killer(to, int(step))
    sys.addaudithook(killer)
    if master == "-":
        JOBS[job](None, logs, Path(to))
    else:
        with spark_session(master, "512m") as spark:
            JOBS[job](spark, logs, Path(to))
    print(killer.steps)


def run_module(name: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    """
    What is left of a process of its own that runs the module of tests.pipeline of that *name*.
    """
    return subprocess.run(
        [sys.executable, "-m", f"tests.pipeline.{name}", *map(str, arguments)],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
        env={**os.environ, "JAVA_TOOL_OPTIONS": QUICK},
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
