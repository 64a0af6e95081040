"""
SyncGroup, Heartbeat and LeaveGroup, as a classic group answers them.

Follows Kafka's ``GroupMetadataManager``: ``classicGroupSync``, ``-Heartbeat`` and ``-Leave``.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from barnabas.coordination.coordinator_runtime.memory import MemoryBudget
from barnabas.coordination.coordinator_runtime.result import NOTHING, CoordinatorResult
from barnabas.coordination.groups.answers import NO_MEMBER_ID, sync_error
from barnabas.coordination.groups.classic.group import ClassicGroup
from barnabas.coordination.groups.classic.member import NO_ASSIGNMENT, SyncReply
from barnabas.coordination.groups.classic.rebalance import Rebalance
from barnabas.coordination.groups.classic.state import GroupState
from barnabas.coordination.groups.groups import Groups
from barnabas.coordination.groups.persistence import group_record
from barnabas.coordination.groups.records import GroupResult
from barnabas.coordination.steps import checkpoint, map_in_turns
from barnabas.protocol.codec.schema import replace
from barnabas.protocol.errors import ErrorCode, KafkaError, RebalanceInProgress, UnknownMemberId
from barnabas.protocol.messages.heartbeat import HeartbeatRequest
from barnabas.protocol.messages.leave_group import (
    LeaveGroupResponse,
    MemberIdentity,
    MemberResponse,
)
from barnabas.protocol.messages.sync_group import SyncGroupRequest

log = logging.getLogger(__name__)
S = GroupState


class Membership:
    """
    Handles SyncGroup, Heartbeat and LeaveGroup for the groups of one partition.
    """

    def __init__(self, groups: Groups, rebalance: Rebalance, memory: MemoryBudget) -> None:
        self._groups = groups
        self._rebalance = rebalance
        self._memory = memory

    # SyncGroup

    def sync(self, request: SyncGroupRequest, reply: SyncReply, now_ms: int) -> GroupResult:
        """
        Take the assignment from the leader, and answer each member with its own part. The reply is
        called at once, or when the leader's assignment is committed.
        """
        group = self._groups.get_classic(request.group_id)
        error = _reason_not_to_sync(group, request)
        if error is not ErrorCode.NONE:
            reply(sync_error(error))
            return NOTHING
        assert group is not None
        member = group.members[request.member_id]
        if group.state is S.STABLE:
            self._rebalance.synced(group, member.member_id)
            reply(Rebalance.assigned(group, member))
            return NOTHING
        assert group.state is S.COMPLETING_REBALANCE, group
        is_leader = group.is_leader(member.member_id)
        size = sum(len(each.assignment) for each in request.assignments) if is_leader else 0
        if not self._memory.has_room(size, group.held_assignment):
            reply(sync_error(ErrorCode.COORDINATOR_NOT_AVAILABLE))
            return NOTHING
        group.park_sync(member, reply)
        self._rebalance.synced(group, member.member_id)
        if not is_leader:
            return NOTHING
        group.held_assignment = self._memory.hold(size)
        assignment = {a.member_id: bytes(a.assignment) for a in request.assignments}
        return self._persist(group, assignment)

    def _persist(self, group: ClassicGroup, assignment: dict[str, bytes]) -> GroupResult:
        """
        Write the leader's assignment; a member that is missing in it gets an empty one.
        """
        assignment = {
            member_id: assignment.get(member_id, NO_ASSIGNMENT) for member_id in group.members
        }
        generation_id = group.generation_id

        def written(error: ErrorCode | None, now_ms: int) -> None:
            if group.state is not S.COMPLETING_REBALANCE or group.generation_id != generation_id:
                return  # The members have changed meanwhile, and all of them join again.
            if error is None:
                self._rebalance.assign(group, assignment, now_ms)
                return
            self._rebalance.withdraw_assignment(group, error)
            changes = self._rebalance.begin(group, f"the assignment: {error.name}", now_ms)
            assert changes is NOTHING, "a round of joins has just begun"

        return CoordinatorResult(
            records=[group_record(group, assignment)], replay_records=False, on_append=written
        )

    # Heartbeat

    def heartbeat(self, request: HeartbeatRequest) -> None:
        """
        Prolong the session of a member.

        Raises:
            UnknownMemberId: the group or the member does not exist.
            FencedInstanceId, IllegalGeneration, CoordinatorNotAvailable: see
                ``ClassicGroup.validate_generation``.
            RebalanceInProgress: the session is prolonged, and the member has to join.
        """
        group = self._groups.get_classic(request.group_id)
        if group is None:
            raise UnknownMemberId(f"Group {request.group_id} not found.")
        group.validate_generation(
            request.member_id, request.group_instance_id, request.generation_id
        )
        self._rebalance.prolong_session(group, group.members[request.member_id])
        if group.state is S.PREPARING_REBALANCE:
            raise RebalanceInProgress

    # LeaveGroup

    async def leave(
        self, group_id: str, leaving: Sequence[MemberIdentity], now_ms: int
    ) -> tuple[GroupResult, LeaveGroupResponse]:
        """
        Remove members.

        Raises:
            UnknownMemberId: the group does not exist.
        """
        responses = await map_in_turns(_unknown, leaving)
        known = await self._find(group_id, leaving)
        group = self._groups.get_classic(group_id)
        if group is None:
            raise UnknownMemberId(f"Group {group_id} not found.")
        if group.state is S.DEAD:
            return NOTHING, LeaveGroupResponse(
                error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE, members=[]
            )
        # There is no step between the members that leave, nor before their records are written.
        left = []
        for position in known:
            error = self._leave(group, leaving[position])
            responses[position] = replace(responses[position], error_code=error)
            if error is ErrorCode.NONE:
                left.append(leaving[position].member_id)
        changes = NOTHING
        if left:
            reason = f"{', '.join(left)} left"
            if group.state in {S.STABLE, S.COMPLETING_REBALANCE}:
                changes = self._rebalance.begin_or_complete(group, reason, now_ms)
            elif group.state is S.PREPARING_REBALANCE:
                changes = self._rebalance.complete_if_possible(group, now_ms)
        return changes, LeaveGroupResponse(error_code=ErrorCode.NONE, members=responses)

    async def _find(self, group_id: str, leaving: Sequence[MemberIdentity]) -> list[int]:
        """
        The positions of those that the group knows: others need no step of their own.
        """
        group = self._groups.get_classic(group_id)
        known: list[int] = []
        if group is None:
            return known
        for position, member in enumerate(leaving):
            await checkpoint()
            if (
                member.member_id in group.members
                or member.member_id in group.pending_joins
                or member.group_instance_id in group.static_members
            ):
                known.append(position)
        return known

    def _leave(self, group: ClassicGroup, leaving: MemberIdentity) -> ErrorCode:
        member_id = leaving.member_id
        if member_id == NO_MEMBER_ID:
            # An administrator names a static member by its instance id only.
            instance_id = leaving.group_instance_id
            current = None if instance_id is None else group.static_members.get(instance_id)
            if current is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
            member_id = current
        elif member_id not in group.pending_joins:
            try:
                group.validate_member(member_id, leaving.group_instance_id)
            except KafkaError as error:
                return error.code
        log.info(
            "Group %s: %s leaves; client reason: %s",
            group.group_id,
            member_id,
            leaving.reason or "not provided",
        )
        self._rebalance.unwatch(group, member_id)
        group.remove(member_id)
        return ErrorCode.NONE


def _unknown(member: MemberIdentity) -> MemberResponse:
    return MemberResponse(
        member_id=member.member_id,
        group_instance_id=member.group_instance_id,
        error_code=ErrorCode.UNKNOWN_MEMBER_ID,
    )


def _reason_not_to_sync(group: ClassicGroup | None, request: SyncGroupRequest) -> ErrorCode:
    if group is None or group.is_empty:
        return ErrorCode.UNKNOWN_MEMBER_ID
    try:
        group.validate_generation(
            request.member_id, request.group_instance_id, request.generation_id
        )
    except KafkaError as error:
        return error.code
    if _contradicts(request.protocol_type, group.protocol_type) or _contradicts(
        request.protocol_name, group.protocol_name
    ):
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    if group.state is S.PREPARING_REBALANCE:
        return ErrorCode.REBALANCE_IN_PROGRESS
    return ErrorCode.NONE


def _contradicts(asked: str | None, actual: str | None) -> bool:
    return asked is not None and actual is not None and asked != actual
