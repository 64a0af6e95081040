"""
Reading the files of an archive, without Spark.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import pyarrow as pa
from pyarrow import parquet as pq

from barnabas.pipeline.jobs.archive.store import DataStore
from barnabas.pipeline.jobs.archive.table import ArchivedFile, ArchiveError
from barnabas.pipeline.jobs.parquet_files import SCHEMA, checksum_of, read_parquet
from barnabas.pipeline.schemas import project


def file_batches(
    store: DataStore, file: ArchivedFile, columns: Sequence[str], rows: int
) -> Iterator[pa.RecordBatch]:
    """
    The *columns* of the records of a file, at most so many *rows* at a time. Topic and partition
    are no columns: they are those of *file*.

    Raises:
        ArchiveError: the file is not as it was written.
    """
    with _opened(store, file) as parquet:
        yield from read_parquet(parquet, project(SCHEMA, columns), rows)


@contextmanager
def _opened(store: DataStore, file: ArchivedFile) -> Iterator[pq.ParquetFile]:
    if file.checksum is None:
        with store.open(file.path) as parquet:
            yield parquet
        return
    data = store.read(file.path)
    if checksum_of(data) != file.checksum:
        raise ArchiveError(
            f"{file.name}, the file of offsets {file.offsets.start} to {file.offsets.end} of"
            f" {file.topic_partition}, is not as it was written."
        )
    with pq.ParquetFile(pa.BufferReader(data)) as parquet:
        yield parquet


def batches_in_order(
    store: DataStore, files: Sequence[ArchivedFile], columns: Sequence[str], rows: int
) -> Iterator[pa.RecordBatch]:
    """
    The records of the *files* of a partition by their offsets, which are among the *columns*.

    Files that were merged may overlap, or have their records in another order; those that do are
    sorted in memory together.

    Raises:
        ArchiveError: a file is not as it was written, or an offset is there twice.
    """
    for group in _groups(files):
        if len(group) == 1 and group[0].checksum is not None:
            # It was written in order, and is as it was written.
            yield from file_batches(store, group[0], columns, rows)
            continue
        batches = [each for file in group for each in file_batches(store, file, columns, rows)]
        table = pa.Table.from_batches(batches).sort_by("offset")
        if (np.diff(table.column("offset").to_numpy()) == 0).any():
            raise ArchiveError(f"{group[0].name} has records that are there twice.")
        yield from table.to_batches(rows)


def _groups(files: Iterable[ArchivedFile]) -> Iterator[list[ArchivedFile]]:
    """
    Files whose offsets overlap.
    """
    group: list[ArchivedFile] = []
    end = 0
    for file in sorted(files, key=lambda file: file.offsets.start):
        if group and file.offsets.start >= end:
            yield group
            group = []
        group.append(file)
        end = max(end, file.offsets.end)
    if group:
        yield group
