"""
``simple``: partitions of a share group come to as many members as it takes to keep all of them busy
(KIP-932, Kafka's ``SimpleAssignor``).

Where all members subscribe to the same topics, their partitions are shared together (Kafka's
``SimpleHomogeneousAssignmentBuilder``), else topic by topic
(``SimpleHeterogeneousAssignmentBuilder``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final
from uuid import UUID

from barnabas.coordination.groups.assignors.assignment_copy import (
    AssignmentCopy,
    chosen,
    topic_order,
    without_topics,
)
from barnabas.coordination.groups.assignors.errors import TopicWithoutMetadata
from barnabas.coordination.groups.assignors.java_order.hash_order import HashOrder
from barnabas.coordination.groups.assignors.java_order.hashing import uuid_hash
from barnabas.coordination.groups.assignors.java_order.partition_set import copied_order
from barnabas.coordination.groups.assignors.sharing import Sharing
from barnabas.coordination.groups.assignors.spec import (
    Assignment,
    GroupSpec,
    SubscriptionType,
)

NAME: Final = "simple"

_TOPIC_SHIFT: Final = 32
_NUMBER: Final = 0xFFFF_FFFF
_WORD: Final = 0xFFFF_FFFF


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
    return _Builder(group, partition_counts).build()


class _Builder:
    """
    One assignment under way. Members are known by their numbers.
    """

    def __init__(self, group: GroupSpec, partition_counts: Mapping[UUID, int]) -> None:
        self._group = group
        self._partition_counts = partition_counts
        self._specs = list(group.members.values())
        self._copies: list[AssignmentCopy | None] = [None] * len(self._specs)

    def build(self) -> dict[str, Assignment]:
        if self._group.subscription_type is SubscriptionType.HOMOGENEOUS:
            topic_ids = list(self._specs[0].subscribed_topic_ids)
        else:
            every = (topic_id for spec in self._specs for topic_id in spec.subscribed_topic_ids)
            topic_ids = list(HashOrder(uuid_hash, keys=every))
        if not topic_ids:
            return without_topics(self._group.members)
        for topic_id in topic_ids:
            if topic_id not in self._partition_counts:
                raise TopicWithoutMetadata(topic_id)
        if self._group.subscription_type is SubscriptionType.HOMOGENEOUS:
            self._share_together(topic_ids)
        else:
            self._share_by_topic(topic_ids)
        return {
            member_id: chosen(copy, spec)
            for (member_id, spec), copy in zip(
                self._group.members.items(), self._copies, strict=True
            )
        }

    def _share_together(self, topic_ids: Sequence[UUID]) -> None:
        """
        Share the partitions of all topics at once. Each has a number with its topic in the upper
        bits.
        """
        bases = {topic_id: index << _TOPIC_SHIFT for index, topic_id in enumerate(topic_ids)}
        hashes = [31 * uuid_hash(topic_id) for topic_id in topic_ids]

        def hash_of(partition: int) -> int:
            return hashes[partition >> _TOPIC_SHIFT] + (partition & _NUMBER) & _WORD

        targets = [
            bases[topic_id] + number for topic_id in topic_ids for number in self._targets(topic_id)
        ]
        sharing = Sharing(targets, range(len(self._specs)), hash_of)
        for index, spec in enumerate(self._specs):
            for topic_id in topic_order(spec.target):
                base = bases.get(topic_id)
                if base is None:
                    self._copy(index).remove_topic(topic_id)
                    continue
                numbers = copied_order(spec.target[topic_id])
                sharing.keep(index, [base + number for number in numbers])
        sharing.settle()
        for index, partition in sharing.revoked:
            topic_id = topic_ids[partition >> _TOPIC_SHIFT]
            self._copy(index).remove_but_topic(topic_id, partition & _NUMBER)
        for index, partition in sharing.assigned:
            topic_id = topic_ids[partition >> _TOPIC_SHIFT]
            self._copy(index).add(topic_id, (partition & _NUMBER,))

    def _share_by_topic(self, topic_ids: Sequence[UUID]) -> None:
        """
        Share the partitions of each topic among its subscribers.

        What members have of a topic that nobody subscribes to any more they keep, as in Kafka.
        """
        subscribers: dict[UUID, list[int]] = {topic_id: [] for topic_id in topic_ids}
        for index, spec in enumerate(self._specs):
            for topic_id in spec.subscribed_topic_ids:
                subscribers[topic_id].append(index)
        for topic_id in topic_ids:
            sharing = Sharing(list(self._targets(topic_id)), subscribers[topic_id], _itself)
            for index, spec in enumerate(self._specs):
                if topic_id in spec.target:
                    sharing.keep(index, copied_order(spec.target[topic_id]))
            sharing.settle()
            for index, number in sharing.revoked:
                self._copy(index).remove_but_topic(topic_id, number)
            for index, number in sharing.assigned:
                self._copy(index).add(topic_id, (number,))

    def _targets(self, topic_id: UUID) -> Iterable[int]:
        """
        The partitions of a topic that can be given to members.
        """
        numbers = range(self._partition_counts[topic_id])
        if self._group.assignable is None:
            return numbers
        assignable = self._group.assignable.get(topic_id, frozenset())
        return (number for number in numbers if number in assignable)

    def _copy(self, index: int) -> AssignmentCopy:
        copy = self._copies[index]
        if copy is None:
            copy = self._copies[index] = AssignmentCopy(self._specs[index].target)
        return copy


def _itself(number: int) -> int:
    return number
