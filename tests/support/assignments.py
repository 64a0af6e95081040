"""
Groups for tests of the assignors.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from uuid import UUID

from barnabas.coordination.groups.assignors.spec import (
    Assignment,
    GroupSpec,
    MemberSpec,
    SubscriptionType,
    TopicIds,
)

A, B, C = (UUID(int=number) for number in (1, 2, 3))


def member(
    *topic_ids: UUID, target: Mapping[UUID, Iterable[int]] = {}, instance_id: str | None = None
) -> MemberSpec:
    """
    A member that subscribes to these topics.
    """
    numbers = {topic_id: tuple(numbers) for topic_id, numbers in target.items()}
    return MemberSpec(TopicIds(topic_ids), numbers, instance_id)


def group(**members: MemberSpec) -> GroupSpec:
    """
    A group of these members, of the subscription type that they make.
    """
    topics = {spec.subscribed_topic_ids.as_set for spec in members.values()}
    is_homogeneous = len(topics) < 2
    return GroupSpec(
        members,
        SubscriptionType.HOMOGENEOUS if is_homogeneous else SubscriptionType.HETEROGENEOUS,
    )


def plain(assignments: Mapping[str, Assignment]) -> dict[str, dict[UUID, list[int]]]:
    """
    Assignments with partitions in ascending order.
    """
    return {
        member_id: {topic_id: sorted(numbers) for topic_id, numbers in assignment.items()}
        for member_id, assignment in assignments.items()
    }


def sizes(assignments: Mapping[str, Assignment]) -> dict[str, int]:
    """
    How many partitions each member has.
    """
    return {
        member_id: sum(map(len, assignment.values()))
        for member_id, assignment in assignments.items()
    }


def owners(assignments: Mapping[str, Assignment]) -> Counter[tuple[UUID, int]]:
    """
    How many members each partition has.
    """
    return Counter(
        (topic_id, number)
        for assignment in assignments.values()
        for topic_id, numbers in assignment.items()
        for number in numbers
    )
