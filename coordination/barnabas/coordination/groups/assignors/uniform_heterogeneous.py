"""
``uniform`` where members subscribe to different topics (Kafka's
``UniformHeterogeneousAssignmentBuilder``).

Members keep what they have of subscribed topics. Topic by topic, what nobody has comes to the least
loaded subscribers, then the most loaded ones give to the least loaded, again and again until no
topic changes any more.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from uuid import UUID

from barnabas.coordination.groups.assignors.assignment_copy import (
    AssignmentCopy,
    chosen,
    without_topics,
)
from barnabas.coordination.groups.assignors.errors import TopicWithoutMetadata
from barnabas.coordination.groups.assignors.java_order.hashing import presized, uuid_rank
from barnabas.coordination.groups.assignors.member_balancer import MemberBalancer
from barnabas.coordination.groups.assignors.spec import Assignment, MemberSpec

_MOST_ROUNDS: Final = 16
"""
So many times all topics are balanced at most: where subscriptions overlap, the end may be far.
"""

_NOBODY: Final = -1


def assign(
    members: Mapping[str, MemberSpec], partition_counts: Mapping[UUID, int]
) -> dict[str, Assignment]:
    """
    The target assignment of each member, as ``uniform_assignor.assign``.
    """
    return _Builder(members, partition_counts).build()


class _Topic:
    """
    A topic that at least one member subscribes to.
    """

    __slots__ = ("estimated_size", "id", "owners", "subscribers")

    def __init__(self, topic_id: UUID, partition_count: int) -> None:
        self.id = topic_id
        self.subscribers: list[int] = []
        self.owners = [_NOBODY] * partition_count
        """The member of each partition."""
        self.estimated_size = 0
        """The size of the table that Kafka makes for the partitions of one member."""

    @property
    def rank(self) -> tuple[float, int, tuple[int, int]]:
        """
        What orders topics: those with most partitions for each subscriber come first.
        """
        count = len(self.subscribers)
        return -(len(self.owners) / count), count, uuid_rank(self.id)


class _Builder:
    """
    One assignment under way. Members are known by their numbers.
    """

    def __init__(
        self, members: Mapping[str, MemberSpec], partition_counts: Mapping[UUID, int]
    ) -> None:
        self._members = members
        self._specs = list(members.values())
        self._sizes = [0] * len(members)
        self._copies: list[AssignmentCopy | None] = [None] * len(members)
        topics: dict[UUID, _Topic] = {}
        for index, spec in enumerate(self._specs):
            for topic_id in spec.subscribed_topic_ids:
                topic = topics.get(topic_id)
                if topic is None:
                    if topic_id not in partition_counts:
                        raise TopicWithoutMetadata(topic_id)
                    topic = topics[topic_id] = _Topic(topic_id, partition_counts[topic_id])
                topic.subscribers.append(index)
        for topic in topics.values():
            topic.estimated_size = presized(-(-len(topic.owners) // len(topic.subscribers)))
        self._by_id = topics
        self._topics = sorted(topics.values(), key=lambda topic: topic.rank)

    def build(self) -> dict[str, Assignment]:
        if not self._topics:
            return without_topics(self._members)
        for index, spec in enumerate(self._specs):
            self._keep(index, spec)
        for topic in self._topics:
            self._assign_remaining(topic)
        self._balance()
        return {
            member_id: chosen(copy, spec)
            for (member_id, spec), copy in zip(self._members.items(), self._copies, strict=True)
        }

    def _copy(self, index: int) -> AssignmentCopy:
        copy = self._copies[index]
        if copy is None:
            copy = self._copies[index] = AssignmentCopy(self._specs[index].target)
        return copy

    def _keep(self, index: int, spec: MemberSpec) -> None:
        """
        Leave a member all that it has of its topics.
        """
        subscribed = spec.subscribed_topic_ids.as_set
        for topic_id, numbers in spec.target.items():
            if topic_id not in subscribed:
                self._copy(index).remove_topic(topic_id)
                continue
            owners = self._by_id[topic_id].owners
            for number in numbers:
                owners[number] = index
            self._sizes[index] += len(numbers)

    def _assign_remaining(self, topic: _Topic) -> None:
        """
        Give what nobody has to the least loaded subscribers.
        """
        remaining = [number for number, owner in enumerate(topic.owners) if owner == _NOBODY]
        if remaining:
            balancer = MemberBalancer(self._sizes, topic.subscribers)
            for number in remaining:
                self._give(topic, number, balancer.next_least_loaded())

    def _give(self, topic: _Topic, number: int, index: int) -> None:
        self._copy(index).add(topic.id, (number,), topic.estimated_size)
        topic.owners[number] = index
        self._sizes[index] += 1

    def _take(self, topic: _Topic, number: int, index: int) -> None:
        self._copy(index).remove(topic.id, number)
        self._sizes[index] -= 1

    def _balance(self) -> None:
        """
        Balance topic by topic, until a round over all of them has changed nothing.
        """
        topics = [topic for topic in self._topics if len(topic.subscribers) > 1]
        last_changed: _Topic | None = None
        for _ in range(_MOST_ROUNDS):
            for topic in topics:
                if topic is last_changed:
                    return
                if self._balance_topic(topic) or last_changed is None:
                    last_changed = topic

    def _balance_topic(self, topic: _Topic) -> bool:
        """
        Move partitions from the most to the least loaded subscribers, and say whether any moved.
        """
        balancer = MemberBalancer(self._sizes, topic.subscribers)
        if balancer.imbalance <= 1:
            return False
        owned: dict[int, list[int]] = {}
        for number, owner in enumerate(topic.owners):
            owned.setdefault(owner, []).append(number)
        has_changed = False
        while (giver := self._next_giver(balancer, owned)) is not None:
            number = owned[giver].pop()
            taker = balancer.next_least_loaded()
            if balancer.is_balanced:
                break
            self._take(topic, number, giver)
            self._give(topic, number, taker)
            has_changed = True
        return has_changed

    @staticmethod
    def _next_giver(balancer: MemberBalancer, owned: Mapping[int, list[int]]) -> int | None:
        while (member := balancer.next_most_loaded()) is not None and not owned.get(member):
            balancer.exclude_most_loaded()
        return member
