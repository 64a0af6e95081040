"""
``uniform`` where all members subscribe to the same topics (Kafka's
``UniformHomogeneousAssignmentBuilder``).

Each member keeps what fits its quota. What nobody has, and what was above a quota, fills the other
members in their order, topic by topic.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from uuid import UUID

from barnabas.coordination.groups.assignors.assignment_copy import (
    AssignmentCopy,
    chosen,
    topic_order,
    without_topics,
)
from barnabas.coordination.groups.assignors.errors import (
    PartitionAssignorError,
    TopicWithoutMetadata,
)
from barnabas.coordination.groups.assignors.java_order.hash_order import HashOrder
from barnabas.coordination.groups.assignors.java_order.hashing import copied, uuid_hash
from barnabas.coordination.groups.assignors.java_order.partition_set import (
    added_order,
    copied_order,
)
from barnabas.coordination.groups.assignors.spec import Assignment, MemberSpec
from barnabas.protocol.structs import NamedTuple


class _Run(NamedTuple):
    """
    Partitions of a topic, to be given away in this order.
    """

    topic_id: UUID
    numbers: Sequence[int]


class _Unfilled(NamedTuple):
    """
    A member that gets so many partitions more.
    """

    member_id: str
    quota: int


def assign(
    members: Mapping[str, MemberSpec], partition_counts: Mapping[UUID, int]
) -> dict[str, Assignment]:
    """
    The target assignment of each member, as ``uniform_assignor.assign``.
    """
    return _Builder(members, partition_counts).build()


class _Builder:
    """
    One assignment under way.
    """

    def __init__(
        self, members: Mapping[str, MemberSpec], partition_counts: Mapping[UUID, int]
    ) -> None:
        self._members = members
        self._partition_counts = partition_counts
        self._topic_ids = next(iter(members.values())).subscribed_topic_ids
        self._subscribed = self._topic_ids.as_set
        for topic_id in self._topic_ids:
            if topic_id not in partition_counts:
                raise TopicWithoutMetadata(topic_id)
        self._unassigned: list[_Run] = []
        self._copies: dict[str, AssignmentCopy] = {}
        self._first: dict[str, Assignment] = {}
        """The assignments of members that had none, if they have one topic."""

    def build(self) -> dict[str, Assignment]:
        if not self._topic_ids:
            return without_topics(self._members)
        self._unassigned += self._free()
        self._fill(self._revoke())
        return {
            member_id: self._first.get(member_id) or chosen(self._copies.get(member_id), spec)
            for member_id, spec in self._members.items()
        }

    def _give(
        self, member_id: str, topic_id: UUID, numbers: Sequence[int], *, is_all: bool
    ) -> None:
        """
        Give partitions to a member.

        Args:
            is_all: whether it gets no others.
        """
        if is_all and not self._members[member_id].target:
            self._first[member_id] = {topic_id: tuple(added_order(numbers))}
        else:
            self._copy(member_id).add(topic_id, numbers)

    def _copy(self, member_id: str) -> AssignmentCopy:
        copy = self._copies.get(member_id)
        if copy is None:
            copy = self._copies[member_id] = AssignmentCopy(self._members[member_id].target)
        return copy

    def _free(self) -> Iterator[_Run]:
        """
        The partitions that nobody has, in the order of a ``HashSet`` of the topics.
        """
        owned: dict[UUID, list[Sequence[int]]] = {topic_id: [] for topic_id in self._topic_ids}
        for spec in self._members.values():
            for topic_id, numbers in spec.target.items():
                if (known := owned.get(topic_id)) is not None:
                    known.append(numbers)
        size = copied(self._topic_ids.name_count)
        for topic_id in HashOrder(uuid_hash, size, self._topic_ids):
            count = self._partition_counts[topic_id]
            taken = set[int]().union(*owned[topic_id])
            if len(taken) < count:
                yield _Run(topic_id, [number for number in range(count) if number not in taken])

    def _revoke(self) -> list[_Unfilled]:
        """
        Take away what is above a quota or no longer subscribed, and return who has room left.
        """
        partition_count = sum(map(self._partition_counts.__getitem__, self._topic_ids))
        minimum, extra = divmod(partition_count, len(self._members))
        unfilled: list[_Unfilled] = []
        for index, (member_id, spec) in enumerate(self._members.items()):
            has_extra = extra > 0
            quota = self._keep(member_id, spec.target, minimum + has_extra)
            if quota > 0 and has_extra and len(self._members) - index > extra:
                # A later member may have one more already, and keep it.
                quota -= 1
                has_extra = False
            if quota > 0:
                unfilled.append(_Unfilled(member_id, quota))
            extra -= has_extra
        return unfilled

    def _keep(self, member_id: str, target: Assignment, quota: int) -> int:
        """
        Leave a member what fits its quota, and return how many partitions it lacks.
        """
        subscribed = self._subscribed
        kept = sum(map(len, target.values()))
        if kept <= quota and target.keys() <= subscribed:
            return quota - kept
        copy = self._copy(member_id)
        for topic_id in topic_order(target):
            if topic_id not in subscribed:
                copy.remove_topic(topic_id)
            elif len(target[topic_id]) <= quota:
                quota -= len(target[topic_id])
            else:
                revoked = copied_order(target[topic_id])[quota:]
                quota = 0
                for number in revoked:
                    copy.remove(topic_id, number)
                self._unassigned.append(_Run(topic_id, revoked))
        return quota

    def _fill(self, unfilled: list[_Unfilled]) -> None:
        runs = iter(self._unassigned)
        run = next(runs, None)
        start = 0
        for member_id, quota in unfilled:
            lacking = quota
            while lacking > 0 and run is not None:
                given = run.numbers[start : start + lacking]
                self._give(member_id, run.topic_id, given, is_all=len(given) == quota)
                lacking -= len(given)
                start += len(given)
                if start == len(run.numbers):
                    run, start = next(runs, None), 0
        if run is not None:
            raise PartitionAssignorError("Some partitions have no member.")
