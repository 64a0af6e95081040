"""
A streams group: the sum of its records (KIP-1071).
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final
from uuid import UUID

from barnabas.protocol.errors import (
    StaleMemberEpoch,
    UnsupportedVersion,
)
from barnabas.protocol.internal_topics.group_records import streams as schemas
from barnabas.protocol.structs import replace
from barnabas.server.groups.assignors.tasks import NO_TASKS, TasksTuple
from barnabas.server.groups.group_type import GroupType
from barnabas.server.groups.modern.group import OFFSETS_OF_MEMBERS_SINCE, ModernGroup
from barnabas.server.groups.modern.records import ModernRecord, Role
from barnabas.server.groups.streams.configured_topology import ConfiguredTopology
from barnabas.server.groups.streams.member import LEAVING, NO_ASSIGNED_TASKS, StreamsGroupMember
from barnabas.server.groups.streams.records import (
    assignment_configs_of,
    group_tombstones,
    target_of,
    with_assignment,
    with_metadata,
)
from barnabas.server.groups.streams.task_owners import TaskOwners
from barnabas.server.groups.streams.topology import StreamsTopology

UNVALIDATED: Final = -1
"""
The epoch of a topology whose topics are not there.
"""


class StreamsGroup(ModernGroup[StreamsGroupMember, TasksTuple]):
    """
    A streams group (Kafka's class of this name).

    Invariants:

    1. Only ``apply`` changes what its records say.
    2. ``owners`` has the tasks that members have, or have to give up, and no others.
    3. What no record has is lost with a restart, and found again by heartbeats: the configured
       topology, the wish to shut down, and the epoch of the endpoints.

    Used on the event loop's thread only.
    """

    type: Final = GroupType.STREAMS
    listed_protocol_type: Final = GroupType.STREAMS.value

    __slots__ = (
        "assignment_configs",
        "configured_topology",
        "endpoint_information_epoch",
        "owners",
        "shutdown_requested_by",
        "topology",
        "validated_topology_epoch",
    )

    def __init__(self, group_id: str) -> None:
        super().__init__(group_id)
        self.validated_topology_epoch = 0
        self.assignment_configs: Mapping[str, str] = {}
        self.owners = TaskOwners()
        self.topology: StreamsTopology | None = None
        self.configured_topology: ConfiguredTopology | None = None
        self.shutdown_requested_by: str | None = None
        self.endpoint_information_epoch = 0

    # State

    @property
    def state_name(self) -> str:
        """
        The state, as ``maybeUpdateGroupState`` of Kafka's class computes it.
        """
        if not self.members:
            return "Empty"
        if self.topology is None or self.topology.epoch != self.validated_topology_epoch:
            return "NotReady"
        if self.group_epoch > self.assignment_epoch:
            return "Assigning"
        if all(each.is_reconciled_to(self.assignment_epoch) for each in self.members.values()):
            return "Stable"
        return "Reconciling"

    def request_shutdown(self, member_id: str) -> None:
        """
        Let all members be told to shut down, until the group is empty. The first wish counts.
        """
        if self.shutdown_requested_by is None:
            self.shutdown_requested_by = member_id

    @property
    def can_become_classic(self) -> bool:
        """
        Whether a member of the classic protocol may join, and make this a classic group.
        """
        return self.is_empty

    def target_of(self, member_id: str) -> TasksTuple:
        """
        The target assignment of a member.
        """
        return self.targets.get(member_id, NO_TASKS)

    @property
    def subscribed_topics(self) -> frozenset[str]:
        """
        The names of the topics that the topology needs.
        """
        return frozenset() if self.topology is None else frozenset(self.topology.required_topics)

    def is_subscribed_to(self, topic: str) -> bool:
        """
        Whether the program reads the topic.
        """
        return (
            bool(self.members)
            and self.topology is not None
            and topic in self.topology.source_topics
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
    ) -> TaskCheck | None:
        """
        See whether the sender may commit offsets.

        Returns:
            What each partition has to pass; None if that is nothing.

        Raises:
            UnknownMemberId: the group has members, and the sender is not one of them.
            UnsupportedVersion: a member sends a version that is older than its protocol.
            StaleMemberEpoch: the member has not reached that epoch.
        """
        if epoch < 0 and self.is_empty:
            return None
        if is_transactional and epoch == -1 and not member_id and instance_id is None:
            return None
        member = self.expect_member(member_id)
        if not is_transactional and version < OFFSETS_OF_MEMBERS_SINCE:
            raise UnsupportedVersion(
                "OffsetCommit version 9 or above must be used by members using the streams group"
                " protocol"
            )
        if epoch == member.member_epoch:
            return None
        if epoch > member.member_epoch:
            raise StaleMemberEpoch(
                f"Received member epoch {epoch} is newer than current member epoch"
                f" {member.member_epoch}."
            )
        if self.topology is None:
            raise StaleMemberEpoch("Topology is not available for offset commit validation.")
        return TaskCheck(self.topology, member, epoch)

    def validate_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """
        See whether the sender may read committed offsets.

        Raises:
            UnknownMemberId: the sender names a member that the group does not have.
            StaleMemberEpoch: the member's epoch is another one.
        """
        if member_id is None and member_epoch < 0:
            return
        member = self.expect_member(member_id or "")
        if member_epoch != member.member_epoch:
            raise StaleMemberEpoch(
                f"The received member epoch {member_epoch} does not match the expected member epoch"
                f" {member.member_epoch}."
            )

    def validate_offset_delete(self) -> None:
        """
        Do nothing: single offsets may always be deleted.
        """

    # Records

    def tombstones(self) -> list[ModernRecord]:
        """
        The records that delete the group, in Kafka's order.
        """
        return group_tombstones(self.group_id, self.members_in_order())

    def apply(self, record: ModernRecord) -> None:
        """
        Apply a record, or a tombstone. A tombstone of what does not exist has no effect.
        """
        _APPLY[record.role](self, record.key, record.value)

    def _apply_epoch(self, _key: Any, value: schemas.StreamsGroupMetadataValue | None) -> None:
        if value is None:
            self.is_deleted = True
            return
        self.group_epoch = value.epoch
        self.metadata_hash = value.metadata_hash
        self.validated_topology_epoch = value.validated_topology_epoch
        self.assignment_configs = assignment_configs_of(value)

    def _apply_topology(self, _key: Any, value: schemas.StreamsGroupTopologyValue | None) -> None:
        self.topology = None if value is None else StreamsTopology(value)

    def _apply_target(
        self,
        key: schemas.StreamsGroupTargetAssignmentMemberKey,
        value: schemas.StreamsGroupTargetAssignmentMemberValue | None,
    ) -> None:
        if value is None:
            self.targets.pop(key.member_id, None)
        else:
            self.targets[key.member_id] = target_of(value)

    def _apply_member(
        self,
        key: schemas.StreamsGroupMemberMetadataKey,
        value: schemas.StreamsGroupMemberMetadataValue | None,
    ) -> None:
        member_id = key.member_id
        before = self.members.get(member_id)
        if value is not None:
            self._put(with_metadata(before or StreamsGroupMember(member_id=member_id), value))
        elif before is not None:
            self._remove(before)

    def _apply_current(
        self,
        key: schemas.StreamsGroupCurrentMemberAssignmentKey,
        value: schemas.StreamsGroupCurrentMemberAssignmentValue | None,
    ) -> None:
        member_id = key.member_id
        before = self.members.get(member_id)
        if value is not None:
            self._put(with_assignment(before or StreamsGroupMember(member_id=member_id), value))
        elif before is not None:
            self._put(
                replace(
                    before,
                    member_epoch=LEAVING,
                    previous_member_epoch=LEAVING,
                    assigned=NO_ASSIGNED_TASKS,
                    pending_revocation=NO_ASSIGNED_TASKS,
                )
            )

    def _put(self, member: StreamsGroupMember) -> None:
        before = self.members.get(member.member_id)
        if before is not None:
            self.owners.remove(before)
        self._keep(member.member_id, member)
        self.owners.add(member)

    def _remove(self, member: StreamsGroupMember) -> None:
        self.owners.remove(member)
        del self.members[member.member_id]
        if not self.members:
            self.shutdown_requested_by = None


_APPLY: Final[Mapping[Role, Callable[[StreamsGroup, Any, Any], None]]] = {
    Role.EPOCH: StreamsGroup._apply_epoch,
    Role.MEMBER: StreamsGroup._apply_member,
    Role.TARGET_EPOCH: StreamsGroup.apply_target_epoch,
    Role.TARGET: StreamsGroup._apply_target,
    Role.CURRENT: StreamsGroup._apply_current,
    Role.TOPOLOGY: StreamsGroup._apply_topology,
}


class TaskCheck:
    """
    Decides which offsets a member may commit with an epoch that it has left (KIP-1251).

    Its request may have been on its way while the epoch changed. What it already had at that epoch
    is still its own.
    """

    __slots__ = ("_epoch", "_member", "_topology")

    def __init__(self, topology: StreamsTopology, member: StreamsGroupMember, epoch: int) -> None:
        self._topology = topology
        self._member = member
        self._epoch = epoch

    def check_all(self, partitions: Iterable[tuple[str, UUID, int]]) -> None:
        """
        See whether the member had the tasks of these partitions at its epoch, and has them still.

        Raises:
            StaleMemberEpoch: it has not.
        """
        for topic, _, partition in partitions:
            subtopology_id = self._topology.source_topics.get(topic)
            if subtopology_id is None:
                raise StaleMemberEpoch(f"Topic {topic} is not in the topology.")
            since = self._member.epoch_of(subtopology_id, partition)
            if since is None:
                raise StaleMemberEpoch(
                    f"Task {subtopology_id}-{partition} is not assigned or pending revocation for"
                    " member."
                )
            if self._epoch < since:
                raise StaleMemberEpoch(
                    f"Received member epoch {self._epoch} is older than assignment epoch {since}"
                    f" for task {subtopology_id}-{partition}."
                )
