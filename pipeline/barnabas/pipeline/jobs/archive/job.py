"""
Archiving, as a function.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from barnabas.pipeline.jobs.archive.commit import ArchiveCommit
from barnabas.pipeline.jobs.archive.opening import as_table, storage_options
from barnabas.pipeline.jobs.archive.parquet import RangeToArchive, write_range
from barnabas.pipeline.jobs.archive.planning import (
    BYTES_PER_FILE,
    ArchivePlan,
    archive_options,
    plan_archive,
)
from barnabas.pipeline.jobs.archive.store import DataStore
from barnabas.pipeline.jobs.archive.table import ArchiveTable
from barnabas.pipeline.options import ReadOptions
from barnabas.pipeline.spark.worker import each_of, in_waves


@dataclass(frozen=True)
class Archived:
    """
    What a run has done.
    """

    plans: Sequence[ArchivePlan]
    commits: Sequence[ArchiveCommit]
    removed: int
    """Files of runs that were killed."""

    @property
    def records(self) -> int:
        return sum(commit.records for commit in self.commits)

    @property
    def log_bytes(self) -> int:
        return sum(commit.log_bytes for commit in self.commits)

    @property
    def file_bytes(self) -> int:
        return sum(commit.file_bytes for commit in self.commits)


def archive(
    spark: SparkSession | None,
    path: str,
    to: str | Path | ArchiveTable,
    options: Mapping[str, str] | None = None,
    *,
    bytes_per_file: int = BYTES_PER_FILE,
    allow_gaps: bool = False,
    started: Callable[[Sequence[ArchivePlan]], None] = lambda _: None,
    committed: Callable[[ArchiveCommit], None] = lambda _: None,
) -> Archived:
    """
    Append the closed segments of logs to an archive, each record exactly once.

    It may be killed at any instant and run again. The workers of Spark need the same *path* and
    *to* that the driver has.

    Args:
        spark: None to do it all in this process.
        path: log directories, with commas between them; also URLs.
        to: the directory of an archive in Parquet, made if there is none, on a disk that all
            workers share, or the URL of one in an object store. Or a table of another format, or
            with other storage options, from ``open_table``.
        options: of the source: subscribe, subscribePattern or assign, isolationLevel (here
            read_committed by default), readUpTo, chunkBytes, maxBatchBytes.
        bytes_per_file: of the log, that go into one file, about.
        allow_gaps: whether offsets may be missing between segments without the log directory
            telling of a compaction.
        started: is told what is going to be done, before it is.
        committed: is told of each range that was.

    Raises:
        ArchiveError: the archive is not whole, or the log is not the one that it is of, or does not
            go on where it ends.
        InUse: somebody else is writing to it.
        FileNotFoundError, InvalidOption, UnknownTopic: as reading does.
        CorruptBatch, DataLoss: as reading does, in this process.
        JobFailed: a task of Spark failed, be it with one of these, whose sentence it then has.
    """
    read_options = archive_options(path, options or {}, bytes_per_file)
    there = as_table(to, storage_options({}, spark))
    with there.locked():
        plans = plan_archive(there, read_options, allow_gaps=allow_gaps)
        started(plans)
        left = there.leftovers()
        for file in left:
            there.remove_leftover(file)
        there.prepare(plan.topic_partition for plan in plans if plan.ranges)
        wanted = [each for plan in plans for each in plan.ranges]
        written: Iterator[ArchiveCommit]
        if spark is None:
            written = (write_range(there.store, each, read_options) for each in wanted)
        else:
            task = partial(_write_in_worker, there.store, read_options)
            written = map(ArchiveCommit.from_json, in_waves(spark, "archive", wanted, task))
        commits = []
        for commit in written:
            there.add(commit)
            committed(commit)
            commits.append(commit)
        return Archived(plans, commits, len(left))


def _write_in_worker(
    store: DataStore,
    options: ReadOptions,
    wave: Sequence[RangeToArchive],
    batches: Iterable[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    def write(wanted: RangeToArchive) -> str:
        return write_range(store, wanted, options).to_json()

    yield from each_of(write, wave, batches)
