"""
The Spark session of a job.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from barnabas.pipeline.errors import PipelineError

SETTINGS: Final[dict[str, str | int | float | bool | None]] = {
    "spark.log.level": "ERROR",
    # A task in Python starts in a third of the time.
    "spark.python.unix.domain.socket.enabled": True,
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": False,
    # The jobs have bars of their own.
    "spark.ui.showConsoleProgress": False,
}

_PYTHON: Final = "spark.pyspark.python"
_SHUFFLES: Final = "spark.sql.shuffle.partitions"
_NOTHING: Final[Mapping[str, str]] = {}

_OURS: Final = re.compile(r"^barnabas\.[\w.]+: (.+)$", re.MULTILINE)
"""The last line of a traceback that ends with one of our exceptions."""
_MISSING: Final = re.compile(r"^ModuleNotFoundError: No module named '([\w.]+)'$", re.MULTILINE)


class JobFailed(PipelineError):
    """
    A query failed; the sentence is that of its cause.
    """


class NoJava(PipelineError):
    """
    Spark runs on a Java virtual machine, and there is none.
    """


def cause_of(error: PySparkException | Py4JJavaError) -> JobFailed:
    """
    Why a query failed, without the traceback of the worker in which it did.
    """
    text = str(error)
    if isinstance(error, Py4JJavaError):
        # Of a worker that died; the first line only names what was called.
        text = text.partition("\n: ")[2]
    ours = _OURS.findall(text)
    missing = _MISSING.findall(text)
    if missing and not ours:
        # Of a Python in which Spark itself does not run.
        return JobFailed(
            f"A Python of Spark has no package {missing[-1]}: ship the environment,"
            " docs/spark-cluster.md."
        )
    return JobFailed(ours[-1] if ours else next(iter(text.splitlines()), repr(error)))


@contextmanager
def spark_session(
    master: str, memory: str, settings: Mapping[str, str] = _NOTHING
) -> Iterator[SparkSession]:
    """
    The session of this process, or else a new one that ends with the block.

    Args:
        master: as Spark takes it: ``local[2]`` for two tasks at a time in this process.
        memory: of the driver, as Spark takes it, such as ``2g``.
        settings: of a new session, by the names that Spark gives them.

    Raises:
        NoJava: there is none to run a new one.
        JobFailed: a query in the block failed.
    """
    with translated():
        yield from _session(master, memory, settings)


@contextmanager
def translated() -> Iterator[None]:
    """
    Raises:
        JobFailed: a query in the block failed.
    """
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        raise cause_of(error) from error


def _session(master: str, memory: str, settings: Mapping[str, str]) -> Iterator[SparkSession]:
    there = SparkSession.getActiveSession()
    if there is not None:
        yield there
        return
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        raise NoJava("Spark needs Java 17 or newer, and there is no java on the path.")
    if _PYTHON in settings:
        # PySpark itself asks for the variable only.
        os.environ["PYSPARK_PYTHON"] = settings[_PYTHON]
    # Workers would otherwise run the first python3 on the path, which may know nothing of Barnabas.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if master.startswith("local"):
        # Nobody else talks to it.
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder.master(master).appName("barnabas")
    ours = {**SETTINGS, "spark.driver.memory": memory, **settings}
    session = builder.config(map=ours).getOrCreate()
    if _SHUFFLES not in settings:
        session.conf.set(_SHUFFLES, 2 * session.sparkContext.defaultParallelism)
    try:
        yield session
    finally:
        session.stop()
