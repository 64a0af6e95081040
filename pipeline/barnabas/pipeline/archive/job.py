"""
Archiving, as a function.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import pyarrow as pa
from pyspark.sql import SparkSession

from barnabas.pipeline.archive.commits import Archive, Commit
from barnabas.pipeline.archive.parquet import RangeToArchive, write_range
from barnabas.pipeline.archive.planning import (
    BYTES_PER_FILE,
    PartitionPlan,
    archive_options,
    plan_archive,
)
from barnabas.pipeline.options import ReadOptions
from barnabas.pipeline.session import translated

_WAVES_AT_ONCE: Final = 2
"""While one ends, and leaves workers without a task, the next one has some."""
_TASKS_PER_SLOT: Final = 2


@dataclass(frozen=True)
class Archived:
    """
    What a run has done.
    """

    plans: Sequence[PartitionPlan]
    commits: Sequence[Commit]
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
    to: str | Path,
    options: Mapping[str, str] | None = None,
    *,
    bytes_per_file: int = BYTES_PER_FILE,
    allow_gaps: bool = False,
    started: Callable[[Sequence[PartitionPlan]], None] = lambda _: None,
    committed: Callable[[Commit], None] = lambda _: None,
) -> Archived:
    """
    Append the closed segments of logs to an archive, each record exactly once.

    It may be killed at any instant and run again. The workers of Spark need the same *path* and
    *to* that the driver has.

    Args:
        spark: None to do it all in this process.
        path: log directories, with commas between them; also URLs.
        to: the directory of the archive, made if there is none; on a disk that all workers share.
        options: of the source: subscribe, subscribePattern or assign, isolationLevel (here
            read_committed by default), readUpTo, chunkBytes, maxBatchBytes.
        bytes_per_file: of the log, that go into one file, about.
        allow_gaps: whether offsets may be missing between segments without the log directory
            telling of a compaction.
        started: is told what is going to be done, before it is.
        committed: is told of each range that was.

    Raises:
        ArchiveError: the archive is not whole, or the log is not the one that it is of, or does not
            go on where it ends; or somebody else is writing to it.
        FileNotFoundError, InvalidOption, UnknownTopic: as reading does.
        CorruptBatch, DataLoss: as reading does, in this process.
        JobFailed: a task of Spark failed, be it with one of these, whose sentence it then has.
    """
    read_options = archive_options(path, options or {}, bytes_per_file)
    there = Archive(Path(to))
    with there.locked():
        plans = plan_archive(there, read_options, allow_gaps=allow_gaps)
        started(plans)
        left = there.leftovers()
        for file in left:
            there.files.remove(file)
        for plan in plans:
            if plan.ranges:
                there.make_directories(plan.topic_partition)
        wanted = [each for plan in plans for each in plan.ranges]
        write = partial(write_range, there, options=read_options)
        written = (
            map(write, wanted) if spark is None else _by_spark(spark, there, wanted, read_options)
        )
        commits = []
        for commit in written:
            there.add(commit)
            committed(commit)
            commits.append(commit)
        return Archived(plans, commits, len(left))


def _by_spark(
    spark: SparkSession, to: Archive, wanted: Sequence[RangeToArchive], options: ReadOptions
) -> Iterator[Commit]:
    """
    The commits of *wanted*, in that order.

    Bytes stay in the workers, which return one row for a file. Tasks run in waves, so that commits
    can be made while others still run.
    """
    size = _TASKS_PER_SLOT * spark.sparkContext.defaultParallelism
    waves = [wanted[start : start + size] for start in range(0, len(wanted), size)]
    tag = f"barnabas-archive-{uuid.uuid4().hex}"
    pool = ThreadPoolExecutor(_WAVES_AT_ONCE)
    try:
        run = partial(_run_wave, spark, tag, to.path, options)
        for commits in pool.map(run, waves):
            yield from commits
    finally:
        # Of a run that failed, nothing else need end.
        spark.sparkContext.cancelJobsWithTag(tag)
        pool.shutdown(cancel_futures=True)


def _run_wave(
    spark: SparkSession,
    tag: str,
    to: Path,
    options: ReadOptions,
    wave: Sequence[RangeToArchive],
) -> list[Commit]:
    spark.sparkContext.addJobTag(tag)
    task = partial(_write_in_worker, to, options, wave)
    numbers = spark.range(0, len(wave), 1, len(wave))
    with translated():
        rows = numbers.mapInArrow(task, "number long, made string").collect()
    made = {row.number: Commit.from_json(row.made) for row in rows}
    return [made[number] for number in range(len(wave))]


def _write_in_worker(
    to: Path,
    options: ReadOptions,
    wave: Sequence[RangeToArchive],
    batches: Iterable[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for number in batch.column(0).to_pylist():
            commit = write_range(Archive(to), wave[number], options)
            yield pa.RecordBatch.from_pydict({"number": [number], "made": [commit.to_json()]})
