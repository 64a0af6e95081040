"""
ConsumerGroupHeartbeat: members of consumer groups join, stay and leave (KIP-848).

A heartbeat is one pass through the group, and writes what has changed on the way::

    member --> subscription --> group epoch --> target assignment --> what the member has --> answer

Follows Kafka's ``GroupMetadataManager.consumerGroupHeartbeat``.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

import logging
from collections.abc import Collection
from typing import Final, TypeAlias

from barnabas.coordination.config.coordinators import CoordinationOptions
from barnabas.coordination.config.groups import GroupConfigOf
from barnabas.coordination.coordinator_runtime.result import NOTHING, CoordinatorResult
from barnabas.coordination.groups.caller import Caller
from barnabas.coordination.groups.classic.group import ClassicGroup
from barnabas.coordination.groups.consumer.assignors import ASSIGNORS
from barnabas.coordination.groups.consumer.fencing import Fencing
from barnabas.coordination.groups.consumer.group import ConsumerGroup
from barnabas.coordination.groups.consumer.member import (
    NOTHING_ASSIGNED,
    Assigned,
    ConsumerGroupMember,
)
from barnabas.coordination.groups.consumer.migration import Migration
from barnabas.coordination.groups.consumer.rebalancing import Rebalancing
from barnabas.coordination.groups.consumer.records import (
    current_record,
    member_record,
    member_tombstones,
    target_record,
)
from barnabas.coordination.groups.consumer.regexes import Regexes, RegexUpdate
from barnabas.coordination.groups.consumer.sessions import Sessions
from barnabas.coordination.groups.group_type import GroupType
from barnabas.coordination.groups.groups import Groups
from barnabas.coordination.groups.modern.member import (
    JOINING,
    LEAVING,
    LEAVING_FOR_A_WHILE,
    NOT_SENT,
)
from barnabas.coordination.groups.modern.requests import check_text, fenced
from barnabas.coordination.groups.modern.topics import topic_partitions
from barnabas.coordination.groups.records import CoordinatorRecord, GroupRecord, GroupResult
from barnabas.protocol.errors import (
    ErrorCode,
    FencedInstanceId,
    GroupIdNotFound,
    InvalidRequest,
    UnknownMemberId,
    UnreleasedInstanceId,
    UnsupportedAssignor,
)
from barnabas.protocol.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from barnabas.protocol.structs import replace
from barnabas.storage.uuids import random_uuid, uuid_text

log = logging.getLogger(__name__)

MEMBER_IDS_OF_CLIENTS_SINCE: Final = 1
"""
The first version in which a member makes its id itself (KIP-1082).
"""

Answered: TypeAlias = tuple[GroupResult, ConsumerGroupHeartbeatResponse]


class Heartbeats:
    """
    Handles ConsumerGroupHeartbeat for the groups of one partition.
    """

    def __init__(
        self,
        groups: Groups,
        *,
        sessions: Sessions,
        regexes: Regexes,
        rebalancing: Rebalancing,
        fencing: Fencing,
        migration: Migration,
        config_of: GroupConfigOf,
        options: CoordinationOptions,
    ) -> None:
        self._groups = groups
        self._sessions = sessions
        self._regexes = regexes
        self._rebalancing = rebalancing
        self._fencing = fencing
        self._migration = migration
        self._config_of = config_of
        self._options = options

    def heartbeat(
        self, request: ConsumerGroupHeartbeatRequest, caller: Caller, now_ms: int
    ) -> Answered:
        """
        Let a member join, stay or leave.

        Raises:
            KafkaError: the request is refused; the sentence says why.
        """
        if request.member_epoch in {LEAVING, LEAVING_FOR_A_WHILE}:
            return self._leave(request, now_ms)
        records: list[CoordinatorRecord] = []
        group = self._group_of(request, records)
        group.check_size(self._options.group_consumer_max_size, request.member_id)
        member_id = request.member_id or uuid_text(random_uuid())
        before = self._member_of(group, request, member_id, records)
        if not records and self._changes_nothing(group, before, request, caller):
            self._sessions.prolong(group.group_id, member_id)
            return NOTHING, self._answer(group.group_id, before)
        return self._pass(group, before, request, caller=caller, records=records, now_ms=now_ms)

    # Group and member

    def _group_of(
        self, request: ConsumerGroupHeartbeatRequest, records: list[CoordinatorRecord]
    ) -> ConsumerGroup:
        """
        The group; a new one for a member that joins, which is not among the groups yet.

        Raises:
            GroupIdNotFound: there is none, or it is of another type.
        """
        if request.member_epoch != JOINING:
            return self._groups.find_of_member(request.group_id, ConsumerGroup)
        group = self._groups.get(request.group_id)
        match group:
            case None:
                return ConsumerGroup(request.group_id)
            case ConsumerGroup():
                return group
            case ClassicGroup() if group.is_empty:
                records.append(GroupRecord(request.group_id, None))
                return ConsumerGroup(request.group_id)
            case ClassicGroup():
                return self._migration.upgrade(group, self._sessions, records)
            case _:
                raise GroupIdNotFound(f"Group {request.group_id} is not a consumer group.")

    def _member_of(
        self,
        group: ConsumerGroup,
        request: ConsumerGroupHeartbeatRequest,
        member_id: str,
        records: list[CoordinatorRecord],
    ) -> ConsumerGroupMember:
        """
        The member that sends the heartbeat; one without subscription if it is new.

        Args:
            records: gets those that replace a static member.

        Raises:
            UnknownMemberId, FencedMemberEpoch, FencedInstanceId, UnreleasedInstanceId: the sender
                is not that member any more, or not yet.
        """
        if request.instance_id is not None:
            return self._static_member_of(group, request, member_id, request.instance_id, records)
        member = group.sender(member_id, request.member_epoch)
        _check_epoch(member, request)
        if request.member_epoch == JOINING:
            log.info("Group %s: %s joins", group.group_id, member_id)
        return member

    def _static_member_of(
        self,
        group: ConsumerGroup,
        request: ConsumerGroupHeartbeatRequest,
        member_id: str,
        instance_id: str,
        records: list[CoordinatorRecord],
    ) -> ConsumerGroupMember:
        current = group.static_member(instance_id)
        if request.member_epoch != JOINING:
            current = expect_static(current, member_id, instance_id)
            _check_epoch(current, request)
            return current
        if current is None:
            log.info("Group %s: %s joins as %s", group.group_id, member_id, instance_id)
            return group.sender(member_id, JOINING)
        if not (current.is_classic or current.has_left_for_a_while):
            raise UnreleasedInstanceId(
                f"Static member {member_id} with instance id {instance_id} cannot join the group"
                f" because the instance id is owned by {current.member_id} member."
            )
        log.info(
            "Group %s: %s replaces %s of %s",
            group.group_id,
            member_id,
            current.member_id,
            instance_id,
        )
        return replace_static_member(group, current, member_id, records)

    # Staying

    def _changes_nothing(
        self,
        group: ConsumerGroup,
        member: ConsumerGroupMember,
        request: ConsumerGroupHeartbeatRequest,
        caller: Caller,
    ) -> bool:
        """
        Whether this is the heartbeat of a member that has nothing to say, in a group where nothing
        is to be done: almost all are. What a member owns that has its target does not matter.
        """
        return (
            request.member_epoch == member.member_epoch != JOINING
            and request.subscribed_topic_names is None
            and request.subscribed_topic_regex is None
            and request.rebalance_timeout_ms == NOT_SENT
            and request.server_assignor is None
            and request.rack_id is None
            and (request.instance_id is None or request.instance_id == member.instance_id)
            and caller.client_id == member.client_id
            and caller.client_host == member.client_host
            and member.classic is None
            and not group.subscriptions.regexes
            and not group.is_metadata_stale
            and group.assignment_epoch >= group.group_epoch
            and member.is_reconciled_to(group.assignment_epoch)
        )

    def _pass(
        self,
        group: ConsumerGroup,
        before: ConsumerGroupMember,
        request: ConsumerGroupHeartbeatRequest,
        *,
        caller: Caller,
        records: list[CoordinatorRecord],
        now_ms: int,
    ) -> Answered:
        """
        Take what the member says, and see how far that changes the group.
        """
        group_id = group.group_id
        member = _updated(before, request, caller)
        if member != before:
            records.append(member_record(group_id, member))
        has_new_names = member.topic_names != before.topic_names
        regex = self._regexes.update(
            group, before, member, caller=caller, now_ms=now_ms, records=records
        )
        must_bump = has_new_names or regex is RegexUpdate.UPDATED_AND_RESOLVED
        change = self._rebalancing.change_of(
            group, before, member, request.subscribed_topic_names, must_bump=must_bump
        )
        epoch = self._rebalancing.next_epoch(group, change, records, must_bump=must_bump)
        target = self._rebalancing.target_of(group, change, epoch, records, now_ms=now_ms)
        after = self._rebalancing.reconcile(
            group,
            member,
            target,
            records,
            owned=request.topic_partitions,
            has_new_subscription=has_new_names or regex is not RegexUpdate.NONE,
        )
        self._sessions.prolong(group_id, member.member_id)
        is_full = (
            request.rebalance_timeout_ms != NOT_SENT
            and request.topic_partitions is not None
            and (
                request.subscribed_topic_names is not None
                or request.subscribed_topic_regex is not None
            )
        )
        tells = request.member_epoch == JOINING or is_full or after.assigned != before.assigned
        answer = self._answer(group_id, after, after.assigned if tells else None)
        return CoordinatorResult(records=records), answer

    def _leave(self, request: ConsumerGroupHeartbeatRequest, now_ms: int) -> Answered:
        group = self._groups.find(request.group_id, ConsumerGroup)
        answer = ConsumerGroupHeartbeatResponse(
            error_code=ErrorCode.NONE,
            member_id=request.member_id,
            member_epoch=request.member_epoch,
        )
        if request.instance_id is None:
            member = group.expect_member(request.member_id)
        else:
            static = group.static_member(request.instance_id)
            member = expect_static(static, request.member_id, request.instance_id)
            if request.member_epoch == LEAVING_FOR_A_WHILE:
                log.info("Group %s: %s leaves for a while", group.group_id, member.member_id)
                record = current_record(group.group_id, _left_for_a_while(member))
                return CoordinatorResult(records=[record]), answer
        log.info("Group %s: %s leaves", group.group_id, member.member_id)
        return self._fencing.fence(group, [member], now_ms), answer

    def _answer(
        self, group_id: str, member: ConsumerGroupMember, assigned: Assigned | None = None
    ) -> ConsumerGroupHeartbeatResponse:
        """
        Args:
            assigned: what the member is told that it has; None if it is told nothing.
        """
        return ConsumerGroupHeartbeatResponse(
            error_code=ErrorCode.NONE,
            member_id=member.member_id,
            member_epoch=member.member_epoch,
            heartbeat_interval_ms=self._config_of(group_id).consumer_heartbeat_interval_ms,
            assignment=None
            if assigned is None
            else Assignment(topic_partitions=topic_partitions(TopicPartitions, assigned)),
        )


def check_heartbeat(
    request: ConsumerGroupHeartbeatRequest, version: int, assignors: Collection[str]
) -> None:
    """
    See whether any group would take this request.

    Args:
        assignors: those that members may ask for.

    Raises:
        InvalidRequest, UnsupportedAssignor: none would.
    """
    epoch = request.member_epoch
    if version >= MEMBER_IDS_OF_CLIENTS_SINCE or epoch > 0 or epoch == LEAVING:
        check_text("MemberId", request.member_id)
    check_text("GroupId", request.group_id)
    check_text("InstanceId", request.instance_id)
    check_text("RackId", request.rack_id)
    if epoch == JOINING:
        _check_join(request)
    elif epoch == LEAVING_FOR_A_WHILE and request.instance_id is None:
        raise InvalidRequest("InstanceId can't be null.")
    elif epoch < LEAVING_FOR_A_WHILE:
        raise InvalidRequest("MemberEpoch is invalid.")
    if request.server_assignor is not None and request.server_assignor not in assignors:
        supported = ", ".join(name for name in ASSIGNORS if name in assignors)
        raise UnsupportedAssignor(
            f"ServerAssignor {request.server_assignor} is not supported. Supported assignors:"
            f" {supported}."
        )


def _check_join(request: ConsumerGroupHeartbeatRequest) -> None:
    if request.rebalance_timeout_ms == NOT_SENT:
        raise InvalidRequest("RebalanceTimeoutMs must be provided in first request.")
    if request.topic_partitions is None or request.topic_partitions:
        raise InvalidRequest("TopicPartitions must be empty when (re-)joining.")
    if request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
        raise InvalidRequest(
            "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when"
            " (re-)joining."
        )


def _check_epoch(member: ConsumerGroupMember, request: ConsumerGroupHeartbeatRequest) -> None:
    """
    Raises:
        FencedMemberEpoch: the member is at another epoch. A smaller one is accepted if the answer
            with the present one may have been lost.
    """
    epoch, known = request.member_epoch, member.member_epoch
    if epoch in {JOINING, known}:
        return
    if epoch == member.previous_member_epoch < known and _has_only_its_own(request, member):
        return
    raise fenced(GroupType.CONSUMER, epoch, known)


def _has_only_its_own(request: ConsumerGroupHeartbeatRequest, member: ConsumerGroupMember) -> bool:
    owned = request.topic_partitions
    return owned is not None and all(
        topic.topic_id in member.assigned
        and member.assigned[topic.topic_id].keys() >= set(topic.partitions)
        for topic in owned
    )


def _updated(
    member: ConsumerGroupMember, request: ConsumerGroupHeartbeatRequest, caller: Caller
) -> ConsumerGroupMember:
    """
    The member, with what the request says of it; what is not said stays.
    """
    names = request.subscribed_topic_names
    regex = request.subscribed_topic_regex
    timeout_ms = request.rebalance_timeout_ms
    return replace(
        member,
        instance_id=member.instance_id if request.instance_id is None else request.instance_id,
        rack_id=member.rack_id if request.rack_id is None else request.rack_id,
        rebalance_timeout_ms=(
            member.rebalance_timeout_ms if timeout_ms == NOT_SENT else timeout_ms
        ),
        server_assignor=request.server_assignor or member.server_assignor,
        topic_names=member.topic_names if names is None else frozenset(names),
        topic_regex=member.topic_regex if regex is None else regex,
        client_id=caller.client_id,
        client_host=caller.client_host,
        classic=None,
    )


def _left_for_a_while(member: ConsumerGroupMember) -> ConsumerGroupMember:
    """
    The static member that is going to come back. What it has is kept for it, from epoch 0 on.
    """
    return replace(
        member,
        member_epoch=LEAVING_FOR_A_WHILE,
        pending_revocation=NOTHING_ASSIGNED,
        assigned={t: dict.fromkeys(partitions, 0) for t, partitions in member.assigned.items()},
    )


def expect_static(
    member: ConsumerGroupMember | None, member_id: str, instance_id: str
) -> ConsumerGroupMember:
    """
    The static member, which the sender has to be.

    Raises:
        UnknownMemberId: no member has the instance id.
        FencedInstanceId: another member has it.
    """
    if member is None:
        raise UnknownMemberId(f"Instance id {instance_id} is unknown.")
    if member.member_id != member_id:
        raise FencedInstanceId(
            f"Static member {member_id} with instance id {instance_id} was fenced by member"
            f" {member.member_id}."
        )
    return member


def replace_static_member(
    group: ConsumerGroup,
    before: ConsumerGroupMember,
    member_id: str,
    records: list[CoordinatorRecord],
) -> ConsumerGroupMember:
    """
    The member that takes the place of a static one, with what that one had.

    Args:
        records: gets those of the replacement.
    """
    after = replace(before, member_id=member_id, member_epoch=0, previous_member_epoch=0)
    records += member_tombstones(group.group_id, before.member_id)
    records.append(member_record(group.group_id, after))
    records.append(target_record(group.group_id, member_id, group.target_of(before.member_id)))
    records.append(current_record(group.group_id, after))
    return after
