"""
Reading the file of a commit, without Spark.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyarrow import parquet as pq

from barnabas.pipeline.jobs.archive.commit import Commit
from barnabas.pipeline.jobs.archive.commits import Archive
from barnabas.pipeline.jobs.archive.table import ArchiveError
from barnabas.pipeline.jobs.parquet_files import Checksum, checksum


def committed_batches(
    archive: Archive, commit: Commit, columns: Sequence[str], rows: int
) -> Iterator[pa.RecordBatch]:
    """
    The records of *commit*, at most so many *rows* at a time; nothing if it has no file.

    Raises:
        ArchiveError: the file is not as it was written.
    """
    if commit.file is None:
        return
    path = archive.path / commit.file
    if checksum(path) != Checksum(commit.file_bytes, commit.crc32c):
        raise ArchiveError(
            f"{path}, the file of offsets {commit.start_offset} to {commit.end_offset} of"
            f" {commit.topic_partition}, is not as it was written."
        )
    with pq.ParquetFile(path) as file:
        yield from file.iter_batches(rows, columns=list(columns))
