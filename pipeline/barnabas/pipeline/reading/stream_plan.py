"""
How far a stream may go in its next step, and what it has to read for it.

Offsets are noted as Spark's Kafka connector notes them, with the id of the topic beside them,
``{"topic": {"id": "dUHZ4DSIQA2iHFIpYpsSjw", "0": 42}}``. Its rules are kept: a partition that
appears later is read from its beginning; offsets that are gone, partitions that are gone and logs
that have become shorter are a loss of data, which ends the query or, with
``failOnDataLoss=false``, is logged. So is a topic that was deleted and created again; it is then
read from its beginning. A topic whose id is not noted or not known is taken for the same one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

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
from barnabas.storage.uuids import parse_uuid, uuid_text

StreamOffsets = Mapping[TopicPartition, int]
WaitingOffsets = Mapping[TopicPartition, OffsetRange]


_ID: Final = "id"


@dataclass(frozen=True)
class Progress:
    """
    How far a stream has come.
    """

    offsets: StreamOffsets
    """The offset behind the last one that was read, of each partition."""
    topic_ids: Mapping[str, UUID] = field(default_factory=dict)
    """Of the topics whose id is known."""

    def of_same_topics(self, topic_ids: Mapping[str, UUID]) -> StreamOffsets:
        """
        The offsets without those of topics that have other ids by now.

        Args:
            topic_ids: by now.
        """
        changed = {
            topic for topic, known in self.topic_ids.items() if topic_ids.get(topic, known) != known
        }
        return {each: at for each, at in self.offsets.items() if each.topic not in changed}

    def still_there(self, topic_ids: Mapping[str, UUID], options: ReadOptions) -> StreamOffsets:
        """
        The same.

        Raises:
            DataLoss: a topic has another id, unless the options say to go on.
        """
        same = self.of_same_topics(topic_ids)
        for topic in sorted({each.topic for each in self.offsets.keys() - same.keys()}):
            before, now = uuid_text(self.topic_ids[topic]), uuid_text(topic_ids[topic])
            report_loss(
                f"{topic} was deleted and created again: its id was {before}, and is {now} now.",
                options,
            )
        return same

    def advanced(self, ends: StreamOffsets, topic_ids: Mapping[str, UUID]) -> Progress:
        """
        The progress at *ends*. A topic whose id is not known now keeps the one that was noted.
        """
        ids = {**self.topic_ids, **topic_ids}
        topics = {each.topic for each in ends}
        return Progress(ends, {topic: ids[topic] for topic in topics & ids.keys()})


def to_json(progress: Progress) -> dict[str, dict[str, int | str]]:
    """
    In an order that is always the same: Spark compares offsets by their text.
    """
    noted: dict[str, dict[str, int | str]] = {}
    for (topic, partition), offset in sorted(progress.offsets.items()):
        if topic not in noted:
            known = progress.topic_ids.get(topic)
            noted[topic] = {} if known is None else {_ID: uuid_text(known)}
        noted[topic][str(partition)] = offset
    return noted


def from_json(noted: Mapping[str, Mapping[str, int | str]]) -> Progress:
    offsets, topic_ids = {}, {}
    for topic, partitions in noted.items():
        for name, value in partitions.items():
            if name == _ID:
                topic_ids[topic] = parse_uuid(str(value))
            else:
                offsets[TopicPartition(topic, int(name))] = int(value)
    return Progress(offsets, topic_ids)


def initial(options: ReadOptions) -> Progress:
    """
    Where a new stream begins.
    """
    logs = open_logs(options)
    bounds = resolve(options, logs)
    starts = {partition: offsets.start for partition, offsets in bounds.items()}
    return Progress(starts, _topic_ids(logs))


def latest(options: ReadOptions) -> Progress:
    """
    Where the logs end now, as far as they may be read.
    """
    logs = _logs_left(options)
    return Progress({log.topic_partition: _end(log, options) for log in logs}, _topic_ids(logs))


def _topic_ids(logs: Iterable[StoredLog]) -> Mapping[str, UUID]:
    """
    The ids of the topics, as far as their logs have ``partition.metadata``.

    Raises:
        CorruptCheckpoint: such a file has another form.
    """
    found: dict[str, UUID] = {}
    for log in logs:
        topic = log.topic_partition.topic
        metadata = None if topic in found else log.directory.partition_metadata
        if metadata is not None:
            found[topic] = metadata.topic_id
    return found


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
        DataLoss: partitions are gone, logs shorter than they were, or topics created again.
    """
    logs = {log.topic_partition: log for log in _logs_left(options)}
    topic_ids = _topic_ids(logs.values())
    since = start.still_there(topic_ids, options)
    there = {each: _there(log, since.get(each, 0), options) for each, log in logs.items()}
    aim = None if target is None else target.of_same_topics(topic_ids)
    ends, waiting = waiting_in(options, since, there, target=aim, max_offsets=max_offsets)
    if max_bytes is not None:

        def stored(partition: TopicPartition, offsets: OffsetRange) -> int:
            return sum(size for *_, size in _pieces(logs[partition], offsets))

        def cut(partition: TopicPartition, offsets: OffsetRange, share: int) -> int:
            return _after_bytes(logs[partition], offsets, share)

        waiting = share_out(waiting, max_bytes, stored, cut)
    ends = {**ends, **{partition: offsets.end for partition, offsets in waiting.items()}}
    return start.advanced(ends, topic_ids)


def waiting_in(
    options: ReadOptions,
    start: StreamOffsets,
    there: Mapping[TopicPartition, OffsetRange],
    *,
    target: StreamOffsets | None,
    max_offsets: int | None,
) -> tuple[StreamOffsets, WaitingOffsets]:
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
        if end < start.get(partition, 0):
            report_loss(
                f"{partition} was read up to offset {start[partition]}, and ends at {end} now.",
                options,
            )
        elif target is not None:
            since = start.get(partition, offsets.start)
            # The target may come from a leader that lagged.
            end = max(since, min(end, target.get(partition, since)))
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
        DataLoss: offsets are gone, a topic was created again, or a partition came that does not
            begin with its first one.
    """
    logs = {log.topic_partition: log for log in _logs_left(options)}
    since = start.still_there(end.topic_ids, options)
    until = end.still_there(_topic_ids(logs.values()), options)
    wanted = dict(_offsets_between(options, logs, since, until))

    def pieces(options: ReadOptions) -> Iterator[SegmentRange]:
        for partition, offsets in wanted.items():
            yield from ranges(logs[partition], offsets, options)

    return tasks(pieces, options)


def _offsets_between(
    options: ReadOptions,
    logs: Mapping[TopicPartition, StoredLog],
    start: StreamOffsets,
    end: StreamOffsets,
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


def _there(log: StoredLog, known: int, options: ReadOptions) -> OffsetRange:
    """
    The offsets of a log that can be read. It was read up to *known*: an older high watermark, as in
    the directory of another replica, hides nothing that the log still has.
    """
    end = _end(log, options)
    if end < known:
        end = max(end, min(known, log.log_end_offset))
    return OffsetRange(log.start_offset, end)


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
