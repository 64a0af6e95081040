from __future__ import annotations

import sys
from collections.abc import Iterator

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def test_workers_run_the_python_of_the_tests(spark: SparkSession) -> None:
    def executables(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import barnabas.storage.log.log  # noqa: F401, PLC0415  # it is there

        for _ in batches:
            yield pa.RecordBatch.from_pydict({"executable": [sys.executable]})

    rows = spark.range(1).mapInArrow(executables, "executable string").collect()

    assert [sys.executable] == [row.executable for row in rows]


def test_times_are_shown_in_utc(spark: SparkSession) -> None:
    rows = spark.sql("select string(timestamp_millis(0)) as shown").collect()

    assert ["1970-01-01 00:00:00"] == [row.shown for row in rows]
