"""
What is to be read, cut into tasks.

A range of offsets of one segment is the smallest piece. Large segments are cut where their index
knows a batch; small ones are packed, several into a task, for a task costs as much as megabytes of
reading. All that a worker needs is in the plan: it does not look for anything, unless a segment has
gone meanwhile.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

import numpy as np

from barnabas.pipeline.decoding.decode import OffsetRange
from barnabas.pipeline.errors import DataLoss, InvalidOption, UnknownTopic
from barnabas.pipeline.logs.directory import LogDirectory, select
from barnabas.pipeline.logs.headers import WORTH_SKIPPING
from barnabas.pipeline.logs.indexes import batch_at
from barnabas.pipeline.logs.partition import StoredLog
from barnabas.pipeline.logs.times import first_offset_at
from barnabas.pipeline.options import (
    EARLIEST,
    LATEST,
    IsolationLevel,
    NoSuchTime,
    ReadBound,
    ReadOptions,
)
from barnabas.pipeline.schemas import RowLevel
from barnabas.storage.fs.disk import DiskFiles
from barnabas.storage.index.txn_index import AbortedTxn
from barnabas.storage.readonly.segment import ReadOnlySegment
from barnabas.storage.topic_partition import TopicPartition
from barnabas.storage.units import LONG_MAX

logger = logging.getLogger(__name__)

_WORTH_CUTTING: Final = 1.25
"""A segment that is less than so much larger than what a task should have, stays whole."""
_WORTH_ASKING: Final = 1 << 20
"""How large a segment has to be for its index to be asked how large its batches are."""
END: Final = LONG_MAX


@dataclass(frozen=True)
class SegmentRange:
    """
    The batches of one segment whose offsets are in a range.
    """

    url: str
    """The path of the option that the segment was found under."""
    directory: str
    """The path of the partition's directory, in the file system of *url*."""
    topic_partition: TopicPartition
    base_offset: int
    """Of the segment."""
    offsets: OffsetRange
    position: int
    """Where in the file a batch begins, and no earlier one has any of the offsets."""
    end_position: int
    """No batch from there on has any of the offsets."""
    first_offset: int | None
    """The base offset of the batch at *position*, if that is not the first of the file."""
    file_size: int
    read_bytes: int
    """About how much of the file is read."""
    is_active: bool
    """Whether the segment was the last one, to which a broker may be appending."""
    aborted: tuple[AbortedTxn, ...] = ()
    """The aborted transactions that have records here."""

    @property
    def size(self) -> int:
        return self.end_position - self.position


@dataclass(frozen=True)
class Work:
    """
    What one task reads, in that order.
    """

    ranges: tuple[SegmentRange, ...] = ()


def open_logs(options: ReadOptions, *, may_be_gone: bool = False) -> list[StoredLog]:
    """
    The logs that are meant.

    Args:
        may_be_gone: leave out topics and partitions that are named and do not exist.

    Raises:
        FileNotFoundError: a path is not there.
        UnknownTopic: a topic that is named is not there, or no log at all.
    """
    directories = [LogDirectory(url, options.storage) for url in options.paths]
    found = select(directories, options.topics, may_be_gone=may_be_gone)
    return [StoredLog(root, directory) for root, directory in found]


def plan(options: ReadOptions) -> list[Work]:
    """
    The tasks of a read of all that the options ask for.

    Raises:
        FileNotFoundError, UnknownTopic: as ``open_logs``.
        DataLoss: offsets that are asked for are not there.
        InvalidOption: a time is asked for that no record has, or a start at the end.
    """
    check_batch(options)
    logs = open_logs(options)
    wanted = resolve(options, logs)

    def pieces(options: ReadOptions) -> Iterator[SegmentRange]:
        for log in logs:
            yield from ranges(log, wanted[log.topic_partition], options)

    return tasks(pieces, options)


def resolve(options: ReadOptions, logs: Sequence[StoredLog]) -> dict[TopicPartition, OffsetRange]:
    """
    The offsets of each partition that are asked for.

    Raises: as ``plan``.
    """
    check_bounds(options, [log.topic_partition for log in logs])
    return {log.topic_partition: _Resolver(options, log).offsets() for log in logs}


