"""
JoinGroup, as a classic group answers it (Kafka's ``GroupMetadataManager.classicGroupJoin``).

The ids in the request decide most:

=====================  ========================================================================
no id, no instance id  v4+: gets an id to join with (KIP-394); before: becomes a member
no id, an instance id  becomes a member, or replaces its previous incarnation (KIP-345)
a pending id           becomes a member
a member's id          rejoins: a new round, or the answer of the round that it has missed
=====================  ========================================================================
"""

from __future__ import annotations

from sys import getsizeof
from typing import Final
from uuid import uuid4

from barnabas.coordination.config.coordinators import GroupOptions
from barnabas.coordination.coordinator_runtime.memory import MemoryBudget
from barnabas.coordination.coordinator_runtime.result import NOTHING, CoordinatorResult
from barnabas.coordination.groups.answers import NO_MEMBER_ID, join_error
from barnabas.coordination.groups.caller import Caller
from barnabas.coordination.groups.classic.group import ClassicGroup
from barnabas.coordination.groups.classic.member import (
    ClassicGroupMember,
    JoinReply,
    MemberProtocol,
    Protocols,
)
from barnabas.coordination.groups.classic.rebalance import NEW_MEMBER_JOIN_TIMEOUT_MS, Rebalance
from barnabas.coordination.groups.classic.state import GroupState
from barnabas.coordination.groups.groups import Groups
from barnabas.coordination.groups.persistence import (
    empty_group_record,
    group_record,
    group_tombstones,
)
from barnabas.coordination.groups.records import CoordinatorRecord, GroupResult
from barnabas.coordination.steps import checkpoint, finished
from barnabas.protocol.codec.primitives import MAX_STRING_BYTES, utf8_size
from barnabas.protocol.codec.schema import replace
from barnabas.protocol.errors import CoordinatorNotAvailable, ErrorCode, KafkaError
from barnabas.protocol.messages.join_group import JoinGroupRequest
from barnabas.protocol.structs import NamedTuple

S = GroupState

MEMBER_ID_REQUIRED_SINCE: Final = 4
SKIP_ASSIGNMENT_SINCE: Final = 9

MEMBER_BYTES: Final = 1500
"""
The memory of a member with its timers, without its ids and protocols. A group takes no more.
"""
PROTOCOL_BYTES: Final = 200
"""
The memory of a protocol that a member offers, without its name and metadata.
"""


class Offer(NamedTuple):
    """
    The protocols that a member offers, each once, and the memory that they take, in bytes.
    """

    protocols: Protocols
    held_bytes: int


NO_OFFER: Final = Offer((), 0)


class _Join(NamedTuple):
    """
    A JoinGroup in progress.
    """

    caller: Caller
    request: JoinGroupRequest
    protocols: Protocols
    rebalance_timeout_ms: int
    held_bytes: int
    reply: JoinReply

    @property
    def reason(self) -> str:
        return self.request.reason or "not provided"

    def refuse(self, error: ErrorCode, member_id: str | None = None) -> None:
        """
        Answer with an error.
        """
        if member_id is None:
            member_id = self.request.member_id
        self.reply(join_error(member_id, error))


def _held_bytes(request: JoinGroupRequest, caller: Caller, offer: Offer) -> int:
    """
    The memory of a member; of an id that is given out, if it offers nothing.
    """
    # A member id begins with one of these.
    ids = 2 * getsizeof(request.group_instance_id or caller.client_id)
    return MEMBER_BYTES + ids + offer.held_bytes


class _Replacement(NamedTuple):
    """
    A static member and its next incarnation.
    """

    before: ClassicGroupMember
    after: ClassicGroupMember
    old_leader: str | None


