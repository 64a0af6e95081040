"""
A member's assignment while an assignor changes it.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from uuid import UUID

from barnabas.coordination.groups.assignors.java_order.hash_order import HashOrder
from barnabas.coordination.groups.assignors.java_order.hashing import (
    DEFAULT_TABLE_SIZE,
    copied,
    table_size,
    uuid_hash,
)
from barnabas.coordination.groups.assignors.java_order.partition_set import (
    PartitionSet,
    copied_order,
)
from barnabas.coordination.groups.assignors.spec import (
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

    The partitions of a topic are copied when they change.
    """

    __slots__ = ("_order", "_partitions", "_target")

    def __init__(self, target: Assignment) -> None:
        self._target = target
        self._order = HashOrder(uuid_hash, table_size(len(target)), topic_order(target))
        self._partitions: dict[UUID, PartitionSet] = {}

    def add(self, topic_id: UUID, numbers: Sequence[int], size: int = DEFAULT_TABLE_SIZE) -> None:
        """
        Add partitions of a topic.

        Args:
            size: of the table of the partitions, if they are the first of their topic.
        """
        if self._order.compute_if_absent(topic_id):
            self._partitions[topic_id] = PartitionSet(size, numbers)
        else:
            self._changed(topic_id).add_all(numbers)
        if len(numbers) > 1:
            # Kafka asks for each partition, and the table grows when it is asked.
            self._order.compute_if_absent(topic_id)

    def remove(self, topic_id: UUID, number: int) -> None:
        """
        Remove a partition, and its topic with the last one.
        """
        partitions = self._changed(topic_id)
        partitions.remove(number)
        if not partitions:
            self.remove_topic(topic_id)

    def remove_but_topic(self, topic_id: UUID, number: int) -> None:
        """
        Remove a partition; a topic without any stays, as in Kafka's ``simple`` assignor.
        """
        self._changed(topic_id).remove(number)

    def remove_topic(self, topic_id: UUID) -> None:
        self._partitions.pop(topic_id, None)
        self._order.remove(topic_id)

    def result(self) -> Assignment:
        """
        The assignment in the order of the record that Kafka writes of it.
        """
        return {topic_id: self._numbers(topic_id) for topic_id in self._order}

    def _changed(self, topic_id: UUID) -> PartitionSet:
        partitions = self._partitions.get(topic_id)
        if partitions is None:
            numbers = copied_order(self._target[topic_id])
            partitions = self._partitions[topic_id] = PartitionSet(copied(len(numbers)), numbers)
        return partitions

    def _numbers(self, topic_id: UUID) -> tuple[int, ...]:
        partitions = self._partitions.get(topic_id)
        if partitions is None:
            # What Kafka has made of the record, and its copy.
            return tuple(copied_order(copied_order(self._target[topic_id])))
        return tuple(partitions.ordered())


def chosen(copy: AssignmentCopy | None, spec: MemberSpec) -> Assignment:
    """
    The assignment of a member: what became of the copy, or the target, if that is the same.
    """
    if copy is not None:
        return kept(copy.result(), spec)
    target = spec.target
    if not spec.inherits:
        return target
    return {topic_id: tuple(copied_order(target[topic_id])) for topic_id in topic_order(target)}


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
