"""
Members of consumer groups that still use the classic protocol (KIP-848).

To such a member the group looks like a classic one without a leader: its JoinGroup is answered at
once, its generation is its member epoch, and SyncGroup gives it what the broker has assigned::

    JoinGroup  --> a heartbeat that says what the member owns
    SyncGroup  --> what the member has
    Heartbeat  --> REBALANCE_IN_PROGRESS: the member has to join again

Follows Kafka's ``classicGroupJoinToConsumerGroup`` and its neighbours.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Final

from barnabas.coordination.config.coordinators import CoordinationOptions
from barnabas.coordination.coordinator_runtime.result import (
    NOTHING,
    AppendListener,
    CoordinatorResult,
)
from barnabas.coordination.groups.answers import NO_LEADER, NO_MEMBER_ID, join_error
from barnabas.coordination.groups.caller import Caller
from barnabas.coordination.groups.classic.member import JoinReply, Protocols, SyncReply
from barnabas.coordination.groups.classic.subscriptions import (
    CONSUMER,
    assignment_bytes,
    subscription_of,
    version_of,
)
from barnabas.coordination.groups.consumer.fencing import Fencing
from barnabas.coordination.groups.consumer.group import ConsumerGroup
from barnabas.coordination.groups.consumer.heartbeats import expect_static, replace_static_member
from barnabas.coordination.groups.consumer.member import (
    ClassicMember,
    ConsumerGroupMember,
    MemberState,
)
from barnabas.coordination.groups.consumer.migration import Migration
from barnabas.coordination.groups.consumer.rebalancing import Rebalancing
from barnabas.coordination.groups.consumer.records import member_record
from barnabas.coordination.groups.consumer.regexes import Regexes, RegexUpdate
from barnabas.coordination.groups.consumer.sessions import Sessions
from barnabas.coordination.groups.modern.member import JOINING, NOT_SENT
from barnabas.coordination.groups.modern.topics import SubscribedTopics
from barnabas.coordination.groups.records import CoordinatorRecord, GroupResult
from barnabas.protocol.consumer_protocol import ConsumerProtocolSubscription
from barnabas.protocol.errors import (
    DecodeError,
    ErrorCode,
    IllegalGeneration,
    InconsistentGroupProtocol,
    KafkaError,
    RebalanceInProgress,
    UnknownMemberId,
    UnknownServerError,
)
from barnabas.protocol.messages.consumer_group_heartbeat import TopicPartitions
from barnabas.protocol.messages.heartbeat import HeartbeatRequest
from barnabas.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from barnabas.protocol.messages.leave_group import (
    LeaveGroupResponse,
    MemberIdentity,
    MemberResponse,
)
from barnabas.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from barnabas.protocol.structs import replace
from barnabas.storage.uuids import random_uuid, uuid_text

log = logging.getLogger(__name__)

MEMBER_ID_REQUIRED_SINCE: Final = 4


class ClassicMembers:
    """
    Handles JoinGroup, SyncGroup, Heartbeat and LeaveGroup for the consumer groups of one partition.
    """

    def __init__(
        self,
        topics: SubscribedTopics,
        *,
        sessions: Sessions,
        regexes: Regexes,
        rebalancing: Rebalancing,
        fencing: Fencing,
        migration: Migration,
        options: CoordinationOptions,
    ) -> None:
        self._topics = topics
        self._sessions = sessions
        self._regexes = regexes
        self._rebalancing = rebalancing
        self._fencing = fencing
        self._migration = migration
        self._options = options

    # JoinGroup

    def join(
        self,
        group: ConsumerGroup,
        request: JoinGroupRequest,
        *,
        protocols: Protocols,
        caller: Caller,
        reply: JoinReply,
        now_ms: int,
    ) -> GroupResult:
        """
        Let a classic member join, or join again. The reply is called once the records are written.

        Raises:
            KafkaError: the member is refused.
        """
        member_id = request.member_id or uuid_text(random_uuid())
        self._check_join(group, request, protocols, member_id)
        if (
            caller.version >= MEMBER_ID_REQUIRED_SINCE
            and request.member_id == NO_MEMBER_ID
            and request.group_instance_id is None
        ):
            reply(join_error(member_id, ErrorCode.MEMBER_ID_REQUIRED))
            return NOTHING
        records: list[CoordinatorRecord] = []
        before = self._member_of(group, request, member_id, records)
        subscription = _subscription_of(protocols)
        static = group.static_member(request.group_instance_id)
        is_downgrade = static is not None and self._migration.can_downgrade_replacing(
            group, static, protocols
        )
        member = _updated(before, request, protocols, subscription, caller)
        if member != before:
            records.append(member_record(group.group_id, member))
        regex = self._regexes.update(
            group, before, member, caller=caller, now_ms=now_ms, records=records
        )
        is_changed = member.topic_names != before.topic_names or regex is not RegexUpdate.NONE
        change = self._rebalancing.change_of(
            group, before, member, subscription.topics, must_bump=is_changed
        )
        epoch = self._rebalancing.next_epoch(group, change, records, must_bump=is_changed)
        must_rebalance = group.assignment_epoch < epoch
        if not is_downgrade:
            target = self._rebalancing.target_of(group, change, epoch, records, now_ms=now_ms)
        else:
            target = self._rebalancing.last_target_of(group, member)
        if not (is_downgrade and must_rebalance):
            member = self._rebalancing.reconcile(
                group,
                member,
                target,
                records,
                owned=self._owned(subscription),
                has_new_subscription=is_changed,
            )
        answer = _joined(member)
        if not is_downgrade:
            appended = self._answering(group, member, answer, reply)
            if not records:
                appended(None, now_ms)
                return NOTHING
            return CoordinatorResult(records=records, on_append=appended)
        assert static is not None
        reason = f"Downgrade group {group.group_id} from consumer to classic with stale assignment."
        result = self._migration.downgrade_replacing(
            group,
            static,
            member,
            records=records,
            reason=reason if must_rebalance else None,
            now_ms=now_ms,
        )
        self._sessions.end(group.group_id, group.members)
        return self._also_answering(result, group, answer, reply)

    def _check_join(
        self, group: ConsumerGroup, request: JoinGroupRequest, protocols: Protocols, member_id: str
    ) -> None:
        """
        Raises:
            InconsistentGroupProtocol, GroupMaxSizeReached: the member cannot be in this group.
        """
        if self._migration.is_disabled:
            raise InconsistentGroupProtocol(
                f"Cannot join the consumer group {group.group_id} with the classic protocol because"
                " the group migration is disabled."
            )
        group.check_size(self._options.group_consumer_max_size, member_id)
        if not group.supports_classic(request.protocol_type, [name for name, _ in protocols]):
            raise InconsistentGroupProtocol(f"Member {member_id}'s protocols are not supported.")

    def _member_of(
        self,
        group: ConsumerGroup,
        request: JoinGroupRequest,
        member_id: str,
        records: list[CoordinatorRecord],
    ) -> ConsumerGroupMember:
        """
        The member that joins; one without subscription if it is new.

        Raises:
            UnknownMemberId, FencedInstanceId: the sender is no member any more.
        """
        instance_id = request.group_instance_id
        if instance_id is None:
            return group.sender(member_id, JOINING)
        current = group.static_member(instance_id)
        if request.member_id != NO_MEMBER_ID:
            return expect_static(current, member_id, instance_id)
        if current is None:
            return ConsumerGroupMember(member_id=member_id)
        log.info("Group %s: %s replaces %s", group.group_id, member_id, current.member_id)
        return replace_static_member(group, current, member_id, records)

    def _owned(self, subscription: ConsumerProtocolSubscription) -> list[TopicPartitions]:
        owned = []
        for each in subscription.owned_partitions:
            topic = self._topics.topics.get(each.topic)
            if topic is not None:
                owned.append(TopicPartitions(topic_id=topic.id, partitions=each.partitions))
        return owned

    def _answering(
        self,
        group: ConsumerGroup,
        member: ConsumerGroupMember,
        answer: JoinGroupResponse,
        reply: JoinReply,
    ) -> AppendListener:
        """
        A listener that answers a JoinGroup, and waits for the SyncGroup.
        """

        def appended(error: ErrorCode | None, _now_ms: int) -> None:
            if error is not None:
                reply(join_error(NO_MEMBER_ID, error))
                return
            self._prolong(group, member)
            self._sessions.joined(group.group_id, member)
            reply(answer)

        return appended

    def _also_answering(
        self,
        result: GroupResult,
        group: ConsumerGroup,
        answer: JoinGroupResponse,
        reply: JoinReply,
    ) -> GroupResult:
        """
        The result of a change of the protocol, whose append answers a JoinGroup as well.
        """
        before = result.on_append
        assert before is not None

        def appended(error: ErrorCode | None, now_ms: int) -> None:
            before(error, now_ms)
            if error is None:
                reply(answer)
            else:
                self._sessions.stay(group.group_id, group.members.values())
                reply(join_error(NO_MEMBER_ID, error))

        return replace(result, on_append=appended)

    # SyncGroup, Heartbeat, LeaveGroup

    def sync(self, group: ConsumerGroup, request: SyncGroupRequest, reply: SyncReply) -> None:
        """
        Tell a classic member what it has.

        Raises:
            UnknownMemberId, FencedInstanceId, IllegalGeneration, InconsistentGroupProtocol: the
                sender is not this member in this generation.
            RebalanceInProgress: the member has to join again.
        """
        member = _expect_classic(group, request.member_id, request.group_instance_id)
        _check_generation(member, request.generation_id)
        classic = member.classic
        assert classic is not None
        name, metadata = classic.protocols[0]
        if request.protocol_type not in {None, CONSUMER} or request.protocol_name not in {
            None,
            name,
        }:
            raise InconsistentGroupProtocol
        is_behind = group.assignment_epoch > member.member_epoch
        if is_behind and member.state is not MemberState.UNREVOKED_PARTITIONS:
            self._sessions.expect_join(group.group_id, member)
            raise RebalanceInProgress(
                f"A new rebalance is triggered in group {group.group_id} and member"
                f" {member.member_id} should rejoin to catch up."
            )
        self._sessions.synced(group.group_id, member.member_id)
        self._prolong(group, member)
        reply(
            SyncGroupResponse(
                error_code=ErrorCode.NONE,
                protocol_type=request.protocol_type,
                protocol_name=request.protocol_name,
                assignment=assignment_bytes(
                    self._migration.named(member.assigned), version_of(metadata)
                ),
            )
        )

    def heartbeat(self, group: ConsumerGroup, request: HeartbeatRequest) -> None:
        """
        Prolong the session of a classic member.

        Raises:
            UnknownMemberId, FencedInstanceId, IllegalGeneration: the sender is not this member in
                this generation.
            RebalanceInProgress: the session is prolonged, and the member has to join again.
        """
        member = _expect_classic(group, request.member_id, request.group_instance_id)
        _check_generation(member, request.generation_id)
        self._prolong(group, member)
        has_to_join = (
            member.member_epoch < group.assignment_epoch
            or member.state is MemberState.UNREVOKED_PARTITIONS
            or (
                member.state is MemberState.UNRELEASED_PARTITIONS
                and not group.waits_for_others(member)
            )
        )
        if has_to_join:
            self._sessions.expect_join(group.group_id, member)
            raise RebalanceInProgress

    def leave(
        self, group: ConsumerGroup, leaving: Sequence[MemberIdentity], now_ms: int
    ) -> tuple[GroupResult, LeaveGroupResponse]:
        """
        Remove members of either protocol, as they wish themselves or an administrator does.
        """
        known: dict[str, ConsumerGroupMember] = {}
        responses = []
        for identity in leaving:
            error = ErrorCode.NONE
            try:
                member = _leaving_member(group, identity)
                known[member.member_id] = member
            except KafkaError as refused:
                error = refused.code
            responses.append(
                MemberResponse(
                    member_id=identity.member_id,
                    group_instance_id=identity.group_instance_id,
                    error_code=error,
                )
            )
        result = self._fencing.fence(group, list(known.values()), now_ms)
        return result, LeaveGroupResponse(error_code=ErrorCode.NONE, members=responses)

    def _prolong(self, group: ConsumerGroup, member: ConsumerGroupMember) -> None:
        assert member.classic is not None
        timeout_ms = member.classic.session_timeout_ms
        self._sessions.prolong(group.group_id, member.member_id, timeout_ms)


def _leaving_member(group: ConsumerGroup, identity: MemberIdentity) -> ConsumerGroupMember:
    instance_id = identity.group_instance_id
    if instance_id is None:
        return group.expect_member(identity.member_id)
    member = group.static_member(instance_id)
    if member is not None and identity.member_id == NO_MEMBER_ID:
        return member  # An administrator names a static member by its instance id only.
    return expect_static(member, identity.member_id, instance_id)


def _expect_classic(
    group: ConsumerGroup, member_id: str, instance_id: str | None
) -> ConsumerGroupMember:
    if instance_id is None:
        member = group.expect_member(member_id)
    else:
        member = expect_static(group.static_member(instance_id), member_id, instance_id)
    if not member.is_classic:
        raise UnknownMemberId(f"Member {member_id} does not use the classic protocol.")
    return member


def _check_generation(member: ConsumerGroupMember, generation_id: int) -> None:
    if generation_id != member.member_epoch:
        raise IllegalGeneration(
            f"The request generation id {generation_id} is not equal to the member epoch"
            f" {member.member_epoch} of member {member.member_id}."
        )


def _subscription_of(protocols: Protocols) -> ConsumerProtocolSubscription:
    try:
        return subscription_of(protocols[0].metadata)
    except DecodeError:
        raise UnknownServerError(
            "Malformed embedded consumer protocol in subscription deserialization."
        ) from None


def _updated(
    member: ConsumerGroupMember,
    request: JoinGroupRequest,
    protocols: Protocols,
    subscription: ConsumerProtocolSubscription,
    caller: Caller,
) -> ConsumerGroupMember:
    # v0 has only one timeout.
    timeout_ms = request.rebalance_timeout_ms if caller.version else request.session_timeout_ms
    instance_id = request.group_instance_id
    return replace(
        member,
        instance_id=member.instance_id if instance_id is None else instance_id,
        rack_id=subscription.rack_id or member.rack_id,
        rebalance_timeout_ms=(
            member.rebalance_timeout_ms if timeout_ms == NOT_SENT else timeout_ms
        ),
        topic_names=frozenset(subscription.topics),
        topic_regex="",
        client_id=caller.client_id,
        client_host=caller.client_host,
        classic=ClassicMember(
            session_timeout_ms=request.session_timeout_ms,
            protocols=tuple((name, metadata) for name, metadata in protocols),
        ),
    )


def _joined(member: ConsumerGroupMember) -> JoinGroupResponse:
    assert member.classic is not None
    return JoinGroupResponse(
        error_code=ErrorCode.NONE,
        generation_id=member.member_epoch,
        protocol_type=CONSUMER,
        protocol_name=member.classic.protocols[0][0],
        leader=NO_LEADER,
        skip_assignment=False,
        member_id=member.member_id,
        members=[],
    )
