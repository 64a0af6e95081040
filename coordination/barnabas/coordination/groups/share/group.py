"""
A share group: the sum of its records (KIP-932).
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

from barnabas.coordination.groups.group_type import GroupType
from barnabas.coordination.groups.modern.group import ModernGroup
from barnabas.coordination.groups.modern.records import ModernRecord, Role
from barnabas.coordination.groups.modern.subscriptions import Subscriptions
from barnabas.coordination.groups.share import records
from barnabas.coordination.groups.share.member import AssignedPartitions, ShareGroupMember
from barnabas.coordination.groups.share.state_partitions import NO_STATES, StatePartitions
from barnabas.protocol.errors import GroupIdNotFound


class ShareGroup(ModernGroup[ShareGroupMember, AssignedPartitions]):
    """
    A share group (Kafka's class of this name).

    Invariants:

    1. ``all_initialized_at`` and the answer of ``has_unassigned_partitions`` are kept until the
       next record.

    Used on the event loop's thread only.
    """

    type = GroupType.SHARE
    listed_protocol_type: Final = "share"
    can_become_classic: Final = False

    __slots__ = (
        "_has_unassigned_partitions",
        "all_initialized_at",
        "initializing_since_ms",
        "states",
        "subscriptions",
    )

    def __init__(self, group_id: str) -> None:
        super().__init__(group_id, records)
        self.subscriptions = Subscriptions()
        self.states: StatePartitions | None = None
        self.initializing_since_ms: int | None = None
        self.all_initialized_at: int | None = None
        """The version of the metadata with which every subscribed partition has its state."""
        self._has_unassigned_partitions: bool | None = None

    # State

    @property
    def state_name(self) -> str:
        """
        The state, as ``maybeUpdateGroupState`` of Kafka's class computes it.
        """
        return "Stable" if self.members else "Empty"

    @property
    def subscribed_topics(self) -> set[str]:
        """
        The names of the topics that members subscribe to.
        """
        return self.subscriptions.topics

    def is_subscribed_to(self, topic: str) -> bool:
        """
        Whether a member subscribes to the topic.
        """
        return topic in self.subscriptions

    @property
    def known_states(self) -> StatePartitions:
        """
        The partitions whose states the group has; none if it has never had any.
        """
        return NO_STATES if self.states is None else self.states

    @property
    def has_unassigned_partitions(self) -> bool:
        """
        Whether members subscribe to a topic whose initialized partitions are not all assigned
        (Kafka's ``initializedAssignmentPending``).
        """
        if self._has_unassigned_partitions is None:
            self._has_unassigned_partitions = self._find_unassigned_partitions()
        return self._has_unassigned_partitions

    def _find_unassigned_partitions(self) -> bool:
        assigned: dict[UUID, set[int]] = {}
        for target in self.targets.values():
            for topic_id, partitions in target.items():
                assigned.setdefault(topic_id, set()).update(partitions)
        return bool(self.members) and any(
            topic.name in self.subscriptions and assigned.get(topic_id, set()) != topic.partitions
            for topic_id, topic in self.known_states.initialized.items()
        )

    # Validation of requests

    def validate_commit(
        self,
        member_id: str,
        instance_id: str | None,
        epoch: int,
        *,
        version: int,
        is_transactional: bool = False,
    ) -> None:
        """
        Raises:
            GroupIdNotFound: a share group has no committed offsets.
        """
        raise self._no_offsets()

    def validate_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """
        Raises:
            GroupIdNotFound: a share group has no committed offsets.
        """
        raise self._no_offsets()

    def validate_offset_delete(self) -> None:
        """
        Raises:
            GroupIdNotFound: a share group has no committed offsets.
        """
        raise self._no_offsets()

    def _no_offsets(self) -> GroupIdNotFound:
        return GroupIdNotFound(f"Group {self.group_id} is not a consumer group.")

    # Records

    def tombstones(self) -> list[ModernRecord]:
        """
        The records that delete the group, in Kafka's order.
        """
        return records.group_tombstones(self.group_id, self.members_in_order())

    def apply(self, record: ModernRecord) -> None:
        """
        Apply a record, or a tombstone. A tombstone of what does not exist has no effect.
        """
        super().apply(record)
        self._has_unassigned_partitions = None
        self.all_initialized_at = None

    def _apply_other(self, role: Role, key: Any, value: Any) -> None:
        self.states = None if value is None else records.states_of(value)
        self.initializing_since_ms = None

    def _count(self, member: ShareGroupMember) -> None:
        self.subscriptions.add(member)

    def _uncount(self, member: ShareGroupMember) -> None:
        self.subscriptions.remove(member)