class _Resolver:
    """
    The bounds of one partition of a log directory.
    """

    def __init__(self, options: ReadOptions, log: StoredLog) -> None:
        self._options = options
        self._log = log

    def offsets(self) -> OffsetRange:
        options, log = self._options, self._log
        there = OffsetRange(
            log.start_offset, log.end_offset(options.read_up_to, options.isolation_level)
        )

        def offset_at(timestamp_ms: int) -> int | None:
            return first_offset_at(log, timestamp_ms, there, options.max_batch_bytes)

        return bounded(options, log.topic_partition, there, offset_at)


def bounded(
    options: ReadOptions,
    partition: TopicPartition,
    there: OffsetRange,
    offset_at: Callable[[int], int | None],
) -> OffsetRange:
    """
    The offsets of one partition that are asked for.

    Args:
        there: those that can be read.
        offset_at: gives the first of them whose record is not older than a time in ms.

    Raises:
        DataLoss: offsets that are asked for are not there.
        InvalidOption: a time is asked for that no record has.
    """

    def resolved(bound: ReadBound, which: str) -> int | None:
        timestamp_ms = bound.timestamps_ms.get(partition, bound.timestamp_ms)
        if timestamp_ms is not None:
            return offset_at(timestamp_ms)
        offset = bound.offsets.get(partition, bound.offset)
        if offset == EARLIEST:
            return there.start
        if offset is None or offset == LATEST:
            return there.end
        if not there.start <= offset <= there.end:
            lost = f"{partition} has offsets {there.start} to {there.end} to be read"
            report_loss(f"{lost}, and is to {which} at {offset}.", options)
        return min(max(offset, there.start), there.end)

    start = resolved(options.start, "start")
    if start is None:
        if options.no_such_time is NoSuchTime.ERROR:
            raise InvalidOption(
                f"{partition} has no record from the starting timestamp on; with"
                " startingOffsetsByTimestampStrategy=latest it would have no rows."
            )
        start = there.end
    end = resolved(options.end, "end")
    return OffsetRange(start, max(start, there.end if end is None else end))


def check_bounds(options: ReadOptions, partitions: Iterable[TopicPartition]) -> None:
    """
    Raises:
        UnknownTopic: offsets or times are given for a partition that is none of these.
    """
    for bound in (options.start, options.end):
        unknown = sorted({*bound.offsets, *bound.timestamps_ms} - {*partitions})
        if unknown:
            names = ", ".join(map(str, unknown))
            raise UnknownTopic(f"Offsets are given for {names}, which is not among what is read.")


def check_batch(options: ReadOptions) -> None:
    """
    Raises:
        InvalidOption: a batch query is to begin at the end.
    """
    if LATEST in (options.start.offset, *options.start.offsets.values()):
        raise InvalidOption("startingOffsets cannot be latest in a batch query: it has no rows.")


def report_loss(sentence: str, options: ReadOptions) -> None:
    """
    Raises:
        DataLoss: unless the options say to go on.
    """
    if options.fail_on_data_loss:
        raise DataLoss(f"{sentence} With failOnDataLoss=false, what is there is read.")
    logger.warning("%s", sentence)


def ranges(log: StoredLog, offsets: OffsetRange, options: ReadOptions) -> Iterator[SegmentRange]:
    """
    The pieces of one log, none larger than a task should be by much.
    """
    if offsets.start >= offsets.end:
        return
    aborted: list[AbortedTxn] = []
    if options.isolation_level is IsolationLevel.READ_COMMITTED:
        aborted = log.aborted()
    segments = log.segments
    for segment, after in zip(segments, (*segments[1:], None), strict=True):
        next_base = END if after is None else after.base_offset
        here = OffsetRange(max(offsets.start, segment.base_offset), min(offsets.end, next_base))
        if here.start < here.end and segment.size:
            for piece in _cut(log, segment, here, after is None, options):
                yield _with_aborted(piece, aborted)


