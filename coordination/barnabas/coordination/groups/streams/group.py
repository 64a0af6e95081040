"""
A streams group: the sum of its records (KIP-1071).
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final
from uuid import UUID

from barnabas.coordination.groups.assignors.tasks import NO_TASKS, TasksTuple
from barnabas.coordination.groups.group_type import GroupType
from barnabas.coordination.groups.modern.group import ModernGroup
from barnabas.coordination.groups.modern.offsets import check_since, late_member, validate_fetch
from barnabas.coordination.groups.modern.records import ModernRecord, Role
from barnabas.coordination.groups.streams import records
from barnabas.coordination.groups.streams.configured_topology import ConfiguredTopology
from barnabas.coordination.groups.streams.member import StreamsGroupMember
from barnabas.coordination.groups.streams.task_owners import TaskOwners
from barnabas.coordination.groups.streams.topology import StreamsTopology
from barnabas.protocol.errors import StaleMemberEpoch

UNVALIDATED: Final = -1
"""
The epoch of a topology whose topics are not there.
"""


class StreamsGroup(ModernGroup[StreamsGroupMember, TasksTuple]):
    """
    A streams group (Kafka's class of this name).

    Invariants:

    1. ``owners`` has the tasks that members have, or have to give up, and no others.
    2. What no record has is lost with a restart, and found again by heartbeats: the configured
       topology, the wish to shut down, and the epoch of the endpoints.

    Used on the event loop's thread only.
    """

    type = GroupType.STREAMS
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
        super().__init__(group_id, records)
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
        return frozenset() if self.topology is None else self.topology.required_topics

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
            StaleMemberEpoch: the group has no topology.
            KafkaError: see ``late_member``.
        """
        member = late_member(
            self,
            member_id,
            instance_id,
            epoch,
            version=version,
            is_transactional=is_transactional,
        )
        if member is None:
            return None
        if self.topology is None:
            raise StaleMemberEpoch("Topology is not available for offset commit validation.")
        return TaskCheck(self.topology, member, epoch)

    def validate_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """
        See whether the sender may read committed offsets, see ``modern.offsets``.
        """
        validate_fetch(self, member_id, member_epoch)

    # Records

    def tombstones(self) -> list[ModernRecord]:
        """
        The records that delete the group, in Kafka's order.
        """
        return records.group_tombstones(self.group_id, self.members_in_order())

    def _apply_epoch(self, value: Any) -> None:
        super()._apply_epoch(value)
        if value is not None:
            self.validated_topology_epoch = value.validated_topology_epoch
            self.assignment_configs = records.assignment_configs_of(value)

    def _apply_member(self, member_id: str, value: Any) -> None:
        super()._apply_member(member_id, value)
        if not self.members:
            self.shutdown_requested_by = None

    def _apply_other(self, role: Role, key: Any, value: Any) -> None:
        self.topology = None if value is None else StreamsTopology(value)

    def _count(self, member: StreamsGroupMember) -> None:
        self.owners.add(member)

    def _uncount(self, member: StreamsGroupMember) -> None:
        self.owners.remove(member)


class TaskCheck:
    """
    Decides which offsets a member may commit with an epoch that it has left (KIP-1251).
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
            name = f"{subtopology_id}-{partition}"
            check_since(self._member, self._epoch, since, "Task", name)
