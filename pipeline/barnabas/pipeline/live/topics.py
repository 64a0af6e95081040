"""
The partitions of a cluster that a query reads, and what can be read of each.
"""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from barnabas.client.cluster import Cluster
from barnabas.pipeline.decoding.decode import OffsetRange
from barnabas.pipeline.errors import UnknownTopic
from barnabas.pipeline.options import IsolationLevel, ReadOptions
from barnabas.pipeline.reading.plan import bounded, check_bounds
from barnabas.pipeline.reading.stream_plan import Progress
from barnabas.pipeline.topic_ids import topic_ids_of, waits
from barnabas.storage.topic_partition import TopicPartition

_END, _BEGINNING = -1, -2


def isolation_of(options: ReadOptions) -> int:
    """
    The isolation level as it stands in requests.
    """
    return int(options.isolation_level is IsolationLevel.READ_COMMITTED)


def partitions_of(cluster: Cluster, options: ReadOptions) -> list[TopicPartition]:
    """
    Those that are meant, in their order.

    Raises:
        UnknownTopic: a topic or partition that is named is not there, or none that is meant.
    """
    topics = options.topics
    if topics.names is not None or topics.partitions is not None:
        names = topics.names or {each.topic for each in topics.partitions or ()}
        counts = cluster.existing(sorted(names))
        missing = sorted(set(names) - set(counts))
        if missing:
            raise UnknownTopic(f"The cluster has no topic {', '.join(missing)}.")
    else:
        counts = cluster.topics()
    there = [TopicPartition(name, number) for name in counts for number in range(counts[name])]
    meant = sorted(each for each in there if topics.has(each))
    gone = sorted((topics.partitions or frozenset()) - set(meant))
    if gone:
        raise UnknownTopic(f"The cluster has no {', '.join(map(str, gone))}.")
    if not meant and topics.pattern is None:
        raise UnknownTopic("The cluster has no topic to be read.")
    return meant


def readable(
    cluster: Cluster, partitions: Iterable[TopicPartition], isolation_level: int
) -> dict[TopicPartition, OffsetRange]:
    """
    The offsets of each partition that can be read now.
    """
    names = list(partitions)
    # Ends first: what is deleted meanwhile is then seen as gone, and nothing is before its start.
    ends = cluster.offsets(dict.fromkeys(names, _END), isolation_level)
    starts = cluster.offsets(dict.fromkeys(names, _BEGINNING))
    return {each: OffsetRange(starts[each], max(starts[each], ends[each])) for each in names}


def there_now(
    cluster: Cluster, options: ReadOptions, known: Progress
) -> tuple[dict[TopicPartition, OffsetRange], dict[str, UUID]]:
    """
    The offsets of each partition that is meant, as far as they can be read now, and the ids of
    their topics.

    A leader that was just elected may know of fewer records than the one before (KIP-207,
    KAFKA-7703), and a broker that was just started of fewer partitions, or of a deleted topic.
    While one of those that are *known* is missing, ends earlier or is of another topic, the cluster
    is asked again, up to the client's timeout.

    Args:
        known: where partitions ended before.

    Raises:
        UnknownTopic: as ``partitions_of``.
    """
    patience = cluster.patience()
    while True:
        found: dict[TopicPartition, OffsetRange] = {}
        topic_ids: dict[str, UUID] = {}
        unknown: UnknownTopic | None = None
        changing = False
        try:
            partitions = partitions_of(cluster, options)
            topics = {each.topic for each in partitions}
            topic_ids = topic_ids_of(cluster, topics)
            found = readable(cluster, partitions, isolation_of(options))
            # The offsets are those of the topics with these ids.
            changing = topic_ids_of(cluster, topics) != topic_ids
        except UnknownTopic as error:
            unknown = error
        same = known.of_same_topics(topic_ids)
        behind = [
            each
            for each, end in known.offsets.items()
            if each not in same or each not in found or found[each].end < end
        ]
        if behind or changing:
            sentence = f"{', '.join(map(str, behind)) or 'A topic'} has changed"
            if waits(cluster, patience, sentence):
                continue
        if unknown is not None:
            raise unknown
        return found, topic_ids


def wanted(
    cluster: Cluster, options: ReadOptions
) -> tuple[dict[TopicPartition, OffsetRange], dict[str, UUID]]:
    """
    The offsets of each partition that are asked for, and the ids of their topics.

    Raises:
        UnknownTopic, DataLoss, InvalidOption: as ``partitions_of`` and ``bounded``.
    """
    partitions = partitions_of(cluster, options)
    check_bounds(options, partitions)
    isolation_level = isolation_of(options)
    there, topic_ids = there_now(cluster, options, Progress(_named_offsets(options)))
    found = {}
    for partition in there:

        def offset_at(timestamp_ms: int, partition: TopicPartition = partition) -> int | None:
            at = cluster.offsets({partition: timestamp_ms}, isolation_level)[partition]
            return None if at < 0 else min(max(at, there[partition].start), there[partition].end)

        found[partition] = bounded(options, partition, there[partition], offset_at)
    return found, topic_ids


def _named_offsets(options: ReadOptions) -> dict[TopicPartition, int]:
    named = [*options.start.offsets.items(), *options.end.offsets.items()]
    return {
        partition: max(offset for each, offset in named if each == partition)
        for partition, _ in named
    }
