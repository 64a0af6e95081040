"""
A process that runs a job and kills itself at one of the steps that change files.

Run as ``python -m tests.pipeline.killed_at JOB LOGS TO STEP SPARK``. A step creates, renames or
removes something in the directory TO, or begins or ends a commit of a table. SPARK is a master, or
``-`` to run without Spark. A process that completes prints the number of steps.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from functools import wraps
from inspect import getattr_static
from pathlib import Path
from types import FunctionType
from typing import Any, Final

from pyspark.sql import SparkSession

from barnabas.pipeline.jobs.archive.job import archive
from barnabas.pipeline.jobs.archive.opening import open_table
from barnabas.pipeline.jobs.archive.table import ArchiveTable
from barnabas.pipeline.jobs.compact.job import compact
from barnabas.pipeline.spark.session import spark_session
from tests.support.spark import QUICK

PATIENCE: Final = 120
JOBS: Final[Mapping[str, Callable[[SparkSession | None, str, str], object]]] = {
    "archive": lambda spark, logs, to: archive(spark, logs, to, bytes_per_file=1),
    "archive-parquet": lambda spark, logs, to: archive(spark, logs, to, bytes_per_file=2_000),
    "archive-delta": lambda spark, logs, to: archive(
        spark, logs, open_table(to, "delta"), bytes_per_file=2_000
    ),
    "archive-iceberg": lambda spark, logs, to: archive(
        spark, logs, iceberg_table(to), bytes_per_file=2_000
    ),
    "compact": lambda spark, logs, to: compact(spark, logs, Path(to)),
}
CATALOG: Final = "BARNABAS_TEST_CATALOG"
"""The variable of the environment with the file of an Iceberg table's catalog."""
TABLE: Final = "lake.records"
_CHANGES = {"os.mkdir", "os.rename", "os.remove", "os.truncate"}


def catalog_properties(warehouse: str, catalog: str) -> dict[str, str]:
    return {"type": "sql", "uri": f"sqlite:///{catalog}", "warehouse": warehouse}


def iceberg_table(warehouse: str) -> ArchiveTable:
    properties = catalog_properties(warehouse, os.environ[CATALOG])
    return open_table(TABLE, "iceberg", catalog="lake", catalog_properties=properties)


class Killer:
    """
    Counts the steps that change files below a directory.
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
        self.count()

    def count(self) -> None:
        self.steps += 1
        if self.steps == self._step:
            os.kill(os.getpid(), signal.SIGKILL)

    def watch(self, owner: Any, name: str) -> None:
        method = getattr(owner, name)

        @wraps(method)
        def watched(*arguments: Any, **options: Any) -> Any:
            self.count()
            done = method(*arguments, **options)
            self.count()
            return done

        bound = not isinstance(getattr_static(owner, name), FunctionType)
        setattr(owner, name, staticmethod(watched) if bound else watched)


def watch_commits(job: str, killer: Killer) -> None:
    """
    Count commits of libraries that write files without Python's functions.
    """
    if job == "archive-delta":
        from deltalake import DeltaTable  # noqa: PLC0415  # not all have it

        killer.watch(DeltaTable, "create")
        killer.watch(DeltaTable, "create_write_transaction")
    elif job == "archive-iceberg":
        from pyiceberg.catalog.sql import SqlCatalog  # noqa: PLC0415  # not all have it

        killer.watch(SqlCatalog, "create_table")
        killer.watch(SqlCatalog, "commit_table")
        killer.watch(SqlCatalog, "_write_metadata")


def main(job: str, logs: str, to: str, step: str, master: str) -> None:
    killer = Killer(to, int(step))
    sys.addaudithook(killer)
    watch_commits(job, killer)
    if master == "-":
        JOBS[job](None, logs, to)
    else:
        with spark_session(master, "512m") as spark:
            JOBS[job](spark, logs, to)
    print(killer.steps)


def run_module(
    name: str, *arguments: object, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """
    Run a module of tests.pipeline in a separate process.
    """
    return subprocess.run(
        [sys.executable, "-m", f"tests.pipeline.{name}", *map(str, arguments)],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
        env={**os.environ, "JAVA_TOOL_OPTIONS": QUICK, **(environment or {})},
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
