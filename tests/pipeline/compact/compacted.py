"""
Logs to compact, and the rows of the result.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet as pq

from barnabas.pipeline.jobs.compact.snapshots import Snapshots
from barnabas.pipeline.schemas import RECORDS
from tests.support.log_directory import WrittenDirectory
from tests.support.random_logs import RandomLog
from tests.support.scanned import place_of, scanned_rows, sorted_rows

PARTITIONS = (("events", 0), ("events", 1), ("123", 0))


def random_logs(path: Path, *, appends: int = 60) -> Path:
    """
    A log directory whose partitions have every kind of record, batch and transaction.
    """
    directory = WrittenDirectory(path)
    for seed, (topic, partition) in enumerate(PARTITIONS):
        log = RandomLog(seed, path / f"{topic}-{partition}", directory.files, directory.clock)
        log.write(appends)
    return path


def latest_rows(path: Path, *, keep_tombstones: bool = False) -> list[tuple[Any, ...]]:
    """
    Find the latest row of each key, row by row.
    """
    rows = scanned_rows(path, isolationLevel="read_committed")
    return latest_of(rows, keep_tombstones=keep_tombstones)


def latest_of(
    rows: Iterable[tuple[Any, ...]], *, keep_tombstones: bool = False
) -> list[tuple[Any, ...]]:
    """
    The latest row of each key, if the rows of each partition are in order.
    """
    latest = {(row[2], row[3], row[0]): row for row in rows if row[0] is not None}
    stay = [row for row in latest.values() if keep_tombstones or row[1] is not None]
    return sorted(stay, key=place_of)


def compacted_rows(path: Path) -> list[tuple[Any, ...]]:
    return sorted_rows(_batches(Snapshots(path)))


def _batches(snapshots: Snapshots) -> Iterator[pa.RecordBatch]:
    for partition in (each for topic in snapshots.topics.values() for each in topic):
        if partition.file is None:
            continue
        with pq.ParquetFile(snapshots.path / partition.file) as file:
            table = file.read()
        table = table.append_column("topic", pa.array([partition.topic] * len(table)))
        numbers = pa.array([partition.partition] * len(table), pa.int32())
        yield from table.append_column("partition", numbers).select(RECORDS.names).to_batches()