async def offer_of(request: JoinGroupRequest) -> Offer:
    """
    What the member offers. A protocol that is named twice counts once: it would have more votes
    than there are members, and no protocol would be offered by all.
    """
    protocols: dict[str, MemberProtocol] = {}
    held_bytes = 0
    for protocol in request.protocols:
        await checkpoint()
        name = protocol.name
        if name not in protocols:
            protocols[name] = MemberProtocol(name, bytes(protocol.metadata))
            held_bytes += getsizeof(name) + len(protocol.metadata) + PROTOCOL_BYTES
    return Offer(tuple(protocols.values()), held_bytes)


class Joining:
    """
    Handles JoinGroup for the groups of one partition.
    """

    def __init__(
        self, groups: Groups, rebalance: Rebalance, options: GroupOptions, memory: MemoryBudget
    ) -> None:
        self._groups = groups
        self._rebalance = rebalance
        self._options = options
        self._memory = memory

    def join(
        self,
        request: JoinGroupRequest,
        caller: Caller,
        reply: JoinReply,
        now_ms: int,
        offer: Offer | None = None,
    ) -> GroupResult:
        """
        Add a member, or refuse it. The reply is called at once, or at the end of the round.

        Args:
            offer: the result of ``offer_of`` the request, if the caller has it.
        """
        if offer is None:
            offer = finished(offer_of(request))
        join = _Join(
            caller,
            request,
            offer.protocols,
            # v0 has only one timeout.
            request.rebalance_timeout_ms if caller.version else request.session_timeout_ms,
            _held_bytes(request, caller, offer),
            reply,
        )
        group = self._groups.get(request.group_id)
        if isinstance(group, ClassicGroup):
            return self._join(join, group, now_ms)
        if group is not None and not group.can_become_classic:
            join.refuse(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, NO_MEMBER_ID)
            return NOTHING
        if request.member_id != NO_MEMBER_ID:
            join.refuse(ErrorCode.UNKNOWN_MEMBER_ID)
            return NOTHING
        # The offsets of a group of another protocol stay.
        tombstones = [] if group is None else group_tombstones(group)
        return self._join_new_group(join, tombstones, now_ms)

    def _join_new_group(
        self, join: _Join, tombstones: list[CoordinatorRecord], now_ms: int
    ) -> GroupResult:
        """
        Create the group; as in Kafka also if the join is refused.
        """
        group_id = join.request.group_id
        size = MEMBER_BYTES + getsizeof(group_id)
        try:
            self._memory.check_room(size + join.held_bytes)
            self._groups.check_room(group_id)
        except CoordinatorNotAvailable:
            join.refuse(ErrorCode.COORDINATOR_NOT_AVAILABLE, NO_MEMBER_ID)
            return NOTHING
        before = self._groups.get(group_id)
        group = self._groups.create_classic(group_id, now_ms)
        group.held = self._memory.hold(size)
        changes = self._join(join, group, now_ms)
        assert changes is NOTHING, "the first round of a group is never over at once"

        def written(error: ErrorCode | None, now_ms: int) -> None:
            if error is not None and self._groups.get(group_id) is group:
                self._groups.put(group_id, before)
                join.refuse(error, NO_MEMBER_ID)

        return CoordinatorResult(
            records=[*tombstones, empty_group_record(group)],
            replay_records=False,
            on_append=written,
        )

    def _join(self, join: _Join, group: ClassicGroup, now_ms: int) -> GroupResult:
        member_id = join.request.member_id
        if not self._accepts(group, member_id):
            group.remove(member_id)
            join.refuse(ErrorCode.GROUP_MAX_SIZE_REACHED, NO_MEMBER_ID)
        elif group.state is S.DEAD:
            join.refuse(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        elif not group.supports(join.request.protocol_type, join.protocols):
            join.refuse(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        elif not self._memory.has_room(join.held_bytes, group.held_by(member_id)):
            join.refuse(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        elif member_id == NO_MEMBER_ID:
            return self._join_somebody_new(join, group, now_ms)
        elif member_id not in group.pending_joins:
            return self._rejoin(join, group, now_ms)
        elif join.request.group_instance_id is None:
            return self._add(join, group, member_id, now_ms)
        else:
            # Only dynamic members have pending ids. Kafka fails with this error, too.
            join.refuse(ErrorCode.UNKNOWN_SERVER_ERROR, NO_MEMBER_ID)
        return NOTHING

    def _accepts(self, group: ClassicGroup, member_id: str) -> bool:
        """
        Whether ``group.max.size`` leaves room.

        During a round of joins the members in the round count: after the limit was lowered, the
        last ones to rejoin are refused.
        """
        most = self._options.group_max_size
        match group.state:
            case S.PREPARING_REBALANCE:
                member = group.members.get(member_id)
                return (member is not None and member.awaits_join) or group.awaiting_join < most
            case S.COMPLETING_REBALANCE | S.STABLE:
                return member_id in group.members or len(group.members) < most
            case _:
                return True

    # New members.

    def _join_somebody_new(self, join: _Join, group: ClassicGroup, now_ms: int) -> GroupResult:
        instance_id = join.request.group_instance_id
        new_id = f"{join.caller.client_id if instance_id is None else instance_id}-{uuid4()}"
        if utf8_size(new_id) > MAX_STRING_BYTES:
            # Neither an answer nor a record can have this id.
            join.refuse(ErrorCode.UNKNOWN_SERVER_ERROR, NO_MEMBER_ID)
            return NOTHING
        if instance_id is not None:
            old_id = group.static_members.get(instance_id)
            if old_id is not None:
                return self._replace(join, group, old_id, new_id, now_ms)
        elif join.caller.version >= MEMBER_ID_REQUIRED_SINCE:
            group.pending_joins[new_id] = self._memory.hold(
                _held_bytes(join.request, join.caller, NO_OFFER)
            )
            self._rebalance.watch(group, new_id, join.request.session_timeout_ms)
            join.refuse(ErrorCode.MEMBER_ID_REQUIRED, new_id)
            return NOTHING
        return self._add(join, group, new_id, now_ms)

    def _add(self, join: _Join, group: ClassicGroup, member_id: str, now_ms: int) -> GroupResult:
        member = ClassicGroupMember(
            member_id,
            instance_id=join.request.group_instance_id,
            client_id=join.caller.client_id,
            client_host=join.caller.client_host,
            rebalance_timeout_ms=join.rebalance_timeout_ms,
            session_timeout_ms=join.request.session_timeout_ms,
            protocol_type=join.request.protocol_type,
            protocols=join.protocols,
            is_new=True,
            held=self._memory.hold(join.held_bytes),
        )
        if group.state is S.PREPARING_REBALANCE and group.previous_state is S.EMPTY:
            group.new_member_added = True
        group.add(member, join.reply)
        # Before it knows its id, the member cannot send heartbeats within its session timeout. The
        # longer timeout removes a member whose client has given up and joined under another id.
        self._rebalance.prolong_session(group, member, NEW_MEMBER_JOIN_TIMEOUT_MS)
        return self._rebalance.begin_or_complete(
            group, f"{member_id} joins; client reason: {join.reason}", now_ms
        )

    # Static members that return.

    def _replace(
        self, join: _Join, group: ClassicGroup, old_id: str, new_id: str, now_ms: int
    ) -> GroupResult:
        instance_id = join.request.group_instance_id
        assert instance_id is not None
        old_leader = group.leader_id
        member = group.replace_static_member(instance_id, old_id, new_id)
        replacement = _Replacement(member.renamed(old_id), member, old_leader)
        self._rebalance.prolong_session(group, member)
        self._update(join, group, member)
        reason = f"{new_id} replaces {old_id} of {instance_id}; client reason: {join.reason}"
        match group.state:
            case S.STABLE if group.select_protocol() == group.protocol_name:
                return self._persist_replacement(join, group, replacement)
            case S.STABLE:
                return self._rebalance.begin_or_complete(group, reason, now_ms)
            case S.COMPLETING_REBALANCE:
                # The leader may have seen the old id already, and would assign to it.
                return self._rebalance.begin(group, reason, now_ms)
            case S.PREPARING_REBALANCE:
                return self._rebalance.complete_if_possible(group, now_ms)
            case _:
                raise AssertionError(f"{group} has a static member")

    def _persist_replacement(
        self, join: _Join, group: ClassicGroup, replacement: _Replacement
    ) -> GroupResult:
        """
        Tell the log of a new id, and the member of the generation that it has always been part of.
        """
        member = replacement.after
        assignment = {m.member_id: m.assignment for m in group.members.values()}

        def written(error: ErrorCode | None, _now_ms: int) -> None:
            if error is not None:
                self._revert_replacement(join, group, replacement, error)
            elif group.state in {S.PREPARING_REBALANCE, S.DEAD}:
                # Meanwhile another round has begun; this join is part of it, and waits for it.
                return
            elif join.caller.version >= SKIP_ASSIGNMENT_SINCE:
                # The leader gets the members again, but must not assign again (KIP-814).
                is_leader = group.is_leader(member.member_id)
                answer = Rebalance.joined(group, member, skip_assignment=is_leader)
                group.answer_join(member, answer)
            else:
                # An older leader would assign again if it knew that it is the leader.
                answer = Rebalance.joined(
                    group, member, tell_members=False, leader_id=replacement.old_leader
                )
                group.answer_join(member, answer)

        return CoordinatorResult(
            records=[group_record(group, assignment)], replay_records=False, on_append=written
        )

    def _revert_replacement(
        self, join: _Join, group: ClassicGroup, replacement: _Replacement, error: ErrorCode
    ) -> None:
        before, member, old_leader = replacement
        instance_id = before.instance_id
        assert instance_id is not None
        refused = replace(
            Rebalance.joined(group, member, tell_members=False, leader_id=old_leader),
            member_id=NO_MEMBER_ID,
            error_code=error,
        )
        if group.members.get(member.member_id) is not member:
            join.reply(refused)
            return
        group.answer_join(member, refused)
        group.update(
            member,
            before.protocols,
            rebalance_timeout_ms=before.rebalance_timeout_ms,
            session_timeout_ms=before.session_timeout_ms,
            reply=None,
            held=before.held,
        )
        restored = group.replace_static_member(instance_id, member.member_id, before.member_id)
        self._rebalance.prolong_session(group, restored)

    # Members that join again.

    def _rejoin(self, join: _Join, group: ClassicGroup, now_ms: int) -> GroupResult:
        member_id = join.request.member_id
        try:
            group.validate_member(member_id, join.request.group_instance_id)
        except KafkaError as error:
            join.refuse(error.code)
            return NOTHING
        member = group.members[member_id]
        is_unchanged = member.protocols == join.protocols
        match group.state:
            case S.COMPLETING_REBALANCE if is_unchanged:
                # The answer to its first join was probably lost.
                join.reply(Rebalance.joined(group, member))
                return NOTHING
            case S.STABLE if is_unchanged and not group.is_leader(member_id):
                join.reply(Rebalance.joined(group, member))
                return NOTHING
            case S.PREPARING_REBALANCE | S.COMPLETING_REBALANCE | S.STABLE:
                # A leader that joins again always begins a rebalance: its reason may be a change
                # that its metadata do not show, such as new partitions of a topic.
                reason = f"{member_id} rejoins; client reason: {join.reason}"
                self._update(join, group, member)
                return self._rebalance.begin_or_complete(group, reason, now_ms)
            case _:
                raise AssertionError(f"{group} has a member")

    def _update(self, join: _Join, group: ClassicGroup, member: ClassicGroupMember) -> None:
        group.update(
            member,
            join.protocols,
            rebalance_timeout_ms=join.rebalance_timeout_ms,
            session_timeout_ms=join.request.session_timeout_ms,
            reply=join.reply,
            held=self._memory.hold(join.held_bytes),
        )
