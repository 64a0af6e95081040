"""
The source ``barnabas`` as a stream in Spark. Tests without Spark cover the steps.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from barnabas.pipeline import register
from tests.support.log_directory import START_OFFSETS, WrittenDirectory, append, some_records

pytestmark = pytest.mark.spark

LIMIT_S = 120


class Stream:
    def __init__(self, spark: SparkSession, directory: WrittenDirectory, checkpoint: Path) -> None:
        self._spark = spark
        self._directory = directory
        self._checkpoint = checkpoint
        self.steps: list[list[tuple[int, int]]] = []
        """Partition and offset of all rows, by step."""

    def run(self, **options: Any) -> None:
        register(self._spark)
        frame = (
            self._spark.readStream.format("barnabas")
            .schema("partition int, offset long")
            .options(startingOffsets="earliest", **options)
            .load(str(self._directory.path))
        )
        query = (
            frame.writeStream.foreachBatch(self._note)
            .option("checkpointLocation", str(self._checkpoint))
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(LIMIT_S)

    def _note(self, frame: DataFrame, _: int) -> None:
        self.steps.append(sorted((row.partition, row.offset) for row in frame.collect()))


def write(directory: WrittenDirectory, start: int, end: int) -> None:
    for log in directory.logs.values():
        for offset in range(start, end, 5):
            append(log, some_records(5, start=offset))
    directory.checkpoint()


@pytest.fixture
def written(tmp_path: Path) -> WrittenDirectory:
    directory = WrittenDirectory(tmp_path / "logs")
    for partition in range(2):
        directory.log("events", partition, segment_bytes=2000, index_interval_bytes=100)
    write(directory, 0, 100)
    return directory


def test_stream_reads_everything_once_across_restarts(
    spark: SparkSession, written: WrittenDirectory, tmp_path: Path
) -> None:
    stream = Stream(spark, written, tmp_path / "checkpoint")

    stream.run(maxOffsetsPerTrigger=80)
    first_steps = [len(step) for step in stream.steps]
    written.log("events", 2)
    write(written, 100, 120)
    stream.run(maxBytesPerTrigger=10_000_000)

    rows = [row for step in stream.steps for row in step]
    assert [80, 80, 40] == first_steps
    assert [60] == [len(step) for step in stream.steps[3:]]
    expected = {(partition, offset) for partition in range(2) for offset in range(120)}
    assert expected | {(2, offset) for offset in range(20)} == set(rows)
    assert len(set(rows)) == len(rows)


def test_offsets_deleted_before_a_restart_end_the_query(
    spark: SparkSession, written: WrittenDirectory, tmp_path: Path
) -> None:
    stream = Stream(spark, written, tmp_path / "checkpoint")
    stream.run()
    write(written, 100, 150)
    (written.path / START_OFFSETS).write_text("0\n1\nevents 1 130\n")

    with pytest.raises(StreamingQueryException, match="Offsets 100 to 129 of events-1 are gone"):
        stream.run()
    stream.run(failOnDataLoss=False)

    assert {(0, offset) for offset in range(100, 150)} | {
        (1, offset) for offset in range(130, 150)
    } == set(stream.steps[-1])
