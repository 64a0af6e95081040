"""
A consumer group as ConsumerGroupDescribe shows it.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final
from uuid import UUID

from barnabas.coordination.groups.consumer.group import ConsumerGroup
from barnabas.coordination.groups.consumer.member import ConsumerGroupMember
from barnabas.coordination.groups.modern.topics import ClusterTopics, with_topics
from barnabas.coordination.steps import map_in_turns
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.consumer_group_describe import (
    Assignment,
    DescribedGroup,
    Member,
    TopicPartitions,
)

CLASSIC_MEMBER: Final = 0
CONSUMER_MEMBER: Final = 1


async def describe(
    group: ConsumerGroup, topics: ClusterTopics, default_assignor: str
) -> DescribedGroup:
    """
    A group with its members. Topics that do not exist any more are left out.

    Args:
        default_assignor: of a group whose members do not ask for any.
    """
    members = await map_in_turns(
        lambda member: _described(group, member, topics), tuple(group.members.values())
    )
    return DescribedGroup(
        error_code=ErrorCode.NONE,
        group_id=group.group_id,
        group_state=group.state_name,
        group_epoch=group.group_epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=group.preferred_assignor or default_assignor,
        members=members,
    )


def described_error(group_id: str, error: ErrorCode, sentence: str | None = None) -> DescribedGroup:
    """
    A group that cannot be described.
    """
    return DescribedGroup(
        error_code=error,
        error_message=sentence,
        group_id=group_id,
        group_state="",
        group_epoch=0,
        assignment_epoch=0,
        assignor_name="",
        members=[],
    )


def _described(group: ConsumerGroup, member: ConsumerGroupMember, topics: ClusterTopics) -> Member:
    # The member has what it is to give up, until it has given it up.
    has: dict[UUID, list[int]] = {}
    for assigned in (member.assigned, member.pending_revocation):
        for topic_id, partitions in assigned.items():
            has.setdefault(topic_id, []).extend(partitions)
    return Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.member_epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.topic_names),
        subscribed_topic_regex=member.topic_regex,
        assignment=_named(has, topics),
        target_assignment=_named(group.target_of(member.member_id), topics),
        member_type=CLASSIC_MEMBER if member.is_classic else CONSUMER_MEMBER,
    )


def _named(assigned: Mapping[UUID, Iterable[int]], topics: ClusterTopics) -> Assignment:
    return Assignment(
        topic_partitions=[
            TopicPartitions(topic_id=topic.id, topic_name=topic.name, partitions=partitions)
            for topic, partitions in with_topics(assigned, topics)
        ]
    )
