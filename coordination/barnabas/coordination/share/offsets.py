"""
The offsets of share groups, described, altered and deleted (Kafka ``GroupCoordinatorService``).

They are in the states that the share coordinator keeps. Altering one initializes the state again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final
from uuid import UUID

from barnabas.coordination.share.keys import SharePartitionKey
from barnabas.protocol.errors import KafkaError, UnknownTopicOrPartition
from barnabas.protocol.structs import NamedTuple

if TYPE_CHECKING:
    from barnabas.coordination.share.groups import ShareGroups
    from barnabas.coordination.share.persister import Persister

UNKNOWN: Final = -1


class ShareOffset(NamedTuple):
    """
    How far a group is in a partition; -1 where that is not known.
    """

    start_offset: int = UNKNOWN
    leader_epoch: int = 0
    lag: int = UNKNOWN


async def describe(
    key: SharePartitionKey, coordinator: Persister, high_watermark: Callable[[UUID, int], int]
) -> ShareOffset:
    """
    How far a group is in a partition. What the coordinator cannot say is no error.

    Args:
        high_watermark: returns that of a partition, or raises ``KafkaError``.

    Raises:
        KafkaError: the end of the partition cannot be had.
    """
    try:
        state = await coordinator.summary(key)
    except KafkaError:
        return ShareOffset()
    if state is None:
        return ShareOffset()
    start_offset, complete = state.start_offset, state.delivery_complete_count
    lag = UNKNOWN
    if UNKNOWN not in (start_offset, complete):
        end = high_watermark(key.topic_id, key.partition)
        lag = end - start_offset - complete
    return ShareOffset(start_offset, state.leader_epoch, lag)


async def alter(
    group_id: str,
    offsets: Mapping[UUID, Mapping[int, int]],
    groups: ShareGroups,
    coordinator: Persister,
) -> dict[UUID, dict[int, KafkaError]]:
    """
    Let a group without members begin at other *offsets*; return which partitions have failed.

    A topic without partitions is noted as initializing, and stays so, as in Kafka's
    ``GroupMetadataManager.alterShareGroupOffsets``.

    Raises:
        KafkaError: see ``ShareGroups.begin_initializing``.
    """
    state_epoch = await groups.begin_initializing(group_id, offsets)
    failed: dict[UUID, dict[int, KafkaError]] = {}
    for topic_id, of_topic in offsets.items():
        for index, offset in of_topic.items():
            key = SharePartitionKey(group_id, topic_id, index)
            try:
                await coordinator.initialize(key, state_epoch, offset)
            except KafkaError as error:
                failed.setdefault(topic_id, {})[index] = error
    begun = {topic_id: of_topic for topic_id, of_topic in offsets.items() if of_topic}
    if begun and not failed:
        await groups.end_initializing(group_id, begun)
    return failed


async def delete(
    group_id: str, topics: Sequence[UUID], groups: ShareGroups, coordinator: Persister
) -> dict[UUID, KafkaError | None]:
    """
    Let a group without members forget *topics*; return the error of each, or None.

    Raises:
        KafkaError: see ``ShareGroups.begin_deleting``.
    """
    deleting = await groups.begin_deleting(group_id, topics)
    results: dict[UUID, KafkaError | None] = {}
    for topic_id in topics:
        if topic_id not in deleting:
            results[topic_id] = UnknownTopicOrPartition("There is no offset information to delete.")
            continue
        results[topic_id] = None
        for index in deleting[topic_id]:
            try:
                await coordinator.delete(SharePartitionKey(group_id, topic_id, index))
            except KafkaError as error:
                results[topic_id] = error
    deleted = [topic_id for topic_id in deleting if results[topic_id] is None]
    if deleted:
        await groups.end_deleting(group_id, deleted)
    return results
