"""
The records of share groups, as Kafka's ``GroupCoordinatorRecordHelpers`` makes them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from barnabas.protocol.internal_topics.group_records.share import (
    ShareGroupCurrentMemberAssignmentKey,
    ShareGroupCurrentMemberAssignmentValue,
    ShareGroupMemberMetadataKey,
    ShareGroupMemberMetadataValue,
    ShareGroupMetadataKey,
    ShareGroupMetadataValue,
    ShareGroupStatePartitionMetadataKey,
    ShareGroupStatePartitionMetadataValue,
    ShareGroupTargetAssignmentMemberKey,
    ShareGroupTargetAssignmentMemberValue,
    ShareGroupTargetAssignmentMetadataKey,
    ShareGroupTargetAssignmentMetadataValue,
    TopicInfo,
    TopicPartition,
    TopicPartitions,
    TopicPartitionsInfo,
)
from barnabas.protocol.structs import replace
from barnabas.server.groups.modern.records import ModernRecord
from barnabas.server.groups.share.member import Partitions, ShareGroupMember
from barnabas.server.groups.share.state_partitions import StatePartitions, Topics, TopicStates

STABLE: Final = 0
"""
The state of every member.
"""

# From members to records.


def epoch_record(group_id: str, epoch: int, metadata_hash: int) -> ModernRecord:
    """
    The record of the group itself.
    """
    value = ShareGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash)
    return ModernRecord(ShareGroupMetadataKey(group_id=group_id), value)


def member_record(group_id: str, member: ShareGroupMember) -> ModernRecord:
    """
    The record of a member and its subscription.
    """
    value = ShareGroupMemberMetadataValue(
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.topic_names),
    )
    key = ShareGroupMemberMetadataKey(group_id=group_id, member_id=member.member_id)
    return ModernRecord(key, value)


def target_epoch_record(group_id: str, epoch: int, timestamp_ms: int) -> ModernRecord:
    """
    The record that the target assignment is complete.
    """
    value = ShareGroupTargetAssignmentMetadataValue(
        assignment_epoch=epoch, assignment_timestamp=timestamp_ms
    )
    return ModernRecord(ShareGroupTargetAssignmentMetadataKey(group_id=group_id), value)


def target_record(group_id: str, member_id: str, target: Partitions) -> ModernRecord:
    """
    The record of a member's target assignment.
    """
    value = ShareGroupTargetAssignmentMemberValue(
        topic_partitions=[
            TopicPartition(topic_id=topic_id, partitions=list(partitions))
            for topic_id, partitions in target.items()
        ]
    )
    key = ShareGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id)
    return ModernRecord(key, value)


def current_record(group_id: str, member: ShareGroupMember) -> ModernRecord:
    """
    The record of what a member has, and its epoch.
    """
    value = ShareGroupCurrentMemberAssignmentValue(
        member_epoch=member.member_epoch,
        previous_member_epoch=member.previous_member_epoch,
        state=STABLE,
        assigned_partitions=[
            TopicPartitions(topic_id=topic_id, partitions=list(partitions))
            for topic_id, partitions in member.assigned.items()
        ],
    )
    key = ShareGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member.member_id)
    return ModernRecord(key, value)


def state_partitions_record(group_id: str, states: StatePartitions) -> ModernRecord:
    """
    The record of the partitions whose states the group has.
    """
    value = ShareGroupStatePartitionMetadataValue(
        initializing_topics=_infos(states.initializing),
        initialized_topics=_infos(states.initialized),
        deleting_topics=[
            TopicInfo(topic_id=topic_id, topic_name=name)
            for topic_id, name in states.deleting.items()
        ],
    )
    return ModernRecord(ShareGroupStatePartitionMetadataKey(group_id=group_id), value)


def member_tombstones(group_id: str, member_id: str) -> list[ModernRecord]:
    """
    The records that remove a member, in Kafka's order.
    """
    keys: tuple[Any, ...] = (
        ShareGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id),
        ShareGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id),
        ShareGroupMemberMetadataKey(group_id=group_id, member_id=member_id),
    )
    return [ModernRecord(key, None) for key in keys]


def group_tombstones(group_id: str, members: Iterable[str]) -> list[ModernRecord]:
    """
    The records that delete a group with its members, in Kafka's order.
    """
    by_kind = list(zip(*(member_tombstones(group_id, each) for each in members), strict=True))
    current, target, member = by_kind or ((), (), ())
    keys: tuple[Any, ...] = (
        ShareGroupTargetAssignmentMetadataKey(group_id=group_id),
        ShareGroupStatePartitionMetadataKey(group_id=group_id),
        ShareGroupMetadataKey(group_id=group_id),
    )
    target_epoch, states, epoch = (ModernRecord(key, None) for key in keys)
    return [*current, *target, target_epoch, *member, states, epoch]


# From records to members.


def with_subscription(
    member: ShareGroupMember, value: ShareGroupMemberMetadataValue
) -> ShareGroupMember:
    """
    The member, with the subscription of a record.
    """
    return replace(
        member,
        rack_id=value.rack_id,
        client_id=value.client_id,
        client_host=value.client_host,
        topic_names=frozenset(value.subscribed_topic_names),
    )


def with_assignment(
    member: ShareGroupMember, value: ShareGroupCurrentMemberAssignmentValue
) -> ShareGroupMember:
    """
    The member, with the epoch and the partitions of a record.
    """
    return replace(
        member,
        member_epoch=value.member_epoch,
        previous_member_epoch=value.previous_member_epoch,
        assigned=partitions_of(value.assigned_partitions),
    )


def partitions_of(topics: Iterable[TopicPartitions | TopicPartition]) -> Partitions:
    """
    The partitions of a record.
    """
    return {topic.topic_id: tuple(topic.partitions) for topic in topics}


def states_of(value: ShareGroupStatePartitionMetadataValue) -> StatePartitions:
    """
    The partitions with states of a record.
    """
    return StatePartitions(
        initializing=_topics(value.initializing_topics),
        initialized=_topics(value.initialized_topics),
        deleting={topic.topic_id: topic.topic_name for topic in value.deleting_topics},
    )


def _infos(topics: Topics) -> list[TopicPartitionsInfo]:
    return [
        TopicPartitionsInfo(
            topic_id=topic_id, topic_name=topic.name, partitions=sorted(topic.partitions)
        )
        for topic_id, topic in topics.items()
    ]


def _topics(infos: Iterable[TopicPartitionsInfo]) -> Topics:
    return {
        info.topic_id: TopicStates(info.topic_name, frozenset(info.partitions)) for info in infos
    }
