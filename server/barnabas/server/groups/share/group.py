"""
A share group: the sum of its records (KIP-932).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final
from uuid import UUID

from barnabas.protocol.errors import GroupIdNotFound, NonEmptyGroup, UnknownMemberId
from barnabas.protocol.internal_topics.group_records import share as schemas
from barnabas.protocol.structs import replace
from barnabas.server.groups.assignors.java_order.timeline import timeline_order
from barnabas.server.groups.group_type import GroupType
from barnabas.server.groups.modern.epochs import (
    DELETED_ASSIGNMENT_EPOCH,
    FIRST_ASSIGNMENT_EPOCH,
    FIRST_EPOCH,
)
from barnabas.server.groups.modern.records import ModernRecord, Role
from barnabas.server.groups.modern.subscriptions import Subscriptions
from barnabas.server.groups.share.member import (
    LEAVING,
    NOTHING_ASSIGNED,
    Partitions,
    ShareGroupMember,
)
from barnabas.server.groups.share.records import (
    group_tombstones,
    partitions_of,
    states_of,
    with_assignment,
    with_subscription,
)
from barnabas.server.groups.share.state_partitions import NO_STATES, StatePartitions


class ShareGroup:
    """
    A share group (Kafka's class of this name).

    Invariants:

    1. Only ``apply`` changes what its records say.

    Used on the event loop's thread only.
    """

    type: Final = GroupType.SHARE
    listed_protocol_type: Final = "share"
    can_become_classic: Final = False

    __slots__ = (
        "assignment_epoch",
        "assignment_timestamp_ms",
        "group_epoch",
        "group_id",
        "initializing_since_ms",
        "is_deleted",
        "largest_size",
        "members",
        "metadata_hash",
        "refreshed_epoch",
        "states",
        "subscriptions",
        "targets",
    )

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.group_epoch = FIRST_EPOCH
        self.metadata_hash = 0
        self.assignment_epoch = FIRST_ASSIGNMENT_EPOCH
        self.assignment_timestamp_ms = 0
        self.members: dict[str, ShareGroupMember] = {}
        self.largest_size = 0
        self.targets: dict[str, Partitions] = {}
        self.subscriptions = Subscriptions()
        self.states: StatePartitions | None = None
        self.initializing_since_ms: int | None = None
        self.is_deleted = False
        self.refreshed_epoch: int | None = None

    # State

    @property
    def is_empty(self) -> bool:
        return not self.members

    @property
    def state_name(self) -> str:
        """
        The state, as ``maybeUpdateGroupState`` of Kafka's class computes it.
        """
        return "Stable" if self.members else "Empty"

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
        assigned: dict[UUID, set[int]] = {}
        for target in self.targets.values():
            for topic_id, partitions in target.items():
                assigned.setdefault(topic_id, set()).update(partitions)
        return bool(self.members) and any(
            topic.name in self.subscriptions and assigned.get(topic_id, set()) != topic.partitions
            for topic_id, topic in self.known_states.initialized.items()
        )

    def expect_member(self, member_id: str) -> ShareGroupMember:
        """
        The member with that id.

        Raises:
            UnknownMemberId: there is none.
        """
        member = self.members.get(member_id)
        if member is None:
            raise UnknownMemberId(f"Member {member_id} is not a member of group {self.group_id}.")
        return member

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

    def validate_delete(self) -> None:
        """
        See whether the group may be deleted.

        Raises:
            NonEmptyGroup: it has members.
        """
        if not self.is_empty:
            raise NonEmptyGroup("The group is not empty.")

    def _no_offsets(self) -> GroupIdNotFound:
        return GroupIdNotFound(f"Group {self.group_id} is not a consumer group.")

    # Records

    def tombstones(self) -> list[ModernRecord]:
        """
        The records that delete the group, in Kafka's order.
        """
        return group_tombstones(self.group_id, timeline_order(self.members, self.largest_size))

    def apply(self, record: ModernRecord) -> None:
        """
        Apply a record, or a tombstone. A tombstone of what does not exist has no effect.
        """
        _APPLY[record.role](self, record.key, record.value)

    def _apply_epoch(self, _key: Any, value: schemas.ShareGroupMetadataValue | None) -> None:
        if value is None:
            self.is_deleted = True
        else:
            self.group_epoch = value.epoch
            self.metadata_hash = value.metadata_hash

    def _apply_member(
        self,
        key: schemas.ShareGroupMemberMetadataKey,
        value: schemas.ShareGroupMemberMetadataValue | None,
    ) -> None:
        before = self.members.get(key.member_id)
        if value is not None:
            known = before or ShareGroupMember(member_id=key.member_id)
            self._put(with_subscription(known, value))
        elif before is not None:
            self.subscriptions.remove(before)
            del self.members[key.member_id]

    def _apply_current(
        self,
        key: schemas.ShareGroupCurrentMemberAssignmentKey,
        value: schemas.ShareGroupCurrentMemberAssignmentValue | None,
    ) -> None:
        before = self.members.get(key.member_id)
        if value is not None:
            known = before or ShareGroupMember(member_id=key.member_id)
            self._put(with_assignment(known, value))
        elif before is not None:
            self._put(
                replace(
                    before,
                    member_epoch=LEAVING,
                    previous_member_epoch=LEAVING,
                    assigned=NOTHING_ASSIGNED,
                )
            )

    def _apply_target(
        self,
        key: schemas.ShareGroupTargetAssignmentMemberKey,
        value: schemas.ShareGroupTargetAssignmentMemberValue | None,
    ) -> None:
        if value is None:
            self.targets.pop(key.member_id, None)
        else:
            self.targets[key.member_id] = partitions_of(value.topic_partitions)

    def _apply_target_epoch(
        self, _key: Any, value: schemas.ShareGroupTargetAssignmentMetadataValue | None
    ) -> None:
        if value is None:
            self.assignment_epoch, self.assignment_timestamp_ms = DELETED_ASSIGNMENT_EPOCH, 0
        else:
            self.assignment_epoch = value.assignment_epoch
            self.assignment_timestamp_ms = value.assignment_timestamp

    def _apply_states(
        self, _key: Any, value: schemas.ShareGroupStatePartitionMetadataValue | None
    ) -> None:
        self.states = None if value is None else states_of(value)
        self.initializing_since_ms = None

    def _put(self, member: ShareGroupMember) -> None:
        before = self.members.get(member.member_id)
        if before is not None:
            self.subscriptions.remove(before)
        self.members[member.member_id] = member
        self.largest_size = max(self.largest_size, len(self.members))
        self.subscriptions.add(member)

    def __repr__(self) -> str:
        return (
            f"<ShareGroup {self.group_id} {self.state_name} epoch {self.group_epoch}"
            f" members {list(self.members)}>"
        )


_APPLY: Final[Mapping[Role, Callable[[ShareGroup, Any, Any], None]]] = {
    Role.EPOCH: ShareGroup._apply_epoch,
    Role.MEMBER: ShareGroup._apply_member,
    Role.TARGET_EPOCH: ShareGroup._apply_target_epoch,
    Role.TARGET: ShareGroup._apply_target,
    Role.CURRENT: ShareGroup._apply_current,
    Role.OTHER: ShareGroup._apply_states,
}
