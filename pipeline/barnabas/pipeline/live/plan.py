"""
The tasks of a read from a broker: ranges of offsets, as Spark's Kafka connector cuts them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from uuid import UUID

from barnabas.client.cluster import Cluster
from barnabas.client.settings import ClientSettings
from barnabas.pipeline.decoding.decode import OffsetRange
from barnabas.pipeline.live.topics import wanted
from barnabas.pipeline.options import ReadOptions
from barnabas.pipeline.reading.plan import check_batch
from barnabas.storage.topic_partition import TopicPartition


@dataclass(frozen=True)
class LiveRange:
    """
    What one task reads.
    """

    partition: TopicPartition
    offsets: OffsetRange
    topic_id: UUID | None = None
    """None if it is not known."""


def client_of(options: ReadOptions) -> ClientSettings:
    """
    How to reach the broker that a query reads from.
    """
    assert options.client is not None, "the query has no path"
    return options.client


def plan(options: ReadOptions) -> list[LiveRange]:
    """
    The tasks of a read of all that the options ask for.

    Raises:
        UnknownTopic, DataLoss, InvalidOption: as ``wanted``; or it is to begin at the end.
        Disconnected, BrokerError: the cluster does not answer.
    """
    check_batch(options)
    with Cluster(client_of(options)) as cluster:
        offsets, topic_ids = wanted(cluster, options)
        return tasks(offsets, options, topic_ids)


def tasks(
    offsets: Mapping[TopicPartition, OffsetRange],
    options: ReadOptions,
    topic_ids: Mapping[str, UUID],
) -> list[LiveRange]:
    """
    A task for each partition; with ``maxRecordsPerPartition`` and ``minPartitions`` more, of
    offsets that follow one another.
    """
    ranges = [
        LiveRange(each, some, topic_ids.get(each.topic))
        for each, some in sorted(offsets.items())
        if some.count
    ]
    most = options.max_records_per_partition
    if most is not None:
        ranges = [piece for each in ranges for piece in _cut(each, -(-each.offsets.count // most))]
    least = options.min_partitions
    if least is None or len(ranges) >= least:
        return ranges
    total = sum(each.offsets.count for each in ranges)
    return [
        piece
        for each in ranges
        for piece in _cut(each, max(1, -(-each.offsets.count * least // total)))
    ]


def _cut(whole: LiveRange, pieces: int) -> Iterator[LiveRange]:
    """
    Pieces of nearly the same number of offsets.
    """
    start, count = whole.offsets.start, whole.offsets.count
    pieces = min(pieces, count)
    for number in range(pieces):
        since, until = count * number // pieces, count * (number + 1) // pieces
        yield replace(whole, offsets=OffsetRange(start + since, start + until))
