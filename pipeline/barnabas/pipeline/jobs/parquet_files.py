"""
Files of records as Parquet: written so that they are either whole and durable, or not there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import crc32c
import pyarrow as pa
from pyarrow import parquet as pq

from barnabas.pipeline.options import MiB
from barnabas.pipeline.schemas import ARCHIVED, FAR_TIMESTAMP, project
from barnabas.storage.fs.interface import TEMPORARY_SUFFIX, Files
from barnabas.storage.topic_partition import TopicPartition

COLUMNS: Final = (
    *("offset", "timestamp", "timestampType", "key", "value", "headers"),
    FAR_TIMESTAMP,
)
"""Topic and partition are in the path of the file."""
SCHEMA: Final = project(ARCHIVED, COLUMNS)
ALWAYS: Final = ("topic", "partition", "offset", "timestamp", "key", "value")
"""Columns that files and tables of all versions have. Older ones may lack others of records."""

_FEW_VALUES: Final = ("topic", "partition", "timestampType")
STATISTICS: Final = ("topic", "partition", "offset", "timestamp")
"""Columns by which readers leave out files and parts of them."""

_ROW_GROUP_BYTES: Final = 16 * MiB
"""Of columns in memory: what a reader who skips by statistics has to take at once."""


class Checksum(NamedTuple):
    """
    By which it can be told later whether a file is as it was written.
    """

    size: int
    crc32c: int


def partition_directory(base: Path, partition: TopicPartition) -> Path:
    """
    Where the files of a partition are, so that readers find topic and partition in the path.
    """
    topic, number = partition
    return base / f"topic={topic}" / f"partition={number}"


def write_durably(
    files: Files, path: Path, batches: Iterable[pa.RecordBatch], schema: pa.Schema = SCHEMA
) -> bool:
    """
    Write a file with the columns of *schema* under a temporary name, and give it its own when it is
    on the disk. The directory is there already.

    Returns:
        Whether there were any rows; if not, there is no file.
    """
    temporary = path.with_name(path.name + TEMPORARY_SUFFIX)
    try:
        if not write_parquet(partial(pa.OSFile, str(temporary), "wb"), batches, schema):
            return False
        _make_durable(files, temporary)
        files.rename(temporary, path)
        files.sync_directory(path.parent)
    except BaseException:
        files.remove(temporary)
        raise
    return True


def checksum(path: Path) -> Checksum:
    """
    That of the file at *path*.
    """
    with pa.memory_map(str(path)) as file:
        return checksum_of(file.read_buffer())


def checksum_of(data: pa.Buffer) -> Checksum:
    """
    That of a file with this content.
    """
    return Checksum(data.size, crc32c.crc32c(memoryview(data)))


def write_parquet(
    open_sink: Callable[[], Any], batches: Iterable[pa.RecordBatch], schema: pa.Schema
) -> bool:
    """
    Write *batches* as Parquet to a sink that is opened, and closed, if there are any rows.

    Returns:
        Whether there were any.
    """
    sink, writer = None, None
    try:
        for group in _row_groups(batches):
            if writer is None:
                sink = open_sink()
                writer = _writer(sink, schema)
            writer.write_table(group, row_group_size=group.num_rows)
    finally:
        if writer is not None:
            writer.close()
        if sink is not None:
            sink.close()
    return writer is not None


def read_parquet(file: pq.ParquetFile, schema: pa.Schema, rows: int) -> Iterator[pa.RecordBatch]:
    """
    The columns of *schema*, at most so many *rows* at a time. Those that the file is older than are
    null.
    """
    there = [name for name in schema.names if name in file.schema_arrow.names]
    for batch in file.iter_batches(rows, columns=there):
        found = batch.select(there).cast(project(schema, there))
        yield pa.RecordBatch.from_arrays(
            [
                found.column(field.name)
                if field.name in there
                else pa.nulls(len(batch), field.type)
                for field in schema
            ],
            schema=schema,
        )


def _row_groups(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    waiting: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        waiting.append(batch)
        size += batch.nbytes
        if size >= _ROW_GROUP_BYTES:
            yield pa.Table.from_batches(waiting)
            waiting, size = [], 0
    if waiting:
        yield pa.Table.from_batches(waiting)


def _writer(sink: Any, schema: pa.Schema) -> pq.ParquetWriter:
    return pq.ParquetWriter(
        sink,
        schema,
        compression="zstd",
        compression_level=1,
        # Keys and values seldom repeat, and are compressed anyway.
        use_dictionary=[name for name in _FEW_VALUES if name in schema.names],
        column_encoding={"offset": "DELTA_BINARY_PACKED", "timestamp": "DELTA_BINARY_PACKED"},
        write_statistics=[name for name in STATISTICS if name in schema.names],
    )


def _make_durable(files: Files, path: Path) -> None:
    file = files.open(path, create=False)
    try:
        file.sync()
    finally:
        file.close()
