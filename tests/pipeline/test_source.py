"""
The source ``barnabas`` in Spark. Tests without Spark cover the rows; these check that Spark gets
them.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from barnabas.pipeline import register
from barnabas.protocol.records.record import Header, SimpleRecord
from tests.support.log_directory import WrittenDirectory, append, some_records
from tests.support.scanned import scanned_rows
from tests.support.segments import FIRST_TIMESTAMP

pytestmark = pytest.mark.spark

HEADERS = (Header("a", b"1"), Header("n", None))


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = WrittenDirectory(tmp_path_factory.mktemp("logs"))
    for topic, partition in (("events", 0), ("events", 1), ("users", 0)):
        log = directory.log(topic, partition, segment_bytes=2000)
        for start in range(0, 100, 10):
            append(log, some_records(10, start=start))
        append(log, [SimpleRecord(-1, None, None, HEADERS), SimpleRecord(0, b"", b"")])
    directory.stop()
    return directory.path


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> SparkSession:
    register(spark)
    return spark


def loaded(session: SparkSession, path: Path, **options: Any) -> DataFrame:
    return session.read.format("barnabas").options(**options).load(str(path))


def test_spark_rows_equal_those_of_a_scan(session: SparkSession, path: Path) -> None:
    frame = loaded(session, path, maxPartitionBytes=500, openCostInBytes=0, includeHeaders=True)
    in_ms = frame.selectExpr(
        "key",
        "value",
        "topic",
        "partition",
        "offset",
        "unix_millis(timestamp)",
        "timestampType",
        "headers",
    )

    rows = [
        (*row[:7], None if row[7] is None else [(name, value) for name, value in row[7]])
        for row in in_ms.collect()
    ]

    def hashable(row: tuple[Any, ...]) -> str:
        return repr([bytes(cell) if isinstance(cell, bytearray) else cell for cell in row])

    assert frame.rdd.getNumPartitions() > 3
    assert 306 == len(rows)
    assert Counter(map(hashable, scanned_rows(path))) == Counter(map(hashable, rows))


def test_several_directories_are_loaded_as_one(
    session: SparkSession, path: Path, tmp_path: Path
) -> None:
    directory = WrittenDirectory(tmp_path)
    append(directory.log("more"), some_records(7))
    directory.stop()

    frame = session.read.format("barnabas").load([str(path), tmp_path.as_uri()])

    assert 306 + 7 == frame.count()


def test_headers_are_a_column_on_request(session: SparkSession, path: Path) -> None:
    by_name = session.read.format("barnabas").schema(
        "offset long, headers array<struct<key: string, value: binary>>"
    )

    assert "headers" not in loaded(session, path).columns
    frame = loaded(session, path, includeHeaders=True)
    assert "headers" == frame.columns[-1]
    expected = 3
    assert expected == frame.filter("headers is not null").count()
    assert expected == by_name.load(str(path)).filter("headers is not null").count()


def test_schema_selects_columns(session: SparkSession, path: Path) -> None:
    frame = (
        session.read.format("barnabas")
        .schema("timestamp timestamp, offset long")
        .option("subscribe", "users")
        .load(str(path))
    )

    rows = frame.filter("offset = 42").selectExpr("unix_millis(timestamp)", "offset").collect()

    assert [(FIRST_TIMESTAMP + 42, 42)] == [tuple(row) for row in rows]


def test_frame_can_be_queried_twice(session: SparkSession, path: Path) -> None:
    frame = loaded(session, path)

    assert 204 == frame.filter("topic = 'events'").count()
    assert 306 == frame.count()
    both = frame.filter("partition = 0").union(frame.filter("partition = 1"))
    assert [(0, 204), (1, 102)] == [
        tuple(row) for row in both.groupBy("partition").count().orderBy("partition").collect()
    ]


@pytest.mark.parametrize("level", ["batches", "segments"])
def test_batches_and_segments_can_be_queried(session: SparkSession, path: Path, level: str) -> None:
    """
    Their sizes add up to that of the files.
    """
    stored = sum(file.stat().st_size for file in path.glob("*/*.log"))

    assert [(stored,)] == loaded(session, path, level=level).selectExpr("sum(size)").collect()


def test_empty_range_has_no_rows(session: SparkSession, path: Path) -> None:
    offsets = '{"users": {"0": 5}}'

    frame = loaded(session, path, subscribe="users", startingOffsets=offsets, endingOffsets=offsets)

    assert 0 == frame.count()


@pytest.mark.parametrize(
    ("options", "schema", "message"),
    [
        ({"subscribe": "nothing"}, None, "has no nothing. There is events, users."),
        ({"startingOffset": "5"}, None, "Did you mean startingOffsets?"),
        ({}, "offset int", "The column offset is bigint, not int."),
        ({}, "ofset long", "There is no column ofset; there are key,"),
    ],
)
def test_errors_are_raised_to_the_caller(
    session: SparkSession, path: Path, options: dict[str, str], schema: str | None, message: str
) -> None:
    reader = session.read.format("barnabas").options(**options)
    if schema:
        reader = reader.schema(schema)

    with pytest.raises(PySparkException) as caught:
        reader.load(str(path)).collect()
    assert message in str(caught.value)


def test_corrupt_batch_fails_the_query(session: SparkSession, tmp_path: Path) -> None:
    directory = WrittenDirectory(tmp_path)
    append(directory.log(), some_records(5))
    append(directory.events, some_records(5))
    directory.stop()
    file = tmp_path / "events-0" / "00000000000000000000.log"
    data = bytearray(file.read_bytes())
    data[70] ^= 1
    file.write_bytes(data)

    with pytest.raises(PySparkException, match=rf"{file}: at byte 0 \(offset 0\): "):
        loaded(session, tmp_path).collect()
    corrupt = loaded(session, tmp_path, mode="PERMISSIVE").filter("_corrupt_record is not null")
    assert [0] == [row.offset for row in corrupt.collect()]
