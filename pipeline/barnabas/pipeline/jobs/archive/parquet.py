"""
Writing one file of an archive, in whatever process.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from barnabas.pipeline.decoding.arrow import milliseconds
from barnabas.pipeline.decoding.decode import OffsetRange
from barnabas.pipeline.jobs.archive.commit import ArchiveCommit, range_name
from barnabas.pipeline.jobs.archive.store import DataStore
from barnabas.pipeline.jobs.archive.table import ArchiveError
from barnabas.pipeline.options import ReadOptions
from barnabas.pipeline.reading.plan import Work
from barnabas.pipeline.reading.reader import read
from barnabas.storage.topic_partition import TopicPartition


@dataclass(frozen=True)
class RangeToArchive:
    """
    What becomes one file.
    """

    topic_partition: TopicPartition
    offsets: OffsetRange
    work: Work

    @property
    def log_bytes(self) -> int:
        return sum(piece.size for piece in self.work.ranges)


def write_range(store: DataStore, wanted: RangeToArchive, options: ReadOptions) -> ArchiveCommit:
    """
    Write the file of a range and return the commit that will make it part of the archive.

    Every attempt has a file of its own: what an attempt that was given up still writes, is in
    nobody's way. The directories are there already.

    Raises:
        CorruptBatch, DataLoss: as reading does.
    """
    name = f"{range_name(wanted.offsets)}-{uuid.uuid4().hex}.parquet"
    written = _Written()
    options = replace(options, storage=store.storage)
    batches = written.watch(read(wanted.work, store.columns, options), wanted)
    file = store.write(wanted.topic_partition, name, batches)
    return ArchiveCommit(
        topic=wanted.topic_partition.topic,
        partition=wanted.topic_partition.partition,
        start_offset=wanted.offsets.start,
        end_offset=wanted.offsets.end,
        records=written.records,
        file=None if file is None else file.path,
        file_bytes=0 if file is None else file.checksum.size,
        crc32c=0 if file is None else file.checksum.crc32c,
        log_bytes=wanted.log_bytes,
        min_timestamp_ms=written.min_timestamp_ms,
        max_timestamp_ms=written.max_timestamp_ms,
        isolation_level=options.isolation_level.value,
        first_offset=written.first_offset,
        last_offset=written.last_offset,
    )


class _Written:
    """
    What is known of the records that went into a file.
    """

    def __init__(self) -> None:
        self.records = 0
        self.first_offset: int | None = None
        self.last_offset: int | None = None
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
            if self.first_offset is None:
                self.first_offset = int(offsets[0])
            self.last_offset = int(offsets[-1])
            next_offset = self.last_offset + 1
            self._note(batch)
            yield batch

    def _note(self, batch: pa.RecordBatch) -> None:
        self.records += batch.num_rows
        times = pc.min_max(milliseconds(batch)).as_py()
        low, high = times["min"], times["max"]
        if self.min_timestamp_ms is None or low < self.min_timestamp_ms:
            self.min_timestamp_ms = low
        if self.max_timestamp_ms is None or high > self.max_timestamp_ms:
            self.max_timestamp_ms = high
