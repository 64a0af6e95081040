"""
The balancer finds the subscriber of a topic that gets the next partition, or loses one (Kafka's
``UniformHeterogeneousAssignmentBuilder.MemberAssignmentBalancer``).

The subscribers are sorted by what they have. The least loaded range grows from the left: its
members get a partition each in turn, then its level rises by one, and members that have as many are
part of it. The most loaded range grows from the right, and its level falls. Members that have
nothing to give leave it.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

from collections.abc import Sequence


class MemberBalancer:
    """
    The two ranges over the subscribers of one topic.

    Members are numbers, the indexes of *sizes*. The sizes follow what the balancer has answered:
    its caller counts the partition at once.
    """

    __slots__ = (
        "_least_end",
        "_least_level",
        "_members",
        "_most_end",
        "_most_level",
        "_most_start",
        "_next_least",
        "_next_most",
        "_sizes",
        "imbalance",
    )

    def __init__(self, sizes: Sequence[int], subscribers: Sequence[int]) -> None:
        """
        Args:
            sizes: the number of partitions of each member.
            subscribers: at least one, in ascending order.
        """
        self._sizes = sizes
        self._members = members = sorted(subscribers, key=sizes.__getitem__)
        least, most = sizes[members[0]], sizes[members[-1]]
        self.imbalance = most - least
        self._least_end = self._next_least = 0
        self._least_level = least - 1
        self._most_start = self._most_end = len(members)
        self._most_level = most + 1
        self._next_most = len(members) - 1

    @property
    def is_balanced(self) -> bool:
        """
        Whether the levels of both ranges differ by one at most.
        """
        return self._most_level - self._least_level <= 1

    def next_least_loaded(self) -> int:
        """
        The member that gets the next partition.
        """
        if self._next_least >= self._least_end:
            self._least_level += 1
            members, sizes = self._members, self._sizes
            end = self._least_end
            while end < len(members) and sizes[members[end]] == self._least_level:
                end += 1
            self._least_end = end
            self._next_least = 0
        member = self._members[self._next_least]
        self._next_least += 1
        return member

    def next_most_loaded(self) -> int | None:
        """
        The member that gives the next partition away, if there is one left.
        """
        if self._next_most < self._most_start:
            members, sizes = self._members, self._sizes
            start = self._most_start
            if self._most_end <= start and start > 0:
                # All of the range had nothing to give. It begins again with the next member.
                self._most_level = sizes[members[start - 1]]
            else:
                self._most_level -= 1
            while start > 0 and sizes[members[start - 1]] == self._most_level:
                start -= 1
            self._most_start = start
            self._next_most = self._most_end - 1
        if self._next_most < 0:
            return None
        member = self._members[self._next_most]
        self._next_most -= 1
        return member

    def exclude_most_loaded(self) -> None:
        """
        Take the member that was given last out of the most loaded range: it has nothing to give.
        """
        members, end = self._members, self._most_end - 1
        at = self._next_most + 1
        members[at], members[end] = members[end], members[at]
        self._most_end = end
