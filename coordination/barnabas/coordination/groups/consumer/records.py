"""
The records of consumer groups, as Kafka's ``GroupCoordinatorRecordHelpers`` makes them.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeAlias
from uuid import UUID

from barnabas.coordination.groups.consumer.member import (
    NOTHING_ASSIGNED,
    Assigned,
    ClassicMember,
    ConsumerGroupMember,
    MemberState,
)
from barnabas.coordination.groups.modern.member import LEAVING
from barnabas.coordination.groups.modern.records import ModernRecord, RecordTypes, epochs_of
from barnabas.coordination.groups.modern.subscriptions import ResolvedRegex
from barnabas.coordination.groups.modern.topics import topic_partitions
from barnabas.protocol.internal_topics.group_records.consumer import (
    ClassicMemberMetadata,
    ClassicProtocol,
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
    TopicPartition,
    TopicPartitions,
)
from barnabas.protocol.structs import replace

Target: TypeAlias = Mapping[UUID, Sequence[int]]
"""
The partitions that a member should have, in the order of the record. No topic is empty.
"""


_TYPES: Final = RecordTypes(
    epoch=ConsumerGroupMetadataValue,
    epoch_key=ConsumerGroupMetadataKey,
    member_key=ConsumerGroupMemberMetadataKey,
    target_epoch=ConsumerGroupTargetAssignmentMetadataValue,
    target_epoch_key=ConsumerGroupTargetAssignmentMetadataKey,
    target_key=ConsumerGroupTargetAssignmentMemberKey,
    current_key=ConsumerGroupCurrentMemberAssignmentKey,
)

# From members to records.

epoch_record = _TYPES.epoch_record
new_member = ConsumerGroupMember
target_epoch_record = _TYPES.target_epoch_record
member_tombstones = _TYPES.member_tombstones


def member_record(group_id: str, member: ConsumerGroupMember) -> ModernRecord:
    """
    The record of a member and its subscription.
    """
    classic = member.classic
    value = ConsumerGroupMemberMetadataValue(
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.topic_names),
        subscribed_topic_regex=member.topic_regex,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        server_assignor=member.server_assignor,
        classic_member_metadata=None
        if classic is None
        else ClassicMemberMetadata(
            session_timeout_ms=classic.session_timeout_ms,
            supported_protocols=[
                ClassicProtocol(name=name, metadata=metadata)
                for name, metadata in classic.protocols
            ],
        ),
    )
    key = ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member.member_id)
    return ModernRecord(key, value)


def target_record(group_id: str, member_id: str, target: Target) -> ModernRecord:
    """
    The record of a member's target assignment.
    """
    partitions = topic_partitions(TopicPartition, target)
    value = ConsumerGroupTargetAssignmentMemberValue(topic_partitions=partitions)
    key = ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id)
    return ModernRecord(key, value)


def current_record(group_id: str, member: ConsumerGroupMember) -> ModernRecord:
    """
    The record of what a member has, and its epoch.
    """
    value = ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=member.member_epoch,
        previous_member_epoch=member.previous_member_epoch,
        state=member.state,
        assigned_partitions=_with_epochs(member.assigned),
        partitions_pending_revocation=_with_epochs(member.pending_revocation),
    )
    key = ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member.member_id)
    return ModernRecord(key, value)


def regex_record(group_id: str, regex: str, resolved: ResolvedRegex) -> ModernRecord:
    """
    The record of the topics that a regular expression matches.
    """
    value = ConsumerGroupRegularExpressionValue(
        topics=sorted(resolved.topics), version=resolved.version, timestamp=resolved.timestamp_ms
    )
    key = ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=regex)
    return ModernRecord(key, value)


def regex_tombstone(group_id: str, regex: str) -> ModernRecord:
    """
    The record that no member subscribes to a regular expression any more.
    """
    key = ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=regex)
    return ModernRecord(key, None)


def partition_metadata_tombstone(group_id: str) -> ModernRecord:
    """
    The record that deletes what brokers before Kafka 4.1 wrote in place of the metadata hash.
    """
    return ModernRecord(ConsumerGroupPartitionMetadataKey(group_id=group_id), None)


def group_tombstones(
    group_id: str, members: Sequence[str], regexes: Iterable[str]
) -> list[ModernRecord]:
    """
    The records that delete a group with its members, in Kafka's order.
    """
    keys = (
        *(regex_tombstone(group_id, regex).key for regex in regexes),
        ConsumerGroupPartitionMetadataKey(group_id=group_id),
        ConsumerGroupMetadataKey(group_id=group_id),
    )
    return _TYPES.group_tombstones(group_id, members, keys)


# From records to members.


def with_subscription(
    member: ConsumerGroupMember, value: ConsumerGroupMemberMetadataValue
) -> ConsumerGroupMember:
    """
    The member, with the subscription of a record.
    """
    classic = value.classic_member_metadata
    return replace(
        member,
        instance_id=value.instance_id,
        rack_id=value.rack_id,
        client_id=value.client_id,
        client_host=value.client_host,
        topic_names=frozenset(value.subscribed_topic_names),
        topic_regex=value.subscribed_topic_regex or "",
        rebalance_timeout_ms=value.rebalance_timeout_ms,
        server_assignor=value.server_assignor,
        classic=None
        if classic is None
        else ClassicMember(
            session_timeout_ms=classic.session_timeout_ms,
            protocols=tuple(
                (protocol.name, bytes(protocol.metadata))
                for protocol in classic.supported_protocols
            ),
        ),
    )


def with_assignment(
    member: ConsumerGroupMember, value: ConsumerGroupCurrentMemberAssignmentValue
) -> ConsumerGroupMember:
    """
    The member, with the epoch and the partitions of a record.
    """
    epoch = max(value.member_epoch, 0)
    return replace(
        member,
        member_epoch=value.member_epoch,
        previous_member_epoch=value.previous_member_epoch,
        state=MemberState.of(value.state),
        assigned=_assigned(value.assigned_partitions, epoch),
        pending_revocation=_assigned(value.partitions_pending_revocation, epoch),
    )


def without_assignment(member: ConsumerGroupMember) -> ConsumerGroupMember:
    """
    The member, after the tombstone of what it has.
    """
    return replace(
        member,
        member_epoch=LEAVING,
        previous_member_epoch=LEAVING,
        assigned=NOTHING_ASSIGNED,
        pending_revocation=NOTHING_ASSIGNED,
    )


def target_of(value: ConsumerGroupTargetAssignmentMemberValue) -> Target:
    """
    The target assignment of a record.
    """
    return {each.topic_id: tuple(each.partitions) for each in value.topic_partitions}


def _with_epochs(assigned: Assigned) -> list[TopicPartitions]:
    return [
        TopicPartitions(
            topic_id=topic_id,
            partitions=list(epochs),
            assignment_epochs=list(epochs.values()),
        )
        for topic_id, epochs in assigned.items()
    ]


def _assigned(topics: Iterable[TopicPartitions], default_epoch: int) -> Assigned:
    return {
        topic.topic_id: epochs_of(topic.partitions, topic.assignment_epochs, default_epoch)
        for topic in topics
    }
