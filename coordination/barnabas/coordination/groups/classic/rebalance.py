"""
Rebalances of classic groups: their begin, their end, and their timeouts.

A rebalance is a round of joins and a round of syncs::

    begin -----> [joins are parked] -----> complete_join -----> [syncs are parked] -----> Stable
      ^   all members have joined, or  |                    ^      the leader's assignment |
      |   JOIN expired: the missing    |                    |      is written              |
      |   members are removed          +--> Empty           |                              |
      |                                     SYNC expired: the missing members are removed; |
      +------------------------------------ a member joins, leaves, or its SESSION expired +

The first round of an empty group waits for more members (``group.initial.rebalance.delay.ms``), and
waits again as long as new ones join.

Follows Kafka's ``GroupMetadataManager``. Times are arguments, in ms since the epoch; ``Timers`` run
the timeouts.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import Final

from barnabas.coordination.config.coordinators import GroupOptions
from barnabas.coordination.coordinator_runtime.result import NOTHING, CoordinatorResult
from barnabas.coordination.coordinator_runtime.timers import Timers
from barnabas.coordination.groups.answers import NO_LEADER, sync_error
from barnabas.coordination.groups.classic.group import ClassicGroup
from barnabas.coordination.groups.classic.member import NO_ASSIGNMENT, ClassicGroupMember
from barnabas.coordination.groups.classic.state import GroupState
from barnabas.coordination.groups.groups import Groups
from barnabas.coordination.groups.persistence import group_record
from barnabas.coordination.groups.records import GroupResult
from barnabas.coordination.groups.timeouts import Timeout
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.join_group import JoinGroupResponse
from barnabas.protocol.messages.sync_group import SyncGroupResponse

log = logging.getLogger(__name__)
S = GroupState


NEW_MEMBER_JOIN_TIMEOUT_MS: Final = 5 * 60 * 1000
"""
The session timeout of a new member in its first round of joins, as in Kafka.
"""


class Rebalance:
    """
    Moves the classic groups of one partition through their rebalances.
    """

    def __init__(self, groups: Groups, timers: Timers, options: GroupOptions) -> None:
        self._groups = groups
        self._timers = timers
        self._options = options

    # Sessions.

    def prolong_session(
        self, group: ClassicGroup, member: ClassicGroupMember, timeout_ms: int | None = None
    ) -> None:
        """
        Start the session of a member again.
        """
        if timeout_ms is None:
            timeout_ms = member.session_timeout_ms
        self.watch(group, member.member_id, timeout_ms)

    def watch(self, group: ClassicGroup, member_id: str, timeout_ms: int) -> None:
        """
        Remove a member or a pending id after *timeout_ms*, unless its session is prolonged.
        """
        self._timers.schedule(
            (Timeout.HEARTBEAT, group.group_id, member_id),
            timeout_ms,
            partial(self._session_ran_out, group.group_id, member_id),
        )

    def unwatch(self, group: ClassicGroup, member_id: str) -> None:
        """
        End the session of a member.
        """
        self._timers.cancel((Timeout.HEARTBEAT, group.group_id, member_id))

    def watch_all(self, group: ClassicGroup) -> None:
        """
        Begin the sessions of all members of a group that is loaded.
        """
        for member in group.members.values():
            self.prolong_session(group, member)

    def _session_ran_out(self, group_id: str, member_id: str, now_ms: int) -> GroupResult:
        group = self._groups.get_classic(group_id)
        if group is None or group.state is S.DEAD:
            return NOTHING
        if member_id in group.pending_joins:
            group.remove(member_id)
            return self._complete_if_all_joined(group, now_ms)
        member = group.members.get(member_id)
        if member is None or member.is_excused_from_heartbeats:
            return NOTHING
        log.info("Group %s: the session of %s has expired", group_id, member_id)
        group.remove(member_id)
        return self.after_departure(group, f"the session of {member_id} has expired", now_ms)

    # The round of joins.

    def begin_or_complete(self, group: ClassicGroup, reason: str, now_ms: int) -> GroupResult:
        """
        Begin a rebalance; if one has begun already, complete it once all members have joined.
        """
        if group.can_rebalance:
            return self.begin(group, reason, now_ms)
        return self.complete_if_possible(group, now_ms)

    def after_departure(self, group: ClassicGroup, reason: str, now_ms: int) -> GroupResult:
        """
        Continue without members that have been removed.
        """
        if group.state in {S.STABLE, S.COMPLETING_REBALANCE}:
            return self.begin_or_complete(group, reason, now_ms)
        return self._complete_if_all_joined(group, now_ms)

    def begin(self, group: ClassicGroup, reason: str, now_ms: int) -> GroupResult:
        """
        Begin a rebalance.
        """
        if group.state is S.COMPLETING_REBALANCE:
            self.withdraw_assignment(group, ErrorCode.REBALANCE_IN_PROGRESS)
        group.pending_syncs.clear()
        self._timers.cancel((Timeout.SYNC, group.group_id, ""))
        is_initial = group.is_empty
        if is_initial:
            delay_ms = self._options.group_initial_rebalance_delay_ms
            remaining_ms = max(group.rebalance_timeout_ms - delay_ms, 0)
            self._wait_for_more(group, delay_ms, remaining_ms)
        group.become(S.PREPARING_REBALANCE, now_ms)
        log.info(
            "Group %s: rebalance of generation %d begins: %s",
            group.group_id,
            group.generation_id,
            reason,
        )
        if is_initial:
            return NOTHING
        if group.have_all_joined:
            return self.complete_join(group, now_ms)
        self._wait_for_joins(group)
        return NOTHING

    def complete_if_possible(self, group: ClassicGroup, now_ms: int) -> GroupResult:
        """
        Complete the round of joins if all members have joined, unless it is the group's first.
        """
        if group.previous_state is S.EMPTY:
            return NOTHING
        return self._complete_if_all_joined(group, now_ms)

    def _complete_if_all_joined(self, group: ClassicGroup, now_ms: int) -> GroupResult:
        if group.state is S.PREPARING_REBALANCE and group.have_all_joined:
            return self.complete_join(group, now_ms)
        return NOTHING

    def complete_join(self, group: ClassicGroup, now_ms: int) -> GroupResult:
        """
        End the round of joins with the members in it, and begin the next generation.
        """
        self._timers.cancel((Timeout.JOIN, group.group_id, ""))
        for member in group.not_yet_rejoined():
            if not member.is_static:
                log.info("Group %s: %s has not joined in time", group.group_id, member.member_id)
                group.remove(member.member_id)
                self.unwatch(group, member.member_id)
        if group.state is S.DEAD:
            return NOTHING
        if not group.elect_leader_who_joined() and group.members:
            # All are static members that have not joined: only their sessions remove them.
            self._wait_for_joins(group)
            return NOTHING
        group.begin_generation(now_ms)
        log.info("Group %s: generation %d begins", group.group_id, group.generation_id)
        if group.is_empty:
            return CoordinatorResult(records=[group_record(group, {})], replay_records=False)
        for member in group.members.values():
            group.answer_join(member, self.joined(group, member))
            self.prolong_session(group, member)
            member.is_new = False
            group.pending_syncs.add(member.member_id)
        self._timers.schedule(
            (Timeout.SYNC, group.group_id, ""),
            group.rebalance_timeout_ms,
            partial(self._syncs_ran_out, group.group_id, group.generation_id),
        )
        return NOTHING

    @staticmethod
    def joined(
        group: ClassicGroup,
        member: ClassicGroupMember,
        *,
        tell_members: bool = True,
        skip_assignment: bool = False,
        leader_id: str | None = None,
    ) -> JoinGroupResponse:
        """
        The JoinGroup response for a member of this generation; the leader's lists the members.
        """
        is_leader = group.is_leader(member.member_id)
        return JoinGroupResponse(
            error_code=ErrorCode.NONE,
            generation_id=group.generation_id,
            protocol_type=group.protocol_type,
            protocol_name=group.protocol_name,
            leader=leader_id or group.leader_id or NO_LEADER,
            skip_assignment=skip_assignment,
            member_id=member.member_id,
            members=group.protocol_members() if is_leader and tell_members else [],
        )

    def _wait_for_joins(self, group: ClassicGroup) -> None:
        self._timers.schedule(
            (Timeout.JOIN, group.group_id, ""),
            group.rebalance_timeout_ms,
            partial(self._joins_ran_out, group.group_id),
        )

    def _joins_ran_out(self, group_id: str, now_ms: int) -> GroupResult:
        group = self._groups.get_classic(group_id)
        if group is None or group.state is not S.PREPARING_REBALANCE:
            # The group was one of consumers meanwhile, and its round of joins is over.
            return NOTHING
        return self.complete_join(group, now_ms)

    def _wait_for_more(self, group: ClassicGroup, delay_ms: int, remaining_ms: int) -> None:
        self._timers.schedule(
            (Timeout.JOIN, group.group_id, ""),
            delay_ms,
            partial(self._initial_delay_ran_out, group.group_id, delay_ms, remaining_ms),
        )

    def _initial_delay_ran_out(
        self, group_id: str, delay_ms: int, remaining_ms: int, now_ms: int
    ) -> GroupResult:
        group = self._groups.get_classic(group_id)
        if group is None:
            return NOTHING
        if group.new_member_added and remaining_ms:
            group.new_member_added = False
            self._wait_for_more(
                group,
                min(self._options.group_initial_rebalance_delay_ms, remaining_ms),
                max(remaining_ms - delay_ms, 0),
            )
            return NOTHING
        return self.complete_join(group, now_ms)

    # The round of syncs.

    def synced(self, group: ClassicGroup, member_id: str) -> None:
        """
        Note that a member has sent its SyncGroup.
        """
        group.pending_syncs.discard(member_id)
        if not group.pending_syncs:
            self._timers.cancel((Timeout.SYNC, group.group_id, ""))

    def withdraw_assignment(self, group: ClassicGroup, error: ErrorCode) -> None:
        """
        Answer all parked syncs with an error.
        """
        for member in group.members.values():
            member.assignment = NO_ASSIGNMENT
            self._answer_sync(group, member, sync_error(error))

    def assign(self, group: ClassicGroup, assignment: dict[str, bytes], now_ms: int) -> None:
        """
        Answer all parked syncs with the leader's assignment, which is committed: the group is
        stable.
        """
        for member in group.members.values():
            member.assignment = assignment.get(member.member_id, NO_ASSIGNMENT)
            self._answer_sync(group, member, self.assigned(group, member))
        group.become(S.STABLE, now_ms)

    @staticmethod
    def assigned(group: ClassicGroup, member: ClassicGroupMember) -> SyncGroupResponse:
        """
        The SyncGroup response with a member's assignment.
        """
        return SyncGroupResponse(
            error_code=ErrorCode.NONE,
            protocol_type=group.protocol_type,
            protocol_name=group.protocol_name,
            assignment=member.assignment,
        )

    def _answer_sync(
        self, group: ClassicGroup, member: ClassicGroupMember, response: SyncGroupResponse
    ) -> None:
        if group.answer_sync(member, response):
            # Its session may have expired while the request was parked.
            self.prolong_session(group, member)

    def _syncs_ran_out(self, group_id: str, generation_id: int, now_ms: int) -> GroupResult:
        group = self._groups.get_classic(group_id)
        if group is None or group.generation_id != generation_id:
            return NOTHING
        if group.state not in {S.COMPLETING_REBALANCE, S.STABLE} or not group.pending_syncs:
            return NOTHING
        missing = sorted(group.pending_syncs)
        for member_id in missing:
            group.remove(member_id)
            self.unwatch(group, member_id)
        return self.begin(group, f"no sync from {', '.join(missing)}", now_ms)
