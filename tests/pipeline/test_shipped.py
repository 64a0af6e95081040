"""
Spark ships functions to executors: without Barnabas there, one line says what is missing.
"""

from __future__ import annotations

import os
import pickle
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyspark
import pytest
from pyspark import cloudpickle
from pyspark.sql.types import StructType

from barnabas.pipeline.spark.session import cause_of
from barnabas.pipeline.spark.shipped import shipped
from barnabas.pipeline.spark.source import BarnabasSource
from barnabas.pipeline.spark.worker import each_of

SOURCE = BarnabasSource({"path": "/nowhere"})
SINK = BarnabasSource({"kafka.bootstrap.servers": "localhost:9092", "topic": "orders"})
VALUES = StructType().add("value", "string")

SHIPPED: dict[str, Any] = {
    "source": SOURCE,
    "reader": SOURCE.reader(SOURCE.schema()),
    "stream reader": SOURCE.streamReader(SOURCE.schema()),
    "writer": SINK.writer(VALUES, overwrite=False),
    "stream writer": SINK.streamWriter(VALUES, overwrite=False),
}

EXECUTOR = """
import io, pickle, sys
from pyspark.util import handle_worker_exception
try:
    loaded = pickle.load(sys.stdin.buffer)
    if callable(loaded):
        loaded([])
except Exception as error:
    written = io.BytesIO()
    handle_worker_exception(error, written)
    print(written.getvalue()[8:].decode(), end="")
"""
"""What an executor does with what it gets, and says to the driver."""


@pytest.mark.parametrize("what", SHIPPED)
def test_executor_without_the_package_says_so_in_one_line(what: str) -> None:
    expected = (
        f"The Python of this executor, {sys.executable} on {socket.gethostname()}, has no package"
        " barnabas: ship the environment, docs/spark-cluster.md."
    )

    said = said_without_barnabas(SHIPPED[what])

    assert [f"barnabas.pipeline.errors.PackageMissing: {expected}"] == said


def test_job_function_on_an_executor_without_the_package_says_so() -> None:
    (line,) = said_without_barnabas(shipped(each_of))

    assert "has no package barnabas: ship the environment" in line


def test_shipped_objects_survive_a_round_trip() -> None:
    for each in SHIPPED.values():
        again = pickle.loads(pickled(each))

        assert type(each) is type(again)
        assert vars(each) == vars(again)


def test_job_fails_with_the_message_of_its_executor() -> None:
    (line,) = said_without_barnabas(SHIPPED["reader"])
    error = pyspark.errors.PySparkException(f"Job aborted: PythonException: it failed:\n{line}\n")

    assert str(cause_of(error)).startswith("The Python of this executor, ")


def test_python_without_a_working_spark_is_reported() -> None:
    """
    It fails before it unpickles what was shipped.
    """
    said = "it failed:\nTraceback:\n  ...\nModuleNotFoundError: No module named 'pyarrow'\n"

    sentence = str(cause_of(pyspark.errors.PySparkException(said)))

    assert "A Python of Spark has no package pyarrow: ship the environment" in sentence


def pickled(what: Any) -> bytes:
    data: bytes = cloudpickle.dumps(what)  # type: ignore[no-untyped-call]  # it has no types
    return data


def said_without_barnabas(what: Any) -> list[str]:
    """
    What an executor whose Python has only PySpark prints about *what* it gets.
    """
    libraries = (Path(pyspark.__file__).parent / "python" / "lib").glob("*.zip")
    done = subprocess.run(
        [sys.executable, "-S", "-c", EXECUTOR],
        input=pickled(what),
        env=os.environ | {"PYTHONPATH": os.pathsep.join(map(str, libraries))},
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert 0 == done.returncode, done.stderr.decode()
    return done.stdout.decode().splitlines()
