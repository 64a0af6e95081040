"""
Members that share partitions: the steps which both builders of Kafka's ``simple`` assignor take.

Every partition is to have as many members as it takes for all members to have one, and members are
to have as many partitions as others. Members with too many lose the first ones of a hash set, then
partitions with too many members lose the first ones of those, and what lacks members gets the next
of those that have room, around and around.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import ceil

from barnabas.server.groups.assignors.java_order.hash_order import HashOrder
from barnabas.server.groups.assignors.java_order.hashing import presized_by_helper
from barnabas.server.groups.assignors.java_order.partition_set import PartitionSet


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
        self._partitions = HashOrder(hash_of, presized_by_helper(len(targets)))
        self._by_partition: dict[int, PartitionSet] = {}
        self._by_member: dict[int, HashOrder[int]] = {}
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

    def keep(self, member: int, partition: int) -> None:
        """
        Let the member have a partition that it has had.
        """
        if self._partitions.compute_if_absent(partition):
            self._by_partition[partition] = PartitionSet()
        self._by_partition[partition].add(member)
        if member not in self._by_member:
            self._by_member[member] = HashOrder(self._hash_of)
        self._by_member[member].put(partition)

    def settle(self) -> None:
        """
        Revoke and assign until every partition has the members that it should, if it can be.
        """
        self._revoke_overfilled()
        self._revoke_overshared()
        for partition in self._targets:
            if self._partitions.compute_if_absent(partition):
                self._by_partition[partition] = PartitionSet()
        self._assign_remaining()

    def _revoke_overfilled(self) -> None:
        for member, partitions in self._by_member.items():
            surplus = len(partitions) - self._desired_counts.get(member, 0)
            if surplus > 0:
                for partition in list(partitions)[:surplus]:
                    partitions.remove(partition)
                    self._by_partition[partition].remove(member)
                    self.revoked.append((member, partition))

    def _revoke_overshared(self) -> None:
        for partition in self._partitions:
            members = self._by_partition[partition]
            surplus = len(members) - self._desired_sharing
            if surplus > 0:
                for member in members.ordered()[:surplus]:
                    members.remove(member)
                    self._by_member[member].remove(partition)
                    self.revoked.append((member, partition))

    def _assign_remaining(self) -> None:
        """
        Let members with room take turns at what lacks members.

        A member whose turn comes twice for one partition has used both turns, as in Kafka: the
        partition gets one member less.
        """
        unfilled = _Turns(member for member in self._members if self._has_room(member))
        for partition in self._partitions:
            members = self._by_partition[partition]
            for _ in range(len(members), self._desired_sharing):
                member = unfilled.next_besides(members)
                if member is None:
                    break
                self._by_member.setdefault(member, HashOrder(self._hash_of)).put(partition)
                self.assigned.append((member, partition))
                if not self._has_room(member):
                    unfilled.remove(member)

    def _has_room(self, member: int) -> bool:
        return len(self._by_member.get(member, ())) < self._desired_counts[member]


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

    def next_besides(self, others: PartitionSet) -> int | None:
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
