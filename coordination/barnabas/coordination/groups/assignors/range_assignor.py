"""
``range``: each member gets a range of each of its topics (Kafka's ``RangeAssignor``).

Members are in the order of their instance ids, or after those of their member ids. Topics with as
many partitions and the same subscribers are cut at the same places: what has the same key in them
comes to one member.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final
from uuid import UUID

from barnabas.coordination.groups.assignors.assignment_copy import kept
from barnabas.coordination.groups.assignors.errors import TopicWithoutMetadata
from barnabas.coordination.groups.assignors.java_order.hash_order import HashOrder
from barnabas.coordination.groups.assignors.java_order.hashing import presized, uuid_hash
from barnabas.coordination.groups.assignors.spec import (
    Assignment,
    GroupSpec,
    MemberSpec,
    SubscriptionType,
    TopicIds,
)
from barnabas.coordination.java_strings import string_rank

NAME: Final = "range"


def assign(group: GroupSpec, partition_counts: Mapping[UUID, int]) -> dict[str, Assignment]:
    """
    The target assignment of each member; the one that it has, if it is the same.

    Args:
        partition_counts: by topic.

    Raises:
        TopicWithoutMetadata: a subscribed topic is not among them.
    """
    if not group.members:
        return {}
    members = sorted(group.members.items(), key=_rank)
    if group.subscription_type is SubscriptionType.HOMOGENEOUS:
        first = members[0][1].subscribed_topic_ids
        subscriptions = [first] * len(members)
        orders = {id(first): _order(first, len(first))}
    else:
        subscriptions = [member.subscribed_topic_ids for _, member in members]
        unique = {id(topic_ids): topic_ids for topic_ids in subscriptions}
        orders = {key: _order(topic_ids, topic_ids.name_count) for key, topic_ids in unique.items()}
    ranges = _ranges_by_topic(subscriptions, partition_counts)
    sources = {key: [ranges[topic_id] for topic_id in order] for key, order in orders.items()}
    assignments: dict[str, Assignment] = {}
    for (member_id, member), topic_ids in zip(members, subscriptions, strict=True):
        order = orders[id(topic_ids)]
        numbers = list(map(next, sources[id(topic_ids)]))
        assignments[member_id] = _assignment(member, order, numbers)
    return assignments


def _assignment(
    member: MemberSpec, order: list[UUID], numbers: list[tuple[int, ...]]
) -> Assignment:
    target = member.target
    if list(target.values()) == numbers and list(target) == order:
        return target
    assignment = dict(zip(order, numbers, strict=True))
    if not all(numbers):
        assignment = {topic_id: part for topic_id, part in assignment.items() if part}
    return kept(assignment, member)


def _rank(member: tuple[str, MemberSpec]) -> tuple[bool, bytes]:
    """
    The rank of a member: static ones are first, and keep their ranges when their ids change.
    """
    member_id, spec = member
    if spec.instance_id is not None:
        return False, string_rank(spec.instance_id)
    return True, string_rank(member_id)


def _order(topic_ids: TopicIds, count: int) -> list[UUID]:
    """
    The topics of an assignment in the order of the map that it is, made for *count* of them.
    """
    return list(HashOrder(uuid_hash, presized(count), topic_ids))


def _ranges_by_topic(
    subscriptions: list[TopicIds], partition_counts: Mapping[UUID, int]
) -> dict[UUID, Iterator[tuple[int, ...]]]:
    """
    For each topic the ranges of its subscribers, in their order.
    """
    unique = {id(topic_ids): topic_ids for topic_ids in subscriptions}
    subscriber_counts: dict[UUID, int] = {}
    for key, count in Counter(map(id, subscriptions)).items():
        for topic_id in unique[key]:
            subscriber_counts[topic_id] = subscriber_counts.get(topic_id, 0) + count
    ranges: dict[tuple[int, int], list[tuple[int, ...]]] = {}
    for topic_id, subscriber_count in subscriber_counts.items():
        if topic_id not in partition_counts:
            raise TopicWithoutMetadata(topic_id)
        sizes = partition_counts[topic_id], subscriber_count
        if sizes not in ranges:
            ranges[sizes] = list(_ranges(*sizes))
    return {
        topic_id: iter(ranges[partition_counts[topic_id], subscriber_count])
        for topic_id, subscriber_count in subscriber_counts.items()
    }


def _ranges(partition_count: int, subscriber_count: int) -> Iterator[tuple[int, ...]]:
    """
    The partitions of each subscriber: the first ones get one more if there is a remainder.
    """
    quota, extra = divmod(partition_count, subscriber_count)
    end = 0
    for index in range(subscriber_count):
        start, end = end, end + quota + (index < extra)
        yield tuple(range(start, end))
