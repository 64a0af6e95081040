"""
How far a stream may go in its next step, and what it has to read for it.

Offsets are noted as Spark's Kafka connector notes them, ``{"topic": {"0": 42}}``, and its rules are
kept: a partition that appears later is read from its beginning; offsets that are gone, partitions
that are gone and logs that have become shorter are a loss of data, which ends the query or, with
``failOnDataLoss=false``, is logged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from barnabas.pipeline.decoding.decode import OffsetRange
from barnabas.pipeline.logs.indexes import batch_at
from barnabas.pipeline.logs.partition import StoredLog
from barnabas.pipeline.options import ReadOptions
from barnabas.pipeline.reading.plan import (
    SegmentRange,
    Work,
    open_logs,
    ranges,
    report_loss,
    resolve,
    tasks,
)
from barnabas.storage.readonly.segment import ReadOnlySegment
from barnabas.storage.topic_partition import TopicPartition

Progress = Mapping[TopicPartition, int]
WaitingOffsets = Mapping[TopicPartition, OffsetRange]
"""The offset behind the last one that was read, of each partition."""


def to_json(progress: Progress) -> dict[str, dict[str, int]]:
    """
    In an order that is always the same: Spark compares offsets by their text.
    """
    noted: dict[str, dict[str, int]] = {}
    for (topic, partition), offset in sorted(progress.items()):
        noted.setdefault(topic, {})[str(partition)] = offset
    return noted


def from_json(noted: Mapping[str, Mapping[str, int]]) -> Progress:
    return {
        TopicPartition(topic, int(partition)): offset
        for topic, partitions in noted.items()
        for partition, offset in partitions.items()
    }


def initial(options: ReadOptions) -> Progress:
    """
    Where a new stream begins.
    """
    bounds = resolve(options, open_logs(options))
    return {partition: offsets.start for partition, offsets in bounds.items()}


def latest(options: ReadOptions) -> Progress:
    """
    Where the logs end now, as far as they may be read.
    """
    return {log.topic_partition: _end(log, options) for log in _logs_left(options)}


def _logs_left(options: ReadOptions) -> list[StoredLog]:
    """
    The logs of a stream that has begun: a topic may be deleted meanwhile, unless that is a loss.
    """
    return open_logs(options, may_be_gone=not options.fail_on_data_loss)


def admit(
    options: ReadOptions,
    start: Progress,
    *,
    target: Progress | None,
    max_offsets: int | None,
    max_bytes: int | None,
) -> Progress:
    """
    Where the next step ends.

    Args:
        target: not to be passed; nor are partitions read that are not in it.
        max_offsets: of all partitions together, as the connector's ``maxOffsetsPerTrigger``.
        max_bytes: as they are stored. A step goes to where an index knows a batch, and so may have
            somewhat more; it has at least one batch.

    Raises:
        DataLoss: partitions are gone, or logs shorter than they were.
    """
    logs = {log.topic_partition: log for log in _logs_left(options)}
    there = {each: OffsetRange(log.start_offset, _end(log, options)) for each, log in logs.items()}
    ends, waiting = waiting_in(options, start, there, target=target, max_offsets=max_offsets)
    if max_bytes is not None:

        def stored(partition: TopicPartition, offsets: OffsetRange) -> int:
            return sum(size for *_, size in _pieces(logs[partition], offsets))

        def cut(partition: TopicPartition, offsets: OffsetRange, share: int) -> int:
            return _after_bytes(logs[partition], offsets, share)

        waiting = share_out(waiting, max_bytes, stored, cut)
    return {**ends, **{partition: offsets.end for partition, offsets in waiting.items()}}


def waiting_in(
    options: ReadOptions,
    start: Progress,
    there: Mapping[TopicPartition, OffsetRange],
    *,
    target: Progress | None,
    max_offsets: int | None,
) -> tuple[Progress, WaitingOffsets]:
    """
    Where partitions end for a step, and which offsets of them are read in it.

    Args:
        there: what each partition has now.
        target, max_offsets: see ``admit``.

    Raises:
        DataLoss: partitions are gone, or shorter than they were.
    """
    gone = sorted(set(start) - set(there))
    if gone:
        report_loss(f"{', '.join(map(str, gone))} is gone.", options)
    ends: dict[TopicPartition, int] = {}
    for partition, offsets in there.items():
        end = offsets.end
        if target is not None:
            end = min(end, target.get(partition, start.get(partition, offsets.start)))
        if end < start.get(partition, 0):
            report_loss(
                f"{partition} was read up to offset {start[partition]}, and ends at {end} now.",
                options,
            )
        ends[partition] = end
    waiting: WaitingOffsets = {
        partition: OffsetRange(max(start.get(partition, 0), there[partition].start), end)
        for partition, end in ends.items()
    }
    waiting = {partition: offsets for partition, offsets in waiting.items() if offsets.count}
    if max_offsets is not None:
        waiting = share_out(waiting, max_offsets, lambda _, offsets: offsets.count, by_count)
    return ends, waiting


def work_between(options: ReadOptions, start: Progress, end: Progress) -> list[Work]:
    """
    The tasks of one step.

    Raises:
        DataLoss: offsets are gone, or a partition came that does not begin with its first one.
    """
    logs = {log.topic_partition: log for log in _logs_left(options)}
    wanted = dict(_offsets_between(options, logs, start, end))

    def pieces(options: ReadOptions) -> Iterator[SegmentRange]:
        for partition, offsets in wanted.items():
            yield from ranges(logs[partition], offsets, options)

    return tasks(pieces, options)


def _offsets_between(
    options: ReadOptions,
    logs: Mapping[TopicPartition, StoredLog],
    start: Progress,
    end: Progress,
) -> Iterator[tuple[TopicPartition, OffsetRange]]:
    for partition, until in sorted(end.items()):
        since = start.get(partition, 0)
        if since >= until:
            continue
        log = logs.get(partition)
        if log is None:
            report_loss(f"{partition} is gone.", options)
            continue
        if since < log.start_offset:
            lost = f"offsets {since} to {min(log.start_offset, until) - 1} of {partition} are gone"
            report_loss(f"{lost[0].upper()}{lost[1:]}.", options)
        if until > log.log_end_offset:
            report_loss(
                f"{partition} is to be read up to offset {until}, and ends at "
                f"{log.log_end_offset} now.",
                options,
            )
        yield partition, OffsetRange(max(since, log.start_offset), until)


def _end(log: StoredLog, options: ReadOptions) -> int:
    return log.end_offset(options.read_up_to, options.isolation_level)


# Limits.


def share_out(
    waiting: WaitingOffsets,
    limit: int,
    amount: Callable[[TopicPartition, OffsetRange], int],
    cut: Callable[[TopicPartition, OffsetRange, int], int],
) -> dict[TopicPartition, OffsetRange]:
    """
    Give each partition as much of *limit* as it has of all that waits, as the connector does.
    """
    amounts = {partition: amount(partition, offsets) for partition, offsets in waiting.items()}
    total = sum(amounts.values())
    if total <= limit:
        return dict(waiting)
    shared = {}
    for partition, offsets in waiting.items():
        share = max(1, limit * amounts[partition] // total)
        shared[partition] = OffsetRange(offsets.start, cut(partition, offsets, share))
    return shared


def by_count(_partition: TopicPartition, offsets: OffsetRange, share: int) -> int:
    return min(offsets.end, offsets.start + share)


def _pieces(log: StoredLog, offsets: OffsetRange) -> Iterator[tuple[ReadOnlySegment, int, int]]:
    """
    The segments with some of the offsets, where the first of these is, and how many bytes follow.
    """
    nexts: Sequence[int] = [*(segment.base_offset for segment in log.segments[1:]), offsets.end]
    for segment, next_base in zip(log.segments, nexts, strict=True):
        if segment.base_offset < offsets.end and offsets.start < next_base:
            position = log.position_of(segment, offsets.start)
            yield segment, position, segment.size - position


def _after_bytes(log: StoredLog, offsets: OffsetRange, share: int) -> int:
    """
    The first offset behind *share* bytes that some index knows, or the end of the range.
    """
    left = share
    for segment, position, size in _pieces(log, offsets):
        if left <= size:
            found = _indexed(log, segment, position + left, offsets.start)
            if found is not None:
                return min(found, offsets.end)
        left -= size
        if left <= 0:
            return min(_next_base(log, segment), offsets.end)
    return offsets.end


def _indexed(log: StoredLog, segment: ReadOnlySegment, position: int, behind: int) -> int | None:
    """
    The base offset of the first batch from *position* on that the index knows.
    """
    _, positions = log.log_directory.indexes.entries(segment)
    for candidate in positions[positions >= position].tolist():
        base_offset = batch_at(log.directory.files, segment, candidate)
        if base_offset is not None and base_offset > behind:
            return base_offset
    return None


def _next_base(log: StoredLog, segment: ReadOnlySegment) -> int:
    bases = [other.base_offset for other in log.segments if other.base_offset > segment.base_offset]
    return min(bases, default=log.log_end_offset)
