"""
A member's assignment while an assignor changes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from uuid import UUID

from barnabas.server.groups.assignors.java_order.hash_order import HashOrder
from barnabas.server.groups.assignors.java_order.hashing import (
    DEFAULT_TABLE_SIZE,
    table_size,
    uuid_hash,
)
from barnabas.server.groups.assignors.java_order.partition_set import PartitionSet, copied_order
from barnabas.server.groups.assignors.spec import (
    NO_PARTITIONS,
    Assignment,
    MemberSpec,
    is_same,
)


def topic_order(assignment: Assignment) -> Iterable[UUID]:
    """
    The topics in the order of the map that Kafka makes of a record.
    """
    return assignment if len(assignment) < 2 else HashOrder(uuid_hash, keys=assignment)


class AssignmentCopy:
    """
    A deep copy of an assignment (``AssignorHelpers.deepCopyAssignment``), with the orders that
    Java's collections give to it.
    """

    __slots__ = ("_order", "_partitions")

    def __init__(self, assignment: Assignment) -> None:
        self._order = HashOrder(uuid_hash, table_size(len(assignment)), topic_order(assignment))
        self._partitions = {
            topic_id: PartitionSet.copy_of(copied_order(numbers))
            for topic_id, numbers in assignment.items()
        }

    def add(self, topic_id: UUID, number: int, size: int = DEFAULT_TABLE_SIZE) -> None:
        """
        Add a partition.

        Args:
            size: of the table of the partitions, if it is the first of its topic.
        """
        if self._order.compute_if_absent(topic_id):
            self._partitions[topic_id] = PartitionSet(size)
        self._partitions[topic_id].add(number)

    def remove(self, topic_id: UUID, number: int) -> None:
        """
        Remove a partition, and its topic with the last one.
        """
        partitions = self._partitions[topic_id]
        partitions.remove(number)
        if not partitions:
            self.remove_topic(topic_id)

    def remove_but_topic(self, topic_id: UUID, number: int) -> None:
        """
        Remove a partition; a topic without any stays, as in Kafka's ``simple`` assignor.
        """
        self._partitions[topic_id].remove(number)

    def remove_topic(self, topic_id: UUID) -> None:
        del self._partitions[topic_id]
        self._order.remove(topic_id)

    def result(self) -> Assignment:
        """
        The assignment in the order of the record that Kafka writes of it.
        """
        return {topic_id: tuple(self._partitions[topic_id].ordered()) for topic_id in self._order}


def chosen(copy: AssignmentCopy | None, spec: MemberSpec) -> Assignment:
    """
    The assignment of a member: what became of the copy, or the target, if that is the same.
    """
    if copy is None and not spec.inherits:
        return spec.target
    if copy is None:
        target = spec.target
        return {topic_id: tuple(copied_order(target[topic_id])) for topic_id in topic_order(target)}
    return kept(copy.result(), spec)


def kept(assignment: Assignment, spec: MemberSpec) -> Assignment:
    """
    The target of a member instead of an assignment that is the same.
    """
    return spec.target if not spec.inherits and is_same(assignment, spec.target) else assignment


def without_topics(members: Mapping[str, MemberSpec]) -> dict[str, Assignment]:
    """
    The assignments of a group that subscribes to nothing.
    """
    return {member_id: kept(NO_PARTITIONS, spec) for member_id, spec in members.items()}
