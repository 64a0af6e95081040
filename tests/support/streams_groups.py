"""
A partition of the group coordinator whose groups use the streams protocol (KIP-1071).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from barnabas.coordination.groups.caller import Caller
from barnabas.coordination.groups.shard_state import ShardState
from barnabas.coordination.groups.streams.group import StreamsGroup
from barnabas.coordination.groups.streams.heartbeats import check_heartbeat
from barnabas.coordination.groups.streams.member import StreamsGroupMember
from barnabas.protocol.messages.create_topics import CreatableTopic
from barnabas.protocol.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
    TaskIds,
    Topology,
)
from tests.support.coordination import GROUP
from tests.support.modern_groups import ModernCoordination
from tests.support.streams_programs import READER

Owned: TypeAlias = Mapping[str, Iterable[int]]

REBALANCE_TIMEOUT_MS = 60_000
CALLER = Caller(0, "client", "/127.0.0.1")


class StreamsCoordination(ModernCoordination):
    """
    A coordinator that computes targets at once, unless the group's options say otherwise.
    """

    kind = "streams"

    def __init__(
        self,
        topics: Mapping[str, int] | None = None,
        *,
        group: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(topics, **options)
        self.missing: Mapping[str, CreatableTopic] = {}
        self.set_options(**group or {})
        self.state.loaded(self.now_ms)

    def set_options(self, **options: Any) -> None:
        """
        Set options of the group.
        """
        given: dict[str, Any] = {
            "streams_assignment_interval_ms": 0,
            "streams_initial_rebalance_delay_ms": 0,
        }
        self.set_config(**given | options)

    # Topics

    def create_missing(self) -> None:
        """
        Create the internal topics that the last heartbeat found missing.
        """
        for topic in self.missing.values():
            self.create(topic.name, topic.num_partitions)

    # Requests

    def beat(
        self,
        member_id: str,
        epoch: int,
        *,
        active: Owned | None = None,
        standby: Owned | None = None,
        caller: Caller = CALLER,
        **facts: Any,
    ) -> StreamsGroupHeartbeatResponse:
        """
        Send a heartbeat; a refused one raises the error.
        """
        is_said = active is not None or standby is not None
        given: dict[str, Any] = {
            "group_id": GROUP,
            "member_id": member_id,
            "member_epoch": epoch,
            "endpoint_information_epoch": 0,
            "active_tasks": task_ids(active or {}) if is_said else None,
            "standby_tasks": task_ids(standby or {}) if is_said else None,
            "warmup_tasks": [] if is_said else None,
        }
        request = StreamsGroupHeartbeatRequest(**given | facts)
        check_heartbeat(request)
        heartbeats = self.state.streams.heartbeats
        result, response, self.missing = heartbeats.heartbeat(request, caller, self.now_ms)
        self.write(result)
        return response

    def enter(
        self,
        member_id: str,
        program: Topology = READER,
        *,
        process: str | None = None,
        **facts: Any,
    ) -> StreamsGroupHeartbeatResponse:
        """
        Join with epoch 0, in a process of its own by default.
        """
        given: dict[str, Any] = {
            "topology": program,
            "rebalance_timeout_ms": REBALANCE_TIMEOUT_MS,
            "process_id": f"process of {member_id}" if process is None else process,
            "active": {},
        }
        return self.beat(member_id, 0, **given | facts)

    def go(self, member_id: str, **facts: Any) -> StreamsGroupHeartbeatResponse:
        """
        Leave.
        """
        return self.beat(member_id, -1, **facts)

    def arrive(self, member_id: str) -> StreamsGroupHeartbeatResponse:
        return self.enter(member_id)

    def report(self, member_id: str) -> StreamsGroupHeartbeatResponse:
        """
        A heartbeat of a member that has done as it was told.
        """
        member = self.member(member_id)
        return self.beat(
            member_id,
            member.member_epoch,
            active=member.assigned.active,
            standby=member.assigned.standby,
        )

    # What came of it

    @property
    def streams(self) -> StreamsGroup:
        group = self.state.groups.get(GROUP)
        assert isinstance(group, StreamsGroup), group
        return group

    def member(self, member_id: str) -> StreamsGroupMember:
        return self.streams.members[member_id]

    def active(self, member_id: str) -> dict[str, list[int]]:
        return as_lists(self.member(member_id).assigned.active)

    def standby(self, member_id: str) -> dict[str, list[int]]:
        return as_lists(self.member(member_id).assigned.standby)


def task_ids(tasks: Owned) -> list[TaskIds]:
    return [
        TaskIds(subtopology_id=number, partitions=sorted(partitions))
        for number, partitions in tasks.items()
    ]


def as_lists(tasks: Owned) -> dict[str, list[int]]:
    return {number: sorted(tasks[number]) for number in sorted(tasks)}


def streams_facts(state: ShardState) -> dict[str, Any]:
    """
    All of the streams groups that must survive a restart.
    """
    return {
        group.group_id: (
            group.state_name,
            group.group_epoch,
            group.metadata_hash,
            group.validated_topology_epoch,
            group.assignment_configs,
            group.assignment_epoch,
            group.assignment_timestamp_ms,
            group.topology,
            {member_id: _plain(member) for member_id, member in group.members.items()},
            {
                member_id: tuple(map(as_lists, group.target_of(member_id)))
                for member_id in group.members
            },
            (group.owners.active, dict(group.owners.standby), dict(group.owners.warmup)),
        )
        for group in state.groups
        if isinstance(group, StreamsGroup)
    }


def _plain(member: StreamsGroupMember) -> Any:
    return (
        member.member_epoch,
        member.previous_member_epoch,
        member.state,
        member.process_id,
        member.topology_epoch,
        member.rebalance_timeout_ms,
        member.user_endpoint,
        dict(member.client_tags),
        member.assigned,
        member.pending_revocation,
    )


def statuses(response: StreamsGroupHeartbeatResponse) -> list[int]:
    return [each.status_code for each in response.status or ()]
