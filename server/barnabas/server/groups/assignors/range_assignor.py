"""
``range``: each member gets a range of each of its topics (Kafka's ``RangeAssignor``).

Members are in the order of their instance ids, or after those of their member ids. Topics with as
many partitions and the same subscribers are cut at the same places: what has the same key in them
comes to one member.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final
from uuid import UUID

from barnabas.server.groups.assignors.assignment_copy import kept
from barnabas.server.groups.assignors.errors import TopicWithoutMetadata
from barnabas.server.groups.assignors.java_order.hash_order import HashOrder
from barnabas.server.groups.assignors.java_order.hashing import presized, string_rank, uuid_hash
from barnabas.server.groups.assignors.spec import (
    Assignment,
    GroupSpec,
    MemberSpec,
    SubscriptionType,
    TopicIds,
)

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
        orders = {
            id(topic_ids): _order(topic_ids, topic_ids.name_count) for topic_ids in subscriptions
        }
    ranges = _ranges_by_topic(subscriptions, partition_counts)
    assignments: dict[str, Assignment] = {}
    for (member_id, member), topic_ids in zip(members, subscriptions, strict=True):
        parts = [(topic_id, next(ranges[topic_id])) for topic_id in orders[id(topic_ids)]]
        assignment = {topic_id: numbers for topic_id, numbers in parts if numbers}
        assignments[member_id] = kept(assignment, member)
    return assignments


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
    subscriptions: Iterable[TopicIds], partition_counts: Mapping[UUID, int]
) -> dict[UUID, Iterator[tuple[int, ...]]]:
    """
    For each topic the ranges of its subscribers, in their order.
    """
    subscriber_counts: dict[UUID, int] = {}
    for topic_ids in subscriptions:
        for topic_id in topic_ids:
            subscriber_counts[topic_id] = subscriber_counts.get(topic_id, 0) + 1
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
