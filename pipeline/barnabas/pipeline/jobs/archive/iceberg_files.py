"""
Small files of an Iceberg table, and the files that take their place.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Final, NamedTuple

import pyarrow as pa
from pyiceberg.conversions import from_bytes
from pyiceberg.io.pyarrow import parquet_file_to_data_file
from pyiceberg.manifest import DataFile
from pyiceberg.table import Table
from pyiceberg.types import LongType

from barnabas.pipeline.decoding.decode import OffsetRange
from barnabas.pipeline.jobs.archive.commit import range_name
from barnabas.pipeline.jobs.archive.store import DataStore
from barnabas.pipeline.jobs.archive.table import ArchiveError
from barnabas.pipeline.jobs.parquet_files import read_parquet
from barnabas.pipeline.schemas import ARCHIVED
from barnabas.storage.topic_partition import TopicPartition

_ROWS: Final = 65_536


class Extent(NamedTuple):
    """
    The records of a partition in a table.
    """

    offsets: OffsetRange
    """From the first to the last one."""
    last_file: str
    """The file that has the last one."""


def extents(table: Table) -> dict[TopicPartition, Extent]:
    """
    The partitions with records in the current snapshot.

    Raises:
        ArchiveError: a file has no bounds.
    """
    column = offset_column(table)
    found: dict[TopicPartition, Extent] = {}
    for task in table.scan().plan_files():
        file = task.file
        if column not in (file.upper_bounds or {}):
            raise _unbounded(file)
        offsets, partition = offsets_of(file, column), _partition_of(file)
        known = found.get(partition)
        if known is not None:
            start = min(offsets.start, known.offsets.start)
            if known.offsets.end > offsets.end:
                found[partition] = known._replace(offsets=OffsetRange(start, known.offsets.end))
                continue
            offsets = OffsetRange(start, offsets.end)
        found[partition] = Extent(offsets, file.file_path)
    return found


def _unbounded(file: DataFile) -> ArchiveError:
    return ArchiveError(
        f"{file.file_path} has deleted rows, or no bounds of its offsets: the file alone does not"
        " say what is in the table. Read it as an Iceberg table."
    )


def files_of(table: Table, partition: TopicPartition) -> list[DataFile]:
    """
    The files of a partition, by their first offsets.

    Raises:
        ArchiveError: the table has rows that are deleted, or a file without bounds.
    """
    only = f"topic = '{partition.topic}' and partition = {partition.partition}"
    column = offset_column(table)
    tasks = list(table.scan(row_filter=only).plan_files())
    for task in tasks:
        if task.delete_files or column not in (task.file.lower_bounds or {}):
            raise _unbounded(task.file)
    return sorted((task.file for task in tasks), key=lambda file: offsets_of(file, column).start)


def small_files(table: Table, below_bytes: int) -> list[list[DataFile]]:
    """
    Groups of files that are worth merging: of one partition, with offsets that follow one another,
    and together about *below_bytes* large.
    """
    column = offset_column(table)
    files = [
        task.file
        for task in table.scan().plan_files()
        if not task.delete_files
        and task.file.file_size_in_bytes < below_bytes
        and column in (task.file.lower_bounds or {})
    ]
    groups: list[list[DataFile]] = []
    size = 0
    for file in sorted(
        files, key=lambda file: (_partition_of(file), offsets_of(file, column).start)
    ):
        full = size >= below_bytes
        if not groups or full or _partition_of(groups[-1][0]) != _partition_of(file):
            groups.append([])
            size = 0
        groups[-1].append(file)
        size += file.file_size_in_bytes
    return [group for group in groups if len(group) > 1]


def merged_file(table: Table, store: DataStore, group: list[DataFile]) -> DataFile:
    """
    Write a file with the records of a *group*; it is not part of the table yet.
    """
    column = offset_column(table)
    offsets = OffsetRange(offsets_of(group[0], column).start, offsets_of(group[-1], column).end)
    name = f"{range_name(offsets)}-{uuid.uuid4().hex}.parquet"
    file = store.write(_partition_of(group[0]), name, _batches(store, group))
    assert file is not None
    return parquet_file_to_data_file(table.io, table.metadata, f"{store.base}/{file.path}")


def _batches(store: DataStore, group: list[DataFile]) -> Iterator[pa.RecordBatch]:
    for old in group:
        with store.open(old.file_path) as file:
            yield from read_parquet(file, ARCHIVED, _ROWS)


def _partition_of(file: DataFile) -> TopicPartition:
    return TopicPartition(file.partition[0], file.partition[1])


def offset_column(table: Table) -> int:
    """
    Its number in the table's schema.
    """
    return int(table.schema().find_field("offset").field_id)


def offsets_of(file: DataFile, column: int) -> OffsetRange:
    """
    The range that the bounds of a file say.

    Args:
        column: the number of the column of offsets.
    """
    low, high = (
        int(from_bytes(LongType(), bounds[column]))
        for bounds in (file.lower_bounds, file.upper_bounds)
    )
    return OffsetRange(low, high + 1)
