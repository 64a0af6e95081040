"""
The records of share groups, as Kafka's ``GroupCoordinatorRecordHelpers`` makes them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from barnabas.coordination.groups.modern.member import LEAVING
from barnabas.coordination.groups.modern.records import ModernRecord, RecordTypes
from barnabas.coordination.groups.modern.topics import topic_partitions
from barnabas.coordination.groups.share.member import (
    NOTHING_ASSIGNED,
    AssignedPartitions,
    ShareGroupMember,
)
from barnabas.coordination.groups.share.state_partitions import (
    StatePartitions,
    StatesByTopic,
    TopicStates,
)
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

STABLE: Final = 0
"""
The state of every member.
"""

_TYPES: Final = RecordTypes(
    epoch=ShareGroupMetadataValue,
    epoch_key=ShareGroupMetadataKey,
    member_key=ShareGroupMemberMetadataKey,
    target_epoch=ShareGroupTargetAssignmentMetadataValue,
    target_epoch_key=ShareGroupTargetAssignmentMetadataKey,
    target_key=ShareGroupTargetAssignmentMemberKey,
    current_key=ShareGroupCurrentMemberAssignmentKey,
)

# From members to records.

epoch_record = _TYPES.epoch_record
new_member = ShareGroupMember
target_epoch_record = _TYPES.target_epoch_record
member_tombstones = _TYPES.member_tombstones


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


def target_record(group_id: str, member_id: str, target: AssignedPartitions) -> ModernRecord:
    """
    The record of a member's target assignment.
    """
    partitions = topic_partitions(TopicPartition, target)
    value = ShareGroupTargetAssignmentMemberValue(topic_partitions=partitions)
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
        assigned_partitions=topic_partitions(TopicPartitions, member.assigned),
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


def group_tombstones(group_id: str, members: Sequence[str]) -> list[ModernRecord]:
    """
    The records that delete a group with its members, in Kafka's order.
    """
    keys = (
        ShareGroupStatePartitionMetadataKey(group_id=group_id),
        ShareGroupMetadataKey(group_id=group_id),
    )
    return _TYPES.group_tombstones(group_id, members, keys)


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
        assigned=_partitions(value.assigned_partitions),
    )


def without_assignment(member: ShareGroupMember) -> ShareGroupMember:
    """
    The member, after the tombstone of what it has.
    """
    return replace(
        member,
        member_epoch=LEAVING,
        previous_member_epoch=LEAVING,
        assigned=NOTHING_ASSIGNED,
    )


def target_of(value: ShareGroupTargetAssignmentMemberValue) -> AssignedPartitions:
    """
    The target assignment of a record.
    """
    return _partitions(value.topic_partitions)


def _partitions(topics: Iterable[TopicPartitions | TopicPartition]) -> AssignedPartitions:
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


def _infos(topics: StatesByTopic) -> list[TopicPartitionsInfo]:
    return [
        TopicPartitionsInfo(
            topic_id=topic_id, topic_name=topic.name, partitions=sorted(topic.partitions)
        )
        for topic_id, topic in topics.items()
    ]


def _topics(infos: Iterable[TopicPartitionsInfo]) -> StatesByTopic:
    return {
        info.topic_id: TopicStates(info.topic_name, frozenset(info.partitions)) for info in infos
    }
