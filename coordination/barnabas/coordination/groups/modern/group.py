"""
What groups of the later protocols have in common: epochs, members and their targets.

::

    a change of members or topics     the assignor has run       members have what they should
    group_epoch += 1            -->   assignment_epoch follows   -->   each member_epoch follows
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Final, Generic, TypeVar

from barnabas.coordination.groups.assignors.java_order.timeline import timeline_order
from barnabas.coordination.groups.group_type import GroupType
from barnabas.coordination.groups.modern.member import JOINING
from barnabas.coordination.groups.modern.records import GroupRecords, ModernRecord, Role
from barnabas.protocol.errors import GroupMaxSizeReached, NonEmptyGroup, UnknownMemberId

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

M = TypeVar("M")
T = TypeVar("T")


class ModernGroup(ABC, Generic[M, T]):
    """
    A group with members of type *M*, which have targets of type *T* (Kafka's class of this name,
    and the same parts of its ``StreamsGroup``).

    Invariants:

    1. Only ``apply`` changes what records say: epochs, members, targets.
    2. ``largest_size`` is the largest number of members that the group has had.

    Used on the event loop's thread only.
    """

    type: ClassVar[GroupType]

    __slots__ = (
        "assignment_epoch",
        "assignment_timestamp_ms",
        "group_epoch",
        "group_id",
        "is_deleted",
        "largest_size",
        "members",
        "metadata_hash",
        "records",
        "refreshed_epoch",
        "targets",
    )

    def __init__(self, group_id: str, records: GroupRecords[M, T]) -> None:
        """
        Args:
            records: those of its protocol.
        """
        self.group_id = group_id
        self.records = records
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

    def sender(self, member_id: str, epoch: int) -> M:
        """
        The member that sends a heartbeat with that epoch: a new one if it joins.

        Raises:
            UnknownMemberId: it is no member, and does not join.
        """
        member = self.members.get(member_id)
        if member is None and epoch == JOINING:
            return self.records.new_member(member_id=member_id)
        return self.expect_member(member_id) if member is None else member

    def check_size(self, most: int, member_id: str | None = None) -> None:
        """
        See whether there is room for a member, which may be in the group already.

        Raises:
            GroupMaxSizeReached: there is none.
        """
        if len(self.members) >= most and member_id not in self.members:
            raise GroupMaxSizeReached(
                f"The {self.type.value} group has reached its maximum capacity of {most} members."
            )

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

    def validate_offset_delete(self) -> None:
        """
        See whether single offsets may be deleted: they always may.
        """

    # Records

    def apply(self, record: ModernRecord) -> None:
        """
        Apply a record, or a tombstone. A tombstone of what does not exist has no effect.
        """
        role, key, value = record.role, record.key, record.value
        if role is Role.CURRENT:
            self._apply_current(key.member_id, value)
        elif role is Role.TARGET:
            self._apply_target(key.member_id, value)
        elif role is Role.MEMBER:
            self._apply_member(key.member_id, value)
        elif role is Role.TARGET_EPOCH:
            self._apply_target_epoch(value)
        elif role is Role.EPOCH:
            self._apply_epoch(value)
        else:
            self._apply_other(role, key, value)

    @abstractmethod
    def _apply_other(self, role: Role, key: Any, value: Any) -> None:
        """
        Apply a record of which not all protocols have the like.
        """

    def _apply_epoch(self, value: Any) -> None:
        if value is None:
            self.is_deleted = True
        else:
            self.group_epoch = value.epoch
            self.metadata_hash = value.metadata_hash

    def _apply_member(self, member_id: str, value: Any) -> None:
        before = self.members.get(member_id)
        if value is not None:
            known = before or self.records.new_member(member_id=member_id)
            self._put(member_id, self.records.with_subscription(known, value))
        elif before is not None:
            self._uncount(before)
            del self.members[member_id]

    def _apply_current(self, member_id: str, value: Any) -> None:
        before = self.members.get(member_id)
        if value is not None:
            known = before or self.records.new_member(member_id=member_id)
            self._put(member_id, self.records.with_assignment(known, value))
        elif before is not None:
            self._put(member_id, self.records.without_assignment(before))

    def _apply_target(self, member_id: str, value: Any) -> None:
        if value is None:
            self.targets.pop(member_id, None)
        else:
            self.targets[member_id] = self.records.target_of(value)

    def _apply_target_epoch(self, value: Any) -> None:
        if value is None:
            self.assignment_epoch = DELETED_ASSIGNMENT_EPOCH
            self.assignment_timestamp_ms = UNKNOWN_TIME
        else:
            self.assignment_epoch = value.assignment_epoch
            self.assignment_timestamp_ms = value.assignment_timestamp

    def _put(self, member_id: str, member: M) -> None:
        before = self.members.get(member_id)
        if before is not None:
            self._uncount(before)
        self.members[member_id] = member
        self.largest_size = max(self.largest_size, len(self.members))
        self._count(member)

    @abstractmethod
    def _count(self, member: M) -> None:
        """
        Add what a member subscribes to, and what it has, to what the group knows of all.
        """

    @abstractmethod
    def _uncount(self, member: M) -> None:
        """
        Take it away again.
        """

    def __repr__(self) -> str:
        return (
            f"<{type(self).__name__} {self.group_id} {self.state_name} epoch {self.group_epoch}"
            f" members {list(self.members)}>"
        )
