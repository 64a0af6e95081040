"""
Writing one file of an archive, in whatever process.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import crc32c
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet as pq

from barnabas.pipeline.archive.commits import Archive, ArchiveError, Commit, range_name
from barnabas.pipeline.decode import Offsets
from barnabas.pipeline.options import MiB, ReadOptions
from barnabas.pipeline.planning import Work
from barnabas.pipeline.schemas import RECORDS, project
from barnabas.pipeline.segment_reader import read
from barnabas.storage.files import TEMPORARY_SUFFIX
from barnabas.storage.log_files import TopicPartition

COLUMNS: Final = ("offset", "timestamp", "timestampType", "key", "value", "headers")
"""Topic and partition are in the path of the file."""
SCHEMA: Final = project(RECORDS, COLUMNS)

_ROW_GROUP_BYTES: Final = 16 * MiB
"""Of columns in memory: what a reader who skips by statistics has to take at once."""


@dataclass(frozen=True)
class RangeToArchive:
    """
    What becomes one file.
    """

    topic_partition: TopicPartition
    offsets: Offsets
    work: Work

    @property
    def log_bytes(self) -> int:
        return sum(piece.size for piece in self.work.ranges)


def write_range(archive: Archive, wanted: RangeToArchive, options: ReadOptions) -> Commit:
    """
    Write the file of a range and return the commit that will make it part of the archive.

    Every attempt has a file of its own: what an attempt that was given up still writes, is in
    nobody's way. The directories are there already.

    Raises:
        CorruptBatch, DataLoss: as reading does.
    """
    directory = archive.data_directory(wanted.topic_partition)
    name = f"{range_name(wanted.offsets)}-{uuid.uuid4().hex}.parquet"
    file, temporary = directory / name, directory / f"{name}{TEMPORARY_SUFFIX}"
    written = _Written()
    try:
        batches = written.watch(read(wanted.work, COLUMNS, options), wanted)
        if _write(temporary, batches):
            _make_durable(archive, temporary)
            archive.files.rename(temporary, file)
            archive.files.sync_directory(directory)
    except BaseException:
        archive.files.remove(temporary)
        raise
    data = memoryview(pa.memory_map(str(file)).read_buffer()) if written.records else b""
    return Commit(
        topic=wanted.topic_partition.topic,
        partition=wanted.topic_partition.partition,
        start_offset=wanted.offsets.start,
        end_offset=wanted.offsets.end,
        records=written.records,
        file=str(file.relative_to(archive.path)) if written.records else None,
        file_bytes=len(data),
        crc32c=crc32c.crc32c(data),
        log_bytes=wanted.log_bytes,
        min_timestamp_ms=written.min_timestamp_ms,
        max_timestamp_ms=written.max_timestamp_ms,
        isolation_level=options.isolation_level.value,
    )


class _Written:
    """
    What is known of the records that went into a file.
    """

    def __init__(self) -> None:
        self.records = 0
        self.min_timestamp_ms: int | None = None
        self.max_timestamp_ms: int | None = None

    def watch(
        self, batches: Iterable[pa.RecordBatch], wanted: RangeToArchive
    ) -> Iterator[pa.RecordBatch]:
        """
        Raises:
            ArchiveError: offsets do not grow, or are outside of the range.
        """
        next_offset = wanted.offsets.start
        for batch in batches:
            if not batch.num_rows:
                continue
            offsets = batch.column("offset").to_numpy()
            ends = offsets[0] >= next_offset and offsets[-1] < wanted.offsets.end
            if not ends or (np.diff(offsets) <= 0).any():
                raise ArchiveError(
                    f"{wanted.work.ranges[0].directory}: offsets {offsets[0]} to {offsets[-1]} do"
                    f" not grow from {next_offset} to {wanted.offsets.end}."
                )
            next_offset = int(offsets[-1]) + 1
            self._note(batch)
            yield batch

    def _note(self, batch: pa.RecordBatch) -> None:
        self.records += batch.num_rows
        times = pc.min_max(batch.column("timestamp").cast(pa.int64())).as_py()
        low, high = times["min"] // 1000, times["max"] // 1000
        if self.min_timestamp_ms is None or low < self.min_timestamp_ms:
            self.min_timestamp_ms = low
        if self.max_timestamp_ms is None or high > self.max_timestamp_ms:
            self.max_timestamp_ms = high


def _write(path: Path, batches: Iterable[pa.RecordBatch]) -> bool:
    """
    Whether there was anything; if not, there is no file.
    """
    writer: pq.ParquetWriter | None = None
    try:
        for group in _row_groups(batches):
            if writer is None:
                writer = _writer(path)
            writer.write_table(group, row_group_size=group.num_rows)
    finally:
        if writer is not None:
            writer.close()
    return writer is not None


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


def _writer(path: Path) -> pq.ParquetWriter:
    return pq.ParquetWriter(
        str(path),
        SCHEMA,
        compression="zstd",
        compression_level=1,
        # Keys and values seldom repeat, and are compressed anyway.
        use_dictionary=["timestampType"],
        column_encoding={"offset": "DELTA_BINARY_PACKED", "timestamp": "DELTA_BINARY_PACKED"},
        write_statistics=["offset", "timestamp"],
    )


def _make_durable(archive: Archive, path: Path) -> None:
    file = archive.files.open(path, create=False)
    try:
        file.sync()
    finally:
        file.close()
