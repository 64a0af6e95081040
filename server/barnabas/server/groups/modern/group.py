"""
What groups of the later protocols have in common: epochs, members and their targets.

::

    a change of members or topics     the assignor has run       members have what they should
    group_epoch += 1            -->   assignment_epoch follows   -->   each member_epoch follows
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Final, Generic, TypeVar

from barnabas.protocol.errors import NonEmptyGroup, UnknownMemberId
from barnabas.server.groups.assignors.java_order.timeline import timeline_order

FIRST_EPOCH: Final = 1
"""
The epoch of a group without records: its first member makes it 2.
"""
FIRST_ASSIGNMENT_EPOCH: Final = 1
DELETED_ASSIGNMENT_EPOCH: Final = -1
UNKNOWN_TIME: Final = 0
"""
The time of the last assignment where there was none.
"""
OFFSETS_OF_MEMBERS_SINCE: Final = 9
"""
The first version of OffsetCommit that members of these protocols may use.
"""

M = TypeVar("M")
T = TypeVar("T")


class ModernGroup(ABC, Generic[M, T]):
    """
    A group with members of type *M*, which have targets of type *T* (Kafka's class of this name,
    and the same parts of its ``StreamsGroup``).

    Invariants:

    1. Only records change epochs, members and targets.
    2. ``largest_size`` is the largest number of members that the group has had.

    Used on the event loop's thread only.
    """

    __slots__ = (
        "assignment_epoch",
        "assignment_timestamp_ms",
        "group_epoch",
        "group_id",
        "is_deleted",
        "largest_size",
        "members",
        "metadata_hash",
        "refreshed_epoch",
        "targets",
    )

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.group_epoch = FIRST_EPOCH
        self.metadata_hash = 0
        self.assignment_epoch = FIRST_ASSIGNMENT_EPOCH
        self.assignment_timestamp_ms = UNKNOWN_TIME
        self.members: dict[str, M] = {}
        self.largest_size = 0
        self.targets: dict[str, T] = {}
        self.is_deleted = False
        self.refreshed_epoch: int | None = None

    @property
    def is_empty(self) -> bool:
        return not self.members

    @property
    @abstractmethod
    def state_name(self) -> str:
        """
        The state, as ``maybeUpdateGroupState`` of Kafka's classes computes it.
        """

    @property
    def is_metadata_stale(self) -> bool:
        """
        Whether topics may have changed since the group looked at them last.
        """
        return self.refreshed_epoch is None or self.group_epoch < self.refreshed_epoch

    def request_metadata_refresh(self) -> None:
        """
        Let the next heartbeat look at the topics: one of them has changed.
        """
        self.refreshed_epoch = None

    def may_assign(self, interval_ms: int, now_ms: int) -> bool:
        """
        Whether enough time has passed since the last assignment (KIP-1263).
        """
        last_ms = self.assignment_timestamp_ms
        return last_ms == UNKNOWN_TIME or not interval_ms or now_ms >= last_ms + interval_ms

    def expect_member(self, member_id: str) -> M:
        """
        The member with that id.

        Raises:
            UnknownMemberId: there is none.
        """
        member = self.members.get(member_id)
        if member is None:
            raise UnknownMemberId(f"Member {member_id} is not a member of group {self.group_id}.")
        return member

    def members_in_order(self) -> list[str]:
        """
        The ids of the members in the order of Kafka's ``TimelineHashMap``.
        """
        return timeline_order(self.members, self.largest_size)

    def validate_delete(self) -> None:
        """
        See whether the group may be deleted.

        Raises:
            NonEmptyGroup: it has members.
        """
        if not self.is_empty:
            raise NonEmptyGroup("The group is not empty.")

    # Records

    def apply_target_epoch(self, _key: Any, value: Any) -> None:
        """
        Apply the record that the target assignment of an epoch is complete, or its tombstone.
        """
        if value is None:
            self.assignment_epoch = DELETED_ASSIGNMENT_EPOCH
            self.assignment_timestamp_ms = UNKNOWN_TIME
        else:
            self.assignment_epoch = value.assignment_epoch
            self.assignment_timestamp_ms = value.assignment_timestamp

    def _keep(self, member_id: str, member: M) -> None:
        self.members[member_id] = member
        self.largest_size = max(self.largest_size, len(self.members))

    def __repr__(self) -> str:
        return (
            f"<{type(self).__name__} {self.group_id} {self.state_name} epoch {self.group_epoch}"
            f" members {list(self.members)}>"
        )
