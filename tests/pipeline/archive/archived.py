"""
Logs to archive, and the rows of an archive.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from barnabas.pipeline.jobs.archive.commits import Archive
from barnabas.pipeline.jobs.archive.job import archive
from barnabas.pipeline.jobs.archive.table import ArchiveTable
from barnabas.pipeline.jobs.output import InUse
from barnabas.pipeline.schemas import RECORDS
from barnabas.protocol.compression import CompressionType
from barnabas.protocol.records.record import Header, SimpleRecord
from barnabas.storage.log.log import Log
from barnabas.storage.topic_partition import TopicPartition
from tests.support.log_directory import WrittenDirectory, append, some_records
from tests.support.logs import end_transaction
from tests.support.scanned import place_of, scanned_rows, sorted_rows

SEGMENT_BYTES = 800


EVENTS = TopicPartition("events", 0)


def written_logs(path: Path) -> WrittenDirectory:
    """
    Write three partitions with several closed segments and records of every shape.
    """
    directory = WrittenDirectory(path)
    for topic, partition in (("events", 0), ("events", 1), ("123", 0)):
        fill(directory.log(topic, partition, segment_bytes=SEGMENT_BYTES), 200)
    directory.stop()
    return directory


def fill(log: Log, count: int) -> None:
    codecs = list(CompressionType)
    start = log.log_end_offset
    for first in range(start, start + count, 10):
        records = some_records(8, start=first)
        records.append(SimpleRecord(-1, None, None, (Header("a", b"1"), Header("n", None))))
        records.append(SimpleRecord(first + 1, b"", b"", (Header("a", b""),)))
        append(log, records, compression=codecs[first // 10 % len(codecs)])


def transaction(log: Log, sequence: int, *, commit: bool) -> None:
    append(
        log,
        some_records(5),
        producer_id=7,
        producer_epoch=0,
        base_sequence=sequence,
        is_transactional=True,
    )
    end_transaction(log, 7, commit=commit)


def archive_in_two_runs(spark: SparkSession, logs: str, opened: Callable[[], ArchiveTable]) -> None:
    """
    Archive *logs* in one run; an older run is refused afterwards.
    """
    other = opened()
    other.prepare([])
    other.refresh()
    first, *_ = archive(spark, logs, opened(), bytes_per_file=5_000).commits
    # The other run has seen one record less.
    late = replace(first, end_offset=first.end_offset - 1, records=first.records - 1)
    with pytest.raises(InUse, match=f"Another run has added to {first.topic_partition}"):
        other.add(late)


def closed_rows(path: Path, **options: Any) -> list[tuple[Any, ...]]:
    """
    The rows of a log directory without those of each partition's last segment.
    """
    options.setdefault("isolationLevel", "read_committed")
    last: dict[tuple[str, int], int] = {}
    for row in scanned_rows(path, level="segments", **options):
        last[row[:2]] = max(row[2], last.get(row[:2], 0))
    return sorted(
        (row for row in scanned_rows(path, **options) if row[4] < last[row[2:4]]), key=place_of
    )


def archived_rows(path: Path | Archive) -> list[tuple[Any, ...]]:
    """
    Read the rows of a Parquet archive through its commits, without Spark.
    """
    archive = path if isinstance(path, Archive) else Archive(path)
    return sorted_rows(_batches(archive))


def _batches(archive: Archive) -> Iterator[pa.RecordBatch]:
    for partition, commits in archive.commits.items():
        for commit in commits:
            if commit.file is None:
                continue
            with archive.store.open(commit.file) as file:
                table = file.read()
            table = table.append_column("topic", pa.array([partition.topic] * len(table)))
            numbers = pa.array([partition.partition] * len(table), pa.int32())
            table = table.append_column("partition", numbers).select(RECORDS.names)
            assert RECORDS == table.schema
            yield from table.to_batches()
