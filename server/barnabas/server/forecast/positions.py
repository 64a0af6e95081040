"""
Where the groups of a broker are.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from barnabas.protocol.structs import NamedTuple

if TYPE_CHECKING:
    from barnabas.server.partitions.partition import Partition
    from barnabas.server.requests.broker_parts import BrokerParts


class GroupPartition(NamedTuple):
    """
    A partition as one group reads it.
    """

    group_id: str
    topic: str
    partition: int


class CommittedPosition(NamedTuple):
    """
    The offset of a group in a partition, and the time in ms at which it was committed.
    """

    key: GroupPartition
    offset: int
    time_ms: int
    partition: Partition


def positions(
    parts: BrokerParts, group_id: str | None = None
) -> Iterator[CommittedPosition | None]:
    """
    The positions of all groups, or of one, in partitions that are served. Groups may change between
    two of them; None is a group, or a position, that does not count.

    Nothing is created for that, and nothing that is due happens because of it.
    """
    yield from _committed(parts, group_id)
    yield from _shared(parts, group_id)


def _committed(parts: BrokerParts, wanted: str | None) -> Iterator[CommittedPosition | None]:
    coordinator = parts.coordinators.group_coordinator
    for shard in () if coordinator is None else coordinator.shards:
        if not shard.log.is_open:
            continue
        committed = shard.seen.offsets.committed
        groups = committed.groups() if wanted is None else [(wanted, committed.of_group(wanted))]
        for group_id, topics in groups:
            yield None
            for topic, offsets in tuple(topics.items()):
                for index, each in tuple(offsets.items()):
                    key = GroupPartition(group_id, topic, index)
                    yield _position(parts, key, each.offset, each.commit_timestamp_ms)


def _shared(parts: BrokerParts, wanted: str | None) -> Iterator[CommittedPosition | None]:
    """
    The start offsets of share-partitions. The state does not say since when: they count as of now.
    """
    coordinator = parts.coordinators.share_coordinator
    for shard in () if coordinator is None else coordinator.shards:
        if not shard.log.is_open:
            continue
        for (group_id, topic_id, index), known in tuple(shard.seen.known.items()):
            yield None
            topic = parts.partitions.name_of(topic_id)
            if topic is not None and wanted in {None, group_id}:
                key = GroupPartition(group_id, topic, index)
                yield _position(parts, key, known.value.start_offset, parts.clock.now_ms())


def _position(
    parts: BrokerParts, key: GroupPartition, offset: int, time_ms: int
) -> CommittedPosition | None:
    partition = parts.partitions.get(key.topic, key.partition)
    # A share-partition that nobody has read yet has no offset.
    return (
        None
        if partition is None or offset < 0
        else CommittedPosition(key, offset, time_ms, partition)
    )
