"""
A partition of the group coordinator whose groups share partitions (KIP-932).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any
from uuid import UUID

from barnabas.coordination.groups.caller import Caller
from barnabas.coordination.groups.shard_state import ShardState
from barnabas.coordination.groups.share.group import ShareGroup
from barnabas.coordination.groups.share.heartbeats import Initialization, check_heartbeat
from barnabas.coordination.groups.share.member import ShareGroupMember
from barnabas.coordination.groups.share.records import state_partitions_record
from barnabas.coordination.groups.share.state_partitions import StatePartitions
from barnabas.protocol.messages.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)
from tests.support.coordination import GROUP
from tests.support.modern_groups import ModernCoordination

CALLER = Caller(1, "client", "/127.0.0.1")


class ShareCoordination(ModernCoordination):
    """
    A coordinator whose share groups have their states at once, unless ``is_slow_to_initialize``.

    Targets are computed at once, unless ``interval_ms`` says otherwise.
    """

    kind = "share"

    def __init__(
        self, topics: Mapping[str, int] | None = None, *, interval_ms: int = 0, **options: Any
    ) -> None:
        super().__init__(topics, **options)
        self.set_config(share_assignment_interval_ms=interval_ms)
        self.state.loaded(self.now_ms)
        self.is_slow_to_initialize = False
        self.asked: list[Initialization] = []

    # Requests

    def beat(
        self,
        member_id: str,
        epoch: int,
        *,
        topics: Iterable[str] | None = None,
        rack_id: str | None = None,
        group_id: str = GROUP,
        caller: Caller = CALLER,
    ) -> ShareGroupHeartbeatResponse:
        """
        Send a heartbeat; a refused one raises the error.
        """
        request = ShareGroupHeartbeatRequest(
            group_id=group_id,
            member_id=member_id,
            member_epoch=epoch,
            rack_id=rack_id,
            subscribed_topic_names=None if topics is None else list(topics),
        )
        check_heartbeat(request)
        result, response, wanted = self.state.shares.heartbeat(request, caller, self.now_ms)
        self.write(result)
        if wanted is not None:
            self.asked.append(wanted)
            if not self.is_slow_to_initialize:
                self.initialized(wanted)
        return response

    def initialized(self, wanted: Initialization) -> None:
        """
        Tell the coordinator that states are initialized.
        """
        self.change_states(self.shares.known_states.completed(wanted.topics))

    def change_states(self, states: StatePartitions) -> None:
        self.write_records([state_partitions_record(GROUP, states)])

    def enter(
        self, member_id: str, topics: Iterable[str], **facts: Any
    ) -> ShareGroupHeartbeatResponse:
        """
        Join with epoch 0.
        """
        return self.beat(member_id, 0, topics=topics, **facts)

    def arrive(self, member_id: str) -> ShareGroupHeartbeatResponse:
        return self.enter(member_id, ["t"])

    def go(self, member_id: str) -> ShareGroupHeartbeatResponse:
        """
        Leave.
        """
        return self.beat(member_id, -1)

    def report(self, member_id: str) -> ShareGroupHeartbeatResponse:
        """
        A heartbeat that says nothing new.
        """
        return self.beat(member_id, self.member(member_id).member_epoch)

    # What came of it

    @property
    def shares(self) -> ShareGroup:
        group = self.state.groups.get(GROUP)
        assert isinstance(group, ShareGroup), group
        return group

    def member(self, member_id: str) -> ShareGroupMember:
        return self.shares.members[member_id]

    def assigned(self, member_id: str) -> dict[UUID, list[int]]:
        return {each: sorted(found) for each, found in self.member(member_id).assigned.items()}


def share_facts(state: ShardState) -> Mapping[str, Mapping[str, Any]]:
    """
    All of the share groups of a state that must survive a restart.
    """
    return {
        group.group_id: {
            "epochs": (group.group_epoch, group.metadata_hash, group.assignment_epoch),
            "members": dict(group.members),
            "targets": {m: dict(target) for m, target in group.targets.items()},
            "names": dict(group.subscriptions.names),
            "states": group.states,
        }
        for group in state.groups
        if isinstance(group, ShareGroup)
    }
