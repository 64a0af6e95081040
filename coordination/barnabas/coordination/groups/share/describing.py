"""
A share group as ShareGroupDescribe shows it.
"""

from __future__ import annotations

from barnabas.coordination.groups.assignors import simple_assignor
from barnabas.coordination.groups.modern.topics import ClusterTopics, with_topics
from barnabas.coordination.groups.share.group import ShareGroup
from barnabas.coordination.groups.share.member import ShareGroupMember
from barnabas.coordination.steps import map_in_turns
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.share_group_describe import (
    Assignment,
    DescribedGroup,
    Member,
    TopicPartitions,
)


async def describe(group: ShareGroup, topics: ClusterTopics) -> DescribedGroup:
    """
    A group with its members. Topics that do not exist any more are left out.
    """
    members = await map_in_turns(
        lambda member: _described(member, topics), tuple(group.members.values())
    )
    return DescribedGroup(
        error_code=ErrorCode.NONE,
        group_id=group.group_id,
        group_state=group.state_name,
        group_epoch=group.group_epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=simple_assignor.NAME,
        members=members,
    )


def described_error(group_id: str, error: ErrorCode, sentence: str | None = None) -> DescribedGroup:
    """
    A group that cannot be described.
    """
    return DescribedGroup(error_code=error, error_message=sentence, group_id=group_id, members=[])


def _described(member: ShareGroupMember, topics: ClusterTopics) -> Member:
    return Member(
        member_id=member.member_id,
        rack_id=member.rack_id,
        member_epoch=member.member_epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.topic_names),
        assignment=Assignment(
            topic_partitions=[
                TopicPartitions(topic_id=topic.id, topic_name=topic.name, partitions=partitions)
                for topic, partitions in with_topics(member.assigned, topics)
            ]
        ),
    )
