"""
ShareGroupHeartbeat: members of share groups join, stay and leave (KIP-932).

Follows Kafka's ``GroupMetadataManager.shareGroupHeartbeat``. Members are assigned partitions whose
states are initialized; a heartbeat that finds others begins to initialize them.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Final, TypeAlias
from uuid import UUID

from barnabas.coordination.config.coordinators import CoordinationOptions
from barnabas.coordination.config.groups import GroupConfigOf
from barnabas.coordination.coordinator_runtime.result import CoordinatorResult
from barnabas.coordination.coordinator_runtime.timers import Timers
from barnabas.coordination.groups.assignors import simple_assignor
from barnabas.coordination.groups.caller import Caller
from barnabas.coordination.groups.group_type import GroupType
from barnabas.coordination.groups.groups import Groups
from barnabas.coordination.groups.modern.epochs import next_epoch
from barnabas.coordination.groups.modern.member import JOINING, LEAVING
from barnabas.coordination.groups.modern.requests import check_text, fenced
from barnabas.coordination.groups.modern.sessions import MemberSessions
from barnabas.coordination.groups.modern.subscriptions import Subscriptions
from barnabas.coordination.groups.modern.target import Assignor, MemberChange, new_target
from barnabas.coordination.groups.modern.topics import SubscribedTopics, topic_partitions
from barnabas.coordination.groups.records import CoordinatorRecord, GroupResult
from barnabas.coordination.groups.share import records as share_records
from barnabas.coordination.groups.share.group import ShareGroup
from barnabas.coordination.groups.share.member import AssignedPartitions, ShareGroupMember
from barnabas.coordination.groups.share.state_partitions import (
    StatePartitions,
    StatesByTopic,
    TopicStates,
)
from barnabas.protocol.errors import (
    ErrorCode,
    InvalidRequest,
)
from barnabas.protocol.messages.share_group_heartbeat import (
    Assignment,
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
    TopicPartitions,
)
from barnabas.protocol.structs import NamedTuple, replace

log = logging.getLogger(__name__)

SIMPLE: Final = Assignor(simple_assignor.NAME, simple_assignor.assign)


class Initialization(NamedTuple):
    """
    States that are to be initialized once the heartbeat is answered.
    """

    group_id: str
    state_epoch: int
    topics: StatesByTopic


Answered: TypeAlias = tuple[GroupResult, ShareGroupHeartbeatResponse, Initialization | None]


class ShareHeartbeats:
    """
    Handles ShareGroupHeartbeat for the groups of one partition.
    """

    def __init__(
        self,
        groups: Groups,
        *,
        timers: Timers,
        topics: SubscribedTopics,
        config_of: GroupConfigOf,
        options: CoordinationOptions,
    ) -> None:
        self.sessions: MemberSessions[ShareGroup, ShareGroupMember] = MemberSessions(
            groups,
            timers,
            ShareGroup,
            lambda group_id: config_of(group_id).share_session_timeout_ms,
        )
        self.sessions.fence = self._fence
        self._groups = groups
        self._topics = topics
        self._config_of = config_of
        self._options = options

    def heartbeat(
        self, request: ShareGroupHeartbeatRequest, caller: Caller, now_ms: int
    ) -> Answered:
        """
        Let a member join, stay or leave.

        Raises:
            KafkaError: the request is refused; the sentence says why.
        """
        if request.member_epoch == LEAVING:
            return self._leave(request, now_ms)
        group = self._group_of(request)
        before = self._member_of(group, request)
        member = _updated(before, request, caller)
        records: list[CoordinatorRecord] = []
        if member != before:
            records.append(share_records.member_record(group.group_id, member))
        subscriptions = group.subscriptions.changed(before, member)
        change = MemberChange(member, before, None, subscriptions, request.subscribed_topic_names)
        has_changed = member.topic_names != before.topic_names
        if group.assignment_epoch >= group.group_epoch:
            has_changed |= group.has_unassigned_partitions
        epoch = group.group_epoch
        if has_changed or group.is_metadata_stale:
            epoch = next_epoch(
                group,
                subscriptions,
                self._topics,
                records,
                epoch_record=share_records.epoch_record,
                must_bump=has_changed,
            )
        target_epoch, target = self._target_of(group, change, epoch, records, now_ms=now_ms)
        is_bumped = epoch != group.group_epoch
        after = self._reconciled(member, target_epoch, target, has_changed=has_changed or is_bumped)
        if after != member:
            records.append(share_records.current_record(group.group_id, after))
        self.sessions.prolong(group.group_id, member.member_id)
        initialization = self._initialization(group, epoch, subscriptions, records, now_ms=now_ms)
        tells = (
            request.member_epoch == JOINING
            or request.subscribed_topic_names is not None
            or after.assigned != before.assigned
        )
        answer = self._answer(group.group_id, after, tells=tells)
        return CoordinatorResult(records=records), answer, initialization

    # Group and member

    def _group_of(self, request: ShareGroupHeartbeatRequest) -> ShareGroup:
        """
        The group; a new one for a member that joins, which is not among the groups yet.

        Raises:
            GroupIdNotFound: there is none, or it is of another type.
            GroupMaxSizeReached: it has no room for the member.
        """
        if request.member_epoch == JOINING and self._groups.get(request.group_id) is None:
            group = ShareGroup(request.group_id)
        else:
            group = self._groups.find_of_member(request.group_id, ShareGroup)
        group.check_size(self._options.group_share_max_size, request.member_id)
        return group

    def _member_of(
        self, group: ShareGroup, request: ShareGroupHeartbeatRequest
    ) -> ShareGroupMember:
        """
        The member that sends the heartbeat; one without subscription if it is new.

        Raises:
            UnknownMemberId, FencedMemberEpoch: the sender is not that member any more.
        """
        member = group.sender(request.member_id, request.member_epoch)
        _check_epoch(member, request.member_epoch)
        if request.member_epoch == JOINING:
            log.info("Group %s: %s joins", group.group_id, member.member_id)
        return member

    # Epochs and targets

    def _target_of(
        self,
        group: ShareGroup,
        change: MemberChange[ShareGroupMember],
        epoch: int,
        records: list[CoordinatorRecord],
        *,
        now_ms: int,
    ) -> tuple[int, AssignedPartitions]:
        """
        The target of the changed member, and the epoch that it is for.

        Raises:
            UnknownServerError: the assignor failed.
        """
        member_id = change.member.member_id
        interval_ms = self._config_of(group.group_id).share_assignment_interval_ms
        if group.assignment_epoch >= epoch or not group.may_assign(interval_ms, now_ms):
            return group.assignment_epoch, group.targets.get(member_id, {})
        initialized = group.known_states.initialized
        made = new_target(
            group,
            change,
            epoch=epoch,
            assignor=SIMPLE,
            topics=self._topics,
            now_ms=now_ms,
            assignable={each: topic.partitions for each, topic in initialized.items()},
        )
        records += made.records
        return epoch, made.of_member

    def _reconciled(
        self, member: ShareGroupMember, epoch: int, target: AssignedPartitions, *, has_changed: bool
    ) -> ShareGroupMember:
        """
        The member with its target (Kafka's ``ShareGroupAssignmentBuilder``).
        """
        if member.member_epoch == epoch and not has_changed:
            return member
        subscribed = self._topics.ids(member.topic_names)
        assigned = {each: found for each, found in target.items() if each in subscribed}
        if member.member_epoch == epoch:
            return replace(member, assigned=assigned)
        return replace(
            member,
            member_epoch=epoch,
            previous_member_epoch=member.member_epoch,
            assigned=assigned,
        )

    # States of partitions

    def _initialization(
        self,
        group: ShareGroup,
        epoch: int,
        subscriptions: Subscriptions,
        records: list[CoordinatorRecord],
        *,
        now_ms: int,
    ) -> Initialization | None:
        """
        The states that the subscribed topics lack; those that are being initialized for too long
        are tried again.
        """
        version = self._topics.topics.version
        if group.all_initialized_at == version and not records:
            return None
        states = group.known_states
        since_ms = group.initializing_since_ms
        if since_ms is None:
            since_ms = group.initializing_since_ms = now_ms
        is_fresh = now_ms - since_ms < self._options.group_share_initialize_retry_interval_ms
        gone = self._gone(states)
        states = states.without(gone) if gone else states
        missing = self._missing(states, subscriptions, is_fresh=is_fresh)
        if missing or gone:
            begun = states.beginning(missing)
            records.append(share_records.state_partitions_record(group.group_id, begun))
        elif not records and not states.initializing:
            group.all_initialized_at = version
        return Initialization(group.group_id, epoch, missing) if missing else None

    def _gone(self, states: StatePartitions) -> set[UUID]:
        """
        The topics with states that do not exist any more. Their deletion has written that, unless a
        crash came between; and while it is not known, each heartbeat would try to assign them.
        """
        known = {*states.initializing, *states.initialized, *states.deleting}
        return {each for each in known if self._topics.topics.get_by_id(each) is None}

    def _missing(
        self, states: StatePartitions, subscriptions: Subscriptions, *, is_fresh: bool
    ) -> dict[UUID, TopicStates]:
        """
        The partitions of subscribed topics that have no states.

        Args:
            is_fresh: whether those may still come that are being initialized.
        """
        missing: dict[UUID, TopicStates] = {}
        for name in sorted(self._topics.topics.existing(subscriptions.topics)):
            topic = self._topics.topics.get(name)
            if topic is None:
                continue
            known = set(_partitions(states.initialized, topic.id))
            if is_fresh:
                known |= _partitions(states.initializing, topic.id)
            partitions = frozenset(range(len(topic.partitions))) - known
            if partitions:
                missing[topic.id] = TopicStates(name, partitions)
        return missing

    # Leaving

    def _leave(self, request: ShareGroupHeartbeatRequest, now_ms: int) -> Answered:
        group = self._groups.find(request.group_id, ShareGroup)
        member = group.expect_member(request.member_id)
        log.info("Group %s: %s leaves", group.group_id, member.member_id)
        answer = ShareGroupHeartbeatResponse(
            member_id=request.member_id, member_epoch=request.member_epoch
        )
        return self._fence(group, [member], now_ms), answer, None

    def _fence(
        self, group: ShareGroup, members: Sequence[ShareGroupMember], _now_ms: int
    ) -> GroupResult:
        """
        Remove members, and begin a new epoch.
        """
        subscriptions = group.subscriptions.copy()
        records: list[CoordinatorRecord] = []
        for member in members:
            subscriptions.remove(member)
            records += share_records.member_tombstones(group.group_id, member.member_id)
        epoch = group.group_epoch + 1
        metadata_hash = self._topics.hash(subscriptions.topics)
        records.append(share_records.epoch_record(group.group_id, epoch, metadata_hash))
        member_ids = [member.member_id for member in members]
        log.debug("Group %s: epoch %d begins without %s", group.group_id, epoch, member_ids)
        return self.sessions.removing(group, members, CoordinatorResult(records=records))

    def _answer(
        self, group_id: str, member: ShareGroupMember, *, tells: bool
    ) -> ShareGroupHeartbeatResponse:
        """
        Args:
            tells: whether the member is told what it has.
        """
        partitions = topic_partitions(TopicPartitions, member.assigned) if tells else []
        return ShareGroupHeartbeatResponse(
            error_code=ErrorCode.NONE,
            member_id=member.member_id,
            member_epoch=member.member_epoch,
            heartbeat_interval_ms=self._config_of(group_id).share_heartbeat_interval_ms,
            assignment=Assignment(topic_partitions=partitions) if tells else None,
        )


def check_heartbeat(request: ShareGroupHeartbeatRequest) -> None:
    """
    See whether any group would take this request.

    Raises:
        InvalidRequest: none would.
    """
    check_text("MemberId", request.member_id)
    check_text("GroupId", request.group_id)
    check_text("RackId", request.rack_id)
    if request.member_epoch == JOINING:
        if not request.subscribed_topic_names:
            raise InvalidRequest("SubscribedTopicNames must be set in first request.")
    elif request.member_epoch < LEAVING:
        raise InvalidRequest("MemberEpoch is invalid.")


def _check_epoch(member: ShareGroupMember, epoch: int) -> None:
    """
    Raises:
        FencedMemberEpoch: the member is at another epoch. The previous one is accepted, since the
            answer with the present one may have been lost.
    """
    known, previous = member.member_epoch, member.previous_member_epoch
    if epoch in {JOINING, known} or epoch == previous < known:
        return
    more = (
        "" if epoch > known else f", and it does not match the previous member epoch ({previous})"
    )
    raise fenced(GroupType.SHARE, epoch, known, more)


def _updated(
    member: ShareGroupMember, request: ShareGroupHeartbeatRequest, caller: Caller
) -> ShareGroupMember:
    """
    The member, with what the request says of it; what is not said stays.
    """
    names = request.subscribed_topic_names
    return replace(
        member,
        rack_id=member.rack_id if request.rack_id is None else request.rack_id,
        topic_names=member.topic_names if names is None else frozenset(names),
        client_id=caller.client_id,
        client_host=caller.client_host,
    )


def _partitions(topics: StatesByTopic, topic_id: UUID) -> frozenset[int]:
    topic = topics.get(topic_id)
    return frozenset() if topic is None else topic.partitions
