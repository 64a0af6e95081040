"""
Compacting, as a function.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from barnabas.pipeline.decoding.varint_columns import Ints
from barnabas.pipeline.jobs.archive.commit import range_name
from barnabas.pipeline.jobs.archive.opening import existing_archive, storage_options
from barnabas.pipeline.jobs.archive.table import ArchiveTable
from barnabas.pipeline.jobs.compact.latest import LatestOffsets, only
from barnabas.pipeline.jobs.compact.planning import (
    CompactionPlan,
    compact_options,
    plan_archive,
    plan_logs,
)
from barnabas.pipeline.jobs.compact.snapshots import CompactedPartition, CompactError, Snapshots
from barnabas.pipeline.jobs.parquet_files import COLUMNS, Checksum, checksum, write_durably
from barnabas.pipeline.spark.worker import each_of, in_waves


@dataclass(frozen=True)
class Compacted:
    """
    What a run has done.
    """

    plans: Sequence[CompactionPlan]
    partitions: Sequence[CompactedPartition]
    """Those that it had to do."""
    removed: int
    """Files of runs that were killed, and of snapshots that were replaced."""


def compact(
    spark: SparkSession | None,
    path: str | ArchiveTable,
    to: str | Path,
    options: Mapping[str, str] | None = None,
    *,
    from_archive: bool = False,
    keep_tombstones: bool = False,
    started: Callable[[Sequence[CompactionPlan]], None] = lambda _: None,
    done: Callable[[CompactedPartition], None] = lambda _: None,
) -> Compacted:
    """
    Write the latest record of each key of topics, as far as they are committed by now.

    It may be killed at any instant and run again. A topic appears when all of its partitions are
    done, in the place of what was there of it. The workers of Spark need the same *path* and *to*
    that the driver has; one works on a partition, and has all its keys in memory.

    Args:
        spark: None to do it all in this process.
        path: log directories, with commas between them, also URLs; or the directory or URL of an
            archive, or one of ``open_table``.
        to: a directory, made if there is none; on a disk that all workers share.
        options: of the source: subscribe, subscribePattern or assign; of logs also readUpTo,
            chunkBytes and maxBatchBytes.
        keep_tombstones: whether a key whose latest record has a null value keeps that.
        started: is told what is going to be done, before it is.
        done: is told of each partition that was.

    Raises:
        ArchiveError: the archive is not whole.
        CompactError: what was compacted before is not whole; or in this process, the log changed
            under the hands of the job.
        InUse: somebody else is writing to *to*.
        FileNotFoundError, InvalidOption, UnknownTopic: as reading does.
        CorruptBatch, DataLoss: as reading does, in this process.
        JobFailed: a task of Spark failed, be it with one of these, whose sentence it then has.
    """
    storage = storage_options({}, spark)
    from_archive = from_archive or isinstance(path, ArchiveTable)
    name = path.name if isinstance(path, ArchiveTable) else path
    read_options = compact_options(name, options or {}, from_archive=from_archive)
    read_options = replace(read_options, storage=storage)
    archive = existing_archive(path, storage) if from_archive else None
    there = Snapshots(to)
    with there.locked():
        plans = (
            plan_logs(there, read_options, keep_tombstones=keep_tombstones)
            if archive is None
            else plan_archive(there, archive, read_options, keep_tombstones=keep_tombstones)
        )
        started(plans)
        removed = _sweep(there)
        there.make_directories(plan.topic_partition for plan in plans)
        made = []
        for partition in _made(spark, there, [plan for plan in plans if plan.done is None]):
            there.note(partition)
            done(partition)
            made.append(partition)
        _publish(there, plans, made)
        for plan in plans:
            there.forget(plan.topic_partition)
        # What was replaced is no longer named by anything.
        return Compacted(plans, made, removed + _sweep(Snapshots(there.path, there.files)))


def _sweep(snapshots: Snapshots) -> int:
    left = snapshots.leftovers()
    for file in left:
        snapshots.files.remove(file)
    return len(left)


def _made(
    spark: SparkSession | None, there: Snapshots, wanted: Sequence[CompactionPlan]
) -> Iterator[CompactedPartition]:
    if spark is None:
        return (compact_partition(there, plan) for plan in wanted)
    task = partial(_compact_in_worker, there.path)
    return map(CompactedPartition.from_json, in_waves(spark, "compact", wanted, task))


def _publish(
    there: Snapshots, plans: Sequence[CompactionPlan], made: Sequence[CompactedPartition]
) -> None:
    """
    The snapshots of all topics of which something is new. Partitions that were not asked for stay
    as they were.
    """
    for topic in sorted({plan.topic_partition.topic for plan in plans}):
        before = there.topics.get(topic, ())
        partitions = {each.partition: each for each in before}
        for plan in plans:
            if plan.topic_partition.topic == topic and plan.done is not None:
                partitions[plan.done.partition] = plan.done
        partitions.update((each.partition, each) for each in made if each.topic == topic)
        if [*partitions.values()] != [*before]:
            there.publish(topic, [*partitions.values()])


def _compact_in_worker(
    to: Path, wave: Sequence[CompactionPlan], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    def do(plan: CompactionPlan) -> str:
        return compact_partition(Snapshots(to), plan).to_json()

    yield from each_of(do, wave, batches)


def compact_partition(there: Snapshots, plan: CompactionPlan) -> CompactedPartition:
    """
    Read the keys of a partition, and then write what stays; the directories are there already.

    Raises:
        ArchiveError, CorruptBatch, DataLoss: as reading does.
        CompactError: the second time, some of what should stay was not there any more.
    """
    latest = LatestOffsets()
    for rows in plan.source.batches(("key", "offset")):
        latest.note(rows)
    staying = _Staying(plan, latest.sorted())
    name = f"{range_name(plan.offsets)}-{uuid.uuid4().hex}.parquet"
    file = there.data_directory(plan.topic_partition) / name
    is_there = write_durably(there.files, file, staying.batches())
    size, crc = checksum(file) if is_there else Checksum(0, 0)
    start, end, source_bytes = plan.offsets_and_bytes
    return CompactedPartition(
        topic=plan.topic_partition.topic,
        partition=plan.topic_partition.partition,
        source=plan.source.path,
        start_offset=start,
        end_offset=end,
        source_bytes=source_bytes,
        keeps_tombstones=plan.keeps_tombstones,
        records_read=latest.records,
        without_key=latest.without_key,
        tombstones=staying.tombstones,
        records=staying.records,
        file=str(file.relative_to(there.path)) if is_there else None,
        file_bytes=size,
        crc32c=crc,
    )


class _Staying:
    """
    The records that stay, and how many there were.
    """

    def __init__(self, plan: CompactionPlan, offsets: Ints) -> None:
        self._plan = plan
        self._offsets = offsets
        self.tombstones = 0
        self.records = 0

    def batches(self) -> Iterator[pa.RecordBatch]:
        """
        Raises:
            CompactError: some were there when their keys were read, and are not any more.
        """
        found = 0
        for rows in self._plan.source.batches(COLUMNS):
            latest = only(rows, self._offsets)
            found += latest.num_rows
            self.tombstones += latest.column("value").null_count
            if not self._plan.keeps_tombstones:
                latest = latest.filter(pc.is_valid(latest.column("value")))
            self.records += latest.num_rows
            if latest.num_rows:
                yield latest
        if found != len(self._offsets):
            raise CompactError(
                f"{self._plan.source.path}: a broker took away"
                f" {len(self._offsets) - found} records while {self._plan.topic_partition} was"
                " read, by compaction or because they were due; run it again."
            )