def _cut(
    log: StoredLog,
    segment: ReadOnlySegment,
    offsets: OffsetRange,
    is_active: bool,
    options: ReadOptions,
) -> Iterator[SegmentRange]:
    share = _share_read(log, segment, options)
    most = int(options.max_partition_bytes / share) if share else END
    edges = [*_edges(log, segment, offsets, most)]
    for (position, first_offset), (end_position, end_offset) in pairwise(edges):
        start = offsets.start if first_offset is None else max(offsets.start, first_offset)
        end = offsets.end if end_offset is None else min(offsets.end, end_offset)
        yield SegmentRange(
            url=log.log_directory.url,
            directory=str(log.directory.path),
            topic_partition=log.topic_partition,
            base_offset=segment.base_offset,
            offsets=OffsetRange(start, end),
            position=position,
            end_position=end_position,
            first_offset=first_offset,
            file_size=segment.size,
            read_bytes=int((end_position - position) * share),
            is_active=is_active,
        )


def _share_read(log: StoredLog, segment: ReadOnlySegment, options: ReadOptions) -> float:
    """
    Which part of a segment's bytes is read, at most.

    Of large batches, only headers are where nothing else is asked for. An index has one entry for
    each of them; for several, where they are small.
    """
    if options.level is RowLevel.SEGMENTS:
        return 0.0
    may_skip = options.level is RowLevel.BATCHES and isinstance(log.directory.files, DiskFiles)
    if options.min_partitions or not may_skip or segment.size < _WORTH_ASKING:
        return 1.0
    _, positions = log.log_directory.indexes.entries(segment)
    if not len(positions):
        return 1.0
    # Batches before the first entry and behind the last one have none.
    return min(1.0, (len(positions) + 2) * WORTH_SKIPPING / segment.size)


def _edges(
    log: StoredLog, segment: ReadOnlySegment, offsets: OffsetRange, bytes_per_task: int
) -> Iterator[tuple[int, int | None]]:
    """
    Positions between which the offsets are, each with the base offset of the batch there.
    """
    files = log.directory.files
    start = log.position_of(segment, offsets.start)
    yield start, batch_at(files, segment, start) if start else None
    end = segment.size
    if end - start > bytes_per_task * _WORTH_CUTTING:
        _, positions = log.log_directory.indexes.entries(segment)
        at = start
        while (slot := int(np.searchsorted(positions, at + bytes_per_task))) < len(positions):
            position = int(positions[slot])
            base_offset = batch_at(files, segment, position)
            too_little = end - position < bytes_per_task // 4
            if too_little or base_offset is None or base_offset >= offsets.end:
                break
            yield position, base_offset
            at = position
    yield end, None


def _with_aborted(piece: SegmentRange, aborted: Sequence[AbortedTxn]) -> SegmentRange:
    concerned = tuple(
        transaction
        for transaction in aborted
        if transaction.first_offset < piece.offsets.end
        and transaction.last_offset >= piece.offsets.start
    )
    return replace(piece, aborted=concerned) if concerned else piece


def tasks(
    pieces: Callable[[ReadOptions], Iterable[SegmentRange]], options: ReadOptions
) -> list[Work]:
    """
    The *pieces* that there are with these options, as tasks: at least about as many as
    ``minPartitions`` says.
    """
    works = pack(pieces(options), options)
    wanted = options.min_partitions
    if wanted is None or len(works) >= wanted:
        return works
    to_read = sum(piece.read_bytes for work in works for piece in work.ranges)
    smaller = [*pieces(replace(options, max_partition_bytes=max(1, to_read // wanted)))]
    total = sum(_cost(piece, options) for piece in smaller)
    return pack(smaller, replace(options, max_partition_bytes=total // wanted))


def pack(pieces: Iterable[SegmentRange], options: ReadOptions) -> list[Work]:
    """
    Tasks of about ``maxPartitionBytes``, each of pieces that follow one another.
    """
    tasks: list[list[SegmentRange]] = []
    used = most = options.max_partition_bytes
    for piece in pieces:
        cost = _cost(piece, options)
        if not tasks or used + cost > most:
            tasks.append([])
            used = 0
        tasks[-1].append(piece)
        used += cost
    return [Work(tuple(task)) for task in tasks]


def _cost(piece: SegmentRange, options: ReadOptions) -> int:
    return options.open_cost_bytes + piece.read_bytes
