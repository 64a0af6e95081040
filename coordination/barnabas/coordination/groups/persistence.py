"""
The GroupMetadata record of a classic group, and the group of a record.

The record holds the generation and the members with their subscriptions and assignments. It is
written when a generation has its assignment, when the last member has left, when a static member
has a new id, and once, empty, when the group is created.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from barnabas.coordination.groups.classic.group import ClassicGroup
from barnabas.coordination.groups.classic.member import ClassicGroupMember, MemberProtocol
from barnabas.coordination.groups.classic.state import GroupState
from barnabas.coordination.groups.consumer.group import ConsumerGroup
from barnabas.coordination.groups.records import CoordinatorRecord, GroupRecord
from barnabas.coordination.groups.share.group import ShareGroup
from barnabas.coordination.groups.streams.group import StreamsGroup
from barnabas.protocol.internal_topics.group_records import GroupMetadataValue, MemberMetadata
from barnabas.protocol.records.batch import NO_TIMESTAMP

NO_TIMEOUT: Final = -1


def group_record(group: ClassicGroup, assignment: Mapping[str, bytes]) -> GroupRecord:
    """
    The record of a group with an assignment, by member id.
    """
    return GroupRecord(
        group.group_id,
        GroupMetadataValue(
            protocol_type=group.protocol_type or "",
            generation=group.generation_id,
            protocol=group.protocol_name,
            leader=group.leader_id,
            current_state_timestamp=_timestamp(group),
            members=[
                MemberMetadata(
                    member_id=member.member_id,
                    group_instance_id=member.instance_id,
                    client_id=member.client_id,
                    client_host=member.client_host,
                    rebalance_timeout=member.rebalance_timeout_ms,
                    session_timeout=member.session_timeout_ms,
                    subscription=member.metadata(group.protocol_name),
                    assignment=assignment[member.member_id],
                )
                for member in group.members.values()
            ],
        ),
    )


def empty_group_record(group: ClassicGroup) -> GroupRecord:
    """
    The first record of a new group.
    """
    return GroupRecord(
        group.group_id,
        GroupMetadataValue(
            protocol_type="",
            generation=0,
            protocol=None,
            leader=None,
            current_state_timestamp=_timestamp(group),
            members=[],
        ),
    )


def restored_group(group_id: str, value: GroupMetadataValue) -> ClassicGroup:
    """
    The group of a record: stable, or empty if it has no members.
    """
    timestamp = value.current_state_timestamp
    group = ClassicGroup(
        group_id,
        GroupState.STABLE if value.members else GroupState.EMPTY,
        state_timestamp_ms=None if timestamp == NO_TIMESTAMP else timestamp,
        generation_id=value.generation,
        protocol_type=value.protocol_type or None,
        protocol_name=value.protocol,
        leader_id=value.leader,
    )
    for member in value.members:
        # The record has no other protocol of the member, which names them again when it rejoins.
        protocol = MemberProtocol(value.protocol or "", member.subscription)
        timeout_ms = member.rebalance_timeout
        group.add(
            ClassicGroupMember(
                member.member_id,
                instance_id=member.group_instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                rebalance_timeout_ms=(
                    member.session_timeout if timeout_ms == NO_TIMEOUT else timeout_ms
                ),
                session_timeout_ms=member.session_timeout,
                protocol_type=value.protocol_type,
                protocols=(protocol,),
                assignment=member.assignment,
            )
        )
    group.subscribed_topics = group.compute_subscribed_topics()
    return group


def group_tombstones(
    group: ClassicGroup | ConsumerGroup | ShareGroup | StreamsGroup,
) -> list[CoordinatorRecord]:
    """
    The records that delete a group, of any type.
    """
    if isinstance(group, ClassicGroup):
        return [GroupRecord(group.group_id, None)]
    return [*group.tombstones()]


def _timestamp(group: ClassicGroup) -> int:
    return NO_TIMESTAMP if group.state_timestamp_ms is None else group.state_timestamp_ms
