"""
OffsetFetch (Kafka's ``OffsetMetadataManager.fetchOffsets``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from uuid import UUID

from barnabas.coordination.groups.groups import Groups
from barnabas.coordination.groups.offsets.answers import no_offset
from barnabas.coordination.groups.offsets.offsets import CommittedOffset, OffsetStore
from barnabas.coordination.steps import checkpoint
from barnabas.protocol.codec.schema import ZERO_UUID
from barnabas.protocol.errors import ErrorCode, GroupIdNotFound
from barnabas.protocol.messages.offset_fetch import (
    OffsetFetchRequestGroup,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)


async def fetch_offsets(
    groups: Groups,
    store: OffsetStore,
    request: OffsetFetchRequestGroup,
    *,
    require_stable: bool,
    found_one: Callable[[OffsetFetchResponsePartitions], None] = lambda _: None,
) -> OffsetFetchResponseGroup:
    """
    Read the committed offsets of a group: those of the named partitions, or all of them.

    A partition without a committed offset is no error: its offset is -1.

    Args:
        require_stable: refuse partitions for which a transaction has an open offset (KIP-447).
        found_one: called with each partition of the answer; what it raises ends the reading.

    Raises:
        KafkaError: the sender is no member, or its epoch is stale.
    """
    group_id = request.group_id
    try:
        groups.expect(group_id).validate_fetch(request.member_id, request.member_epoch)
        committed = store.committed.of_group(group_id)
    except GroupIdNotFound:
        committed = {}
    unstable = store.pending_partitions(group_id) if require_stable else {}
    topics: list[OffsetFetchResponseTopics] = []
    if request.topics is None:
        for name, offsets in tuple(committed.items()):
            partitions = []
            for index, offset in tuple(offsets.items()):
                await checkpoint()
                is_unstable = (name, index) in unstable
                fetched = _fetched(index, offset, is_unstable=is_unstable)
                found_one(fetched)
                partitions.append(fetched)
            topics.append(_fetched_topic(name, ZERO_UUID, partitions))
    else:
        nothing: Mapping[int, CommittedOffset] = {}
        for topic in request.topics:
            await checkpoint()
            offsets = committed.get(topic.name, nothing)
            partitions = []
            for index in topic.partition_indexes:
                await checkpoint()
                known = _of_topic_id(offsets.get(index), topic.topic_id)
                is_unstable = (topic.name, index) in unstable
                fetched = _fetched(index, known, is_unstable=is_unstable)
                found_one(fetched)
                partitions.append(fetched)
            topics.append(_fetched_topic(topic.name, topic.topic_id, partitions))
    return OffsetFetchResponseGroup(group_id=group_id, topics=topics, error_code=ErrorCode.NONE)


def _of_topic_id(offset: CommittedOffset | None, topic_id: UUID) -> CommittedOffset | None:
    """
    The offset, unless it is known to belong to an earlier topic of the same name.
    """
    if offset is None or ZERO_UUID in {offset.topic_id, topic_id} or offset.topic_id == topic_id:
        return offset
    return None


def _fetched(
    partition: int, offset: CommittedOffset | None, *, is_unstable: bool
) -> OffsetFetchResponsePartitions:
    if is_unstable:
        return no_offset(partition, ErrorCode.UNSTABLE_OFFSET_COMMIT)
    if offset is None:
        return no_offset(partition)
    return OffsetFetchResponsePartitions(
        partition_index=partition,
        committed_offset=offset.offset,
        committed_leader_epoch=offset.leader_epoch,
        metadata=offset.metadata,
        error_code=ErrorCode.NONE,
    )


def _fetched_topic(
    name: str, topic_id: UUID, partitions: list[OffsetFetchResponsePartitions]
) -> OffsetFetchResponseTopics:
    return OffsetFetchResponseTopics(name=name, topic_id=topic_id, partitions=partitions)
