"""
Members that share partitions: the steps which both builders of Kafka's ``simple`` assignor take.

Every partition is to have as many members as it takes for all members to have one, and members are
to have as many partitions as others. Members with too many lose the first ones of a hash set, then
partitions with too many members lose the first ones of those, and what lacks members gets the next
of those that have room, around and around.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence
from math import ceil

from barnabas.coordination.groups.assignors.java_order.hash_order import HashOrder
from barnabas.coordination.groups.assignors.java_order.hashing import presized_by_helper
from barnabas.coordination.groups.assignors.java_order.partition_set import PartitionSet


class Sharing:
    """
    Partitions and the members that share them, all of them as numbers.

    ``keep`` what members have, then ``settle``. The changes are in ``revoked`` and ``assigned``
    as pairs of a member and a partition, in the order in which they were made.
    """

    def __init__(
        self,
        targets: Sequence[int],
        members: Sequence[int],
        hash_of: Callable[[int], int],
    ) -> None:
        """
        Args:
            targets: the partitions to share.
            members: in ascending order.
            hash_of: the hash code of a partition in a map of them.
        """
        self._targets = targets
        self._members = members
        self._hash_of = hash_of
        self._desired_sharing = -(-len(members) // len(targets)) if targets else 0
        self._desired_counts = self._count_desired()
        self._order = HashOrder(hash_of, presized_by_helper(len(targets)))
        self._kept: dict[int, list[int]] = {}
        """The members that had each partition."""
        self._sharers: dict[int, set[int]] = {}
        """The members that have it still."""
        self._owned: dict[int, dict[int, None]] = {}
        """The partitions of each member, in the order in which it got them."""
        self.revoked: list[tuple[int, int]] = []
        self.assigned: list[tuple[int, int]] = []

    def _count_desired(self) -> dict[int, int]:
        """
        How many partitions each member is to have. The fractions add up in order.
        """
        each = self._desired_sharing * len(self._targets) / len(self._members)
        return {
            member: ceil(each * (index + 1)) - ceil(each * index)
            for index, member in enumerate(self._members)
        }

    def keep(self, member: int, partitions: Iterable[int]) -> None:
        """
        Let the member have partitions that it has had.
        """
        owned = self._owned.setdefault(member, {})
        for partition in partitions:
            if self._order.compute_if_absent(partition):
                self._kept[partition] = []
                self._sharers[partition] = set()
            self._kept[partition].append(member)
            self._sharers[partition].add(member)
            owned[partition] = None

    def settle(self) -> None:
        """
        Revoke and assign until every partition has the members that it should, if it can be.
        """
        self._revoke_overfilled()
        self._revoke_overshared()
        for partition in self._targets:
            if self._order.compute_if_absent(partition):
                self._sharers[partition] = set()
        self._assign_remaining()

    def _revoke_overfilled(self) -> None:
        for member, partitions in self._owned.items():
            surplus = len(partitions) - self._desired_counts.get(member, 0)
            if surplus > 0:
                for partition in list(HashOrder(self._hash_of, keys=partitions))[:surplus]:
                    self._revoke(member, partition)

    def _revoke_overshared(self) -> None:
        for partition in self._order:
            surplus = len(self._sharers[partition]) - self._desired_sharing
            if surplus > 0:
                order = PartitionSet()
                for member in self._kept[partition]:
                    order.add(member)
                for member in self._kept[partition]:
                    if member not in self._sharers[partition]:
                        order.remove(member)
                for member in order.ordered()[:surplus]:
                    self._revoke(member, partition)

    def _revoke(self, member: int, partition: int) -> None:
        del self._owned[member][partition]
        self._sharers[partition].remove(member)
        self.revoked.append((member, partition))

    def _assign_remaining(self) -> None:
        """
        Let members with room take turns at what lacks members.

        A member whose turn comes twice for one partition has used both turns, as in Kafka: the
        partition gets one member less.
        """
        turns = _Turns(member for member in self._members if self._has_room(member))
        for partition in self._order:
            sharers = self._sharers[partition]
            for _ in range(len(sharers), self._desired_sharing):
                member = turns.next_besides(sharers)
                if member is None:
                    break
                self._owned.setdefault(member, {})[partition] = None
                self.assigned.append((member, partition))
                if not self._has_room(member):
                    turns.remove(member)

    def _has_room(self, member: int) -> bool:
        return len(self._owned.get(member, ())) < self._desired_counts[member]


class _Turns:
    """
    Members who take turns, around and around.
    """

    def __init__(self, members: Iterable[int]) -> None:
        self._members = dict.fromkeys(members)
        self._round = list(self._members)
        self._next = 0
        self._has_given = False

    def remove(self, member: int) -> None:
        """
        Let a member have no turn in later rounds.
        """
        del self._members[member]

    def next_besides(self, others: Container[int]) -> int | None:
        """
        The next member that is none of *others*; None if a whole round has given nobody.

        That is the answer from then on: once Kafka has given up a partition, it gives up those
        after it as well.
        """
        while True:
            if self._next == len(self._round):
                if not self._has_given or not self._members:
                    return None
                self._round = list(self._members)
                self._next = 0
                self._has_given = False
            member = self._round[self._next]
            self._next += 1
            if member not in others:
                self._has_given = True
                return member
