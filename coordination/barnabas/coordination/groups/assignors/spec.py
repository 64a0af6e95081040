"""
What an assignor of partitions is told of a group, and what it answers.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from enum import Enum
from types import MappingProxyType
from typing import Final, TypeAlias, TypeVar
from uuid import UUID

from barnabas.coordination.groups.assignors.java_order.hash_order import HashOrder
from barnabas.coordination.groups.assignors.java_order.hashing import copied
from barnabas.coordination.java_strings import string_hash
from barnabas.protocol.structs import NamedTuple

K = TypeVar("K")

Assignment: TypeAlias = Mapping[UUID, Sequence[int]]
"""
The partitions of a member by topic.

Topics and partitions are in the order of the record that keeps the assignment. The order is no part
of its value, but decides what a later assignment takes away first: Kafka makes a hash map of the
record, and walks over that.
"""

NO_PARTITIONS: Final[Assignment] = MappingProxyType({})


class SubscriptionType(Enum):
    """
    Whether all members of a group subscribe to the same topics, as Kafka's groups count that.
    """

    HOMOGENEOUS = "homogeneous"
    HETEROGENEOUS = "heterogeneous"


class TopicIds:
    """
    The topics that a member subscribes to (Kafka's ``TopicIds``): a set that keeps an order.

    Members with the same subscription may share one.
    """

    __slots__ = ("_ids", "as_set", "name_count")

    def __init__(self, ids: Iterable[UUID], name_count: int | None = None) -> None:
        """
        Args:
            ids: in the order of the set of names.
            name_count: of how many names, if there are some without a topic.
        """
        self._ids = tuple(ids)
        self.as_set: Final = frozenset(self._ids)
        self.name_count = len(self._ids) if name_count is None else name_count

    @classmethod
    def of_names(cls, names: Sequence[str] | Set[str], topic_ids: Mapping[str, UUID]) -> TopicIds:
        """
        The topics with these names, in the order of ``new HashSet<>(names)``.

        Args:
            names: in the order of the request by the member whose heartbeat it is; a set for
                others, which Kafka sorts in their records.
            topic_ids: of all topics that there are.
        """
        # Names without a topic have no part in the order of the others, and may be very many.
        known = [name for name in names if name in topic_ids]
        if isinstance(names, Set):
            known.sort()
        order = HashOrder(string_hash, copied(len(names)), known)
        return cls((topic_ids[name] for name in order), len(frozenset(names)))

    def __iter__(self) -> Iterator[UUID]:
        return iter(self._ids)

    def __len__(self) -> int:
        return len(self._ids)

    def __contains__(self, topic_id: object) -> bool:
        return topic_id in self.as_set

    def __repr__(self) -> str:
        return f"TopicIds({self._ids!r}, name_count={self.name_count})"


class MemberSpec(NamedTuple):
    """
    A member: its subscription, and its target assignment so far.
    """

    subscribed_topic_ids: TopicIds
    target: Assignment = NO_PARTITIONS
    instance_id: str | None = None
    rack_id: str | None = None
    """None of Kafka's assignors uses it."""
    inherits: bool = False
    """
    Whether the target is that of the static member whose place this one takes. It is a new target
    then, in the order of a new record, even if it is the same.
    """


class GroupSpec(NamedTuple):
    """
    A consumer group or a share group.
    """

    members: Mapping[str, MemberSpec]
    """By member id, in the order of ``member_order``."""
    subscription_type: SubscriptionType
    assignable: Mapping[UUID, frozenset[int]] | None = None
    """The partitions that a share group may have; None for all of their topics."""


def is_same(assignment: Mapping[K, Collection[int]], other: Mapping[K, Collection[int]]) -> bool:
    """
    Whether both have the same partitions, in whatever orders.
    """
    if len(assignment) != len(other):
        return False
    if list(assignment) == list(other):
        return all(map(_has_same, assignment.values(), other.values()))
    if assignment.keys() != other.keys():
        return False
    return all(_has_same(numbers, other[key]) for key, numbers in assignment.items())


def _has_same(numbers: Collection[int], others: Collection[int]) -> bool:
    return numbers == others or (len(numbers) == len(others) and set(numbers) == set(others))
