"""
StreamsGroupHeartbeat: members of streams groups join, stay and leave (KIP-1071).

A heartbeat is one pass through the group, and writes what has changed on the way::

    member --> topology --> topics --> group epoch --> target assignment --> what the member has

Follows Kafka's ``GroupMetadataManager.streamsGroupHeartbeat``.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from barnabas.coordination.config.coordinators import CoordinationOptions
from barnabas.coordination.config.groups import GroupConfigOf
from barnabas.coordination.coordinator_runtime.result import CoordinatorResult
from barnabas.coordination.groups.assignors.tasks import TasksTuple
from barnabas.coordination.groups.caller import Caller
from barnabas.coordination.groups.classic.group import ClassicGroup
from barnabas.coordination.groups.group_type import GroupType
from barnabas.coordination.groups.groups import Groups
from barnabas.coordination.groups.modern.member import (
    JOINING,
    LEAVING,
    LEAVING_FOR_A_WHILE,
    NOT_SENT,
)
from barnabas.coordination.groups.modern.requests import check_text, fenced
from barnabas.coordination.groups.modern.topics import ClusterTopics
from barnabas.coordination.groups.records import CoordinatorRecord, GroupRecord, GroupResult
from barnabas.coordination.groups.streams.configured_topology import ConfiguredTopology
from barnabas.coordination.groups.streams.endpoints import partitions_by_endpoint
from barnabas.coordination.groups.streams.fencing import Fencing
from barnabas.coordination.groups.streams.group import StreamsGroup
from barnabas.coordination.groups.streams.member import StreamsGroupMember, UserEndpoint
from barnabas.coordination.groups.streams.rebalancing import Rebalancing
from barnabas.coordination.groups.streams.records import in_order, member_record, topology_record
from barnabas.coordination.groups.streams.sessions import Sessions
from barnabas.coordination.groups.streams.statuses import StatusCode, status
from barnabas.coordination.groups.streams.topology import StreamsTopology, topology_of
from barnabas.protocol.errors import (
    ErrorCode,
    GroupIdNotFound,
    InvalidRequest,
    StreamsInvalidTopology,
    UnknownServerError,
)
from barnabas.protocol.messages.create_topics import CreatableTopic
from barnabas.protocol.messages.streams_group_heartbeat import (
    KeyValue,
    Status,
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
    TaskIds,
    Topology,
)
from barnabas.protocol.structs import NamedTuple, replace

log = logging.getLogger(__name__)

NO_TOPICS: Final[Mapping[str, CreatableTopic]] = MappingProxyType({})


class Answered(NamedTuple):
    """
    The outcome of a heartbeat (Kafka's ``StreamsGroupHeartbeatResult``, with its records).
    """

    result: GroupResult
    response: StreamsGroupHeartbeatResponse
    missing_topics: Mapping[str, CreatableTopic] = NO_TOPICS
    """The internal topics that the broker has to create."""


class Heartbeats:
    """
    Handles StreamsGroupHeartbeat for the groups of one partition.
    """

    def __init__(
        self,
        groups: Groups,
        *,
        topics: ClusterTopics,
        sessions: Sessions,
        rebalancing: Rebalancing,
        fencing: Fencing,
        config_of: GroupConfigOf,
        options: CoordinationOptions,
    ) -> None:
        self._groups = groups
        self._topics = topics
        self._sessions = sessions
        self._rebalancing = rebalancing
        self._fencing = fencing
        self._config_of = config_of
        self._options = options

    def heartbeat(
        self, request: StreamsGroupHeartbeatRequest, caller: Caller, now_ms: int
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
        before = group.sender(request.member_id, request.member_epoch)
        _check_epoch(before, request)
        if request.member_epoch == JOINING:
            log.info("Group %s: %s joins", group.group_id, before.member_id)
        return self._pass(group, before, request, caller=caller, records=records, now_ms=now_ms)

    def _group_of(
        self, request: StreamsGroupHeartbeatRequest, records: list[CoordinatorRecord]
    ) -> StreamsGroup:
        """
        The group; a new one for a member that joins, which is not among the groups yet.

        Raises:
            GroupIdNotFound: there is none, or it is of another type.
            GroupMaxSizeReached: nobody can join, not even a member that rejoins.
        """
        if request.member_epoch != JOINING:
            return self._groups.find_of_member(request.group_id, StreamsGroup)
        group = self._groups.get(request.group_id)
        match group:
            case None:
                return StreamsGroup(request.group_id)
            case ClassicGroup() if group.is_empty:
                records.append(GroupRecord(request.group_id, None))
                return StreamsGroup(request.group_id)
            case StreamsGroup():
                group.check_size(self._options.group_streams_max_size)
                return group
            case _:
                raise GroupIdNotFound(f"Group {request.group_id} is not a streams group.")

    # Staying

    def _pass(
        self,
        group: StreamsGroup,
        before: StreamsGroupMember,
        request: StreamsGroupHeartbeatRequest,
        *,
        caller: Caller,
        records: list[CoordinatorRecord],
        now_ms: int,
    ) -> Answered:
        """
        Take what the member says, and see how far that changes the group.
        """
        group_id, rebalancing = group.group_id, self._rebalancing
        statuses: list[Status] = []
        member = _updated(before, request, caller)
        if member != before:
            records.append(member_record(group_id, member))
        topology = _topology_of(group, request.topology, records)
        _check_topology_epoch(group, member, statuses)
        outlook = rebalancing.outlook_of(group, topology)
        if outlook.topology.is_ready:
            for tasks in (request.active_tasks, request.standby_tasks, request.warmup_tasks):
                _check_tasks(outlook.topology, tasks or ())
        configs = rebalancing.assignment_configs(group_id)
        epoch = rebalancing.next_epoch(group, outlook, configs, records, must_bump=member != before)
        rebalancing.delay_assignment(group)
        target = rebalancing.target_of(
            group,
            member,
            outlook.topology,
            epoch,
            records=records,
            statuses=statuses,
            configs=configs,
            now_ms=now_ms,
        )
        after = rebalancing.reconcile(group, member, target, records, owned=_owned(request))
        group.configured_topology = outlook.topology
        group.refreshed_epoch = epoch
        self._sessions.prolong(group_id, member.member_id)
        if request.shutdown_application:
            group.request_shutdown(member.member_id)
        problem = outlook.topology.problem
        if problem is not None:
            statuses.append(problem.status)
        if group.shutdown_requested_by is not None:
            statuses.append(_shutdown(group.shutdown_requested_by))
        response = self._answer(
            group, before, after, request, topology=outlook.topology, statuses=statuses
        )
        return Answered(CoordinatorResult(records=records), response, outlook.topology.missing)

    def _answer(
        self,
        group: StreamsGroup,
        before: StreamsGroupMember,
        after: StreamsGroupMember,
        request: StreamsGroupHeartbeatRequest,
        *,
        topology: ConfiguredTopology,
        statuses: list[Status],
    ) -> StreamsGroupHeartbeatResponse:
        is_news = request.member_epoch == JOINING or after.assigned != before.assigned
        # At the epoch before, the answer with the tasks may have been lost. Kafka tells no more.
        tells = is_news or request.member_epoch < before.member_epoch
        if is_news and after.user_endpoint is not None:
            group.endpoint_information_epoch += 1
        endpoint_epoch = group.endpoint_information_epoch
        active, standby, warmup = (
            [TaskIds(subtopology_id=each, partitions=numbers) for each, numbers in in_order(tasks)]
            for tasks in after.assigned.by_role
        )
        return StreamsGroupHeartbeatResponse(
            error_code=ErrorCode.NONE,
            member_id=after.member_id,
            member_epoch=after.member_epoch,
            heartbeat_interval_ms=self._config_of(group.group_id).streams_heartbeat_interval_ms,
            status=statuses,
            active_tasks=active if tells else None,
            standby_tasks=standby if tells else None,
            warmup_tasks=warmup if tells else None,
            # The epoch of a new group is not kept.
            endpoint_information_epoch=(
                endpoint_epoch if self._groups.get(group.group_id) is not None else 0
            ),
            partitions_by_user_endpoint=(
                partitions_by_endpoint(group, after, topology, self._topics)
                if endpoint_epoch != request.endpoint_information_epoch
                else None
            ),
        )

    # Leaving

    def _leave(self, request: StreamsGroupHeartbeatRequest, now_ms: int) -> Answered:
        group = self._groups.find(request.group_id, StreamsGroup)
        if request.shutdown_application:
            group.request_shutdown(request.member_id)
        member = group.expect_member(request.member_id)
        log.info("Group %s: %s leaves", group.group_id, member.member_id)
        answer = StreamsGroupHeartbeatResponse(
            error_code=ErrorCode.NONE,
            member_id=request.member_id,
            member_epoch=request.member_epoch,
            status=[],
        )
        return Answered(self._fencing.fence(group, [member], now_ms), answer)


# Requests that no group would take.


def check_heartbeat(request: StreamsGroupHeartbeatRequest) -> None:
    """
    See whether any group would take this request.

    Raises:
        InvalidRequest, StreamsInvalidTopology: none would.
    """
    _check_features(request)
    check_text("MemberId", request.member_id)
    check_text("GroupId", request.group_id)
    check_text("RackId", request.rack_id)
    epoch = request.member_epoch
    if epoch == JOINING:
        _check_join(request)
    elif epoch == LEAVING_FOR_A_WHILE:
        raise InvalidRequest("InstanceId can't be null.")
    elif epoch < LEAVING_FOR_A_WHILE:
        raise InvalidRequest(
            f"MemberEpoch is {epoch}, but must be greater than or equal to {LEAVING_FOR_A_WHILE}."
        )
    given = [
        tasks is not None
        for tasks in (request.active_tasks, request.standby_tasks, request.warmup_tasks)
    ]
    if any(given) and not all(given):
        raise InvalidRequest("If one task-type is non-null, all must be non-null.")
    if epoch != JOINING and request.topology is not None:
        raise InvalidRequest("Topology can only be provided when (re-)joining.")


def _check_features(request: StreamsGroupHeartbeatRequest) -> None:
    """
    See whether the request uses only what Kafka's brokers implement so far.
    """
    if request.instance_id is not None:
        raise InvalidRequest("Static membership is not yet supported.")
    if request.task_offsets is not None:
        raise InvalidRequest("TaskOffsets are not supported yet.")
    if request.task_end_offsets is not None:
        raise InvalidRequest("TaskEndOffsets are not supported yet.")
    if request.warmup_tasks:
        raise InvalidRequest("WarmupTasks are not supported yet.")
    topology = request.topology
    if topology is not None and any(each.source_topic_regex for each in topology.subtopologies):
        raise InvalidRequest("Regular expressions for source topics are not supported yet.")


def _check_join(request: StreamsGroupHeartbeatRequest) -> None:
    if request.rebalance_timeout_ms == NOT_SENT:
        raise InvalidRequest("RebalanceTimeoutMs must be provided in first request.")
    for name, tasks in (
        ("ActiveTasks", request.active_tasks),
        ("StandbyTasks", request.standby_tasks),
        ("WarmupTasks", request.warmup_tasks),
    ):
        if tasks is None or tasks:
            raise InvalidRequest(f"{name} must be empty when (re-)joining.")
    if request.topology is None:
        raise InvalidRequest("Topology must be non-null when (re-)joining.")
    for subtopology in request.topology.subtopologies:
        for topic in subtopology.state_changelog_topics:
            if topic.partitions:
                raise StreamsInvalidTopology(
                    f"Changelog topic {topic.name} must have an undefined partition count, but it"
                    f" is set to {topic.partitions}."
                )


# What the group knows of the member.


def _check_epoch(member: StreamsGroupMember, request: StreamsGroupHeartbeatRequest) -> None:
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
    raise fenced(GroupType.STREAMS, epoch, known)


def _has_only_its_own(request: StreamsGroupHeartbeatRequest, member: StreamsGroupMember) -> bool:
    said = (request.active_tasks, request.standby_tasks, request.warmup_tasks)
    return all(
        tasks is not None
        and all(
            each.subtopology_id in assigned
            and set(each.partitions) <= set(assigned[each.subtopology_id])
            for each in tasks
        )
        for tasks, assigned in zip(said, member.assigned.by_role, strict=True)
    )


def _updated(
    member: StreamsGroupMember, request: StreamsGroupHeartbeatRequest, caller: Caller
) -> StreamsGroupMember:
    """
    The member, with what the request says of it; what is not said stays.
    """
    topology, timeout_ms = request.topology, request.rebalance_timeout_ms
    endpoint, tags = request.user_endpoint, request.client_tags
    return replace(
        member,
        rack_id=member.rack_id if request.rack_id is None else request.rack_id,
        rebalance_timeout_ms=(
            member.rebalance_timeout_ms if timeout_ms == NOT_SENT else timeout_ms
        ),
        topology_epoch=member.topology_epoch if topology is None else topology.epoch,
        client_id=caller.client_id,
        client_host=caller.client_host,
        process_id=member.process_id if request.process_id is None else request.process_id,
        client_tags=member.client_tags if tags is None else _tags(tags),
        user_endpoint=(
            member.user_endpoint if endpoint is None else UserEndpoint(endpoint.host, endpoint.port)
        ),
    )


def _tags(tags: Collection[KeyValue]) -> Mapping[str, str]:
    found = {tag.key: tag.value for tag in tags}
    if len(found) < len(tags):
        raise UnknownServerError("A member has a tag twice.")
    return found


def _topology_of(
    group: StreamsGroup, topology: Topology | None, records: list[CoordinatorRecord]
) -> StreamsTopology:
    """
    The topology of the group, which its first member brings.

    Raises:
        InvalidRequest: the member's is a later one, or a different one of the same epoch.
    """
    if topology is None:
        if group.topology is None:
            raise UnknownServerError("The topology is null and the group topology is also null.")
        return group.topology
    sent = topology_of(topology)
    if group.topology is None:
        log.info("Group %s: the first topology has epoch %d", group.group_id, sent.epoch)
        records.append(topology_record(group.group_id, sent.record))
        return sent
    if group.topology.epoch <= sent.epoch and group.topology != sent:
        raise InvalidRequest("Topology updates are not supported yet.")
    return group.topology


def _check_topology_epoch(
    group: StreamsGroup, member: StreamsGroupMember, statuses: list[Status]
) -> None:
    topology = group.topology
    if topology is not None and member.topology_epoch < topology.epoch:
        detail = (
            f"The member's topology epoch {member.topology_epoch} is behind the group's topology"
            f" epoch {topology.epoch}."
        )
        statuses.append(status(StatusCode.STALE_TOPOLOGY, detail))


def _check_tasks(topology: ConfiguredTopology, tasks: Sequence[TaskIds]) -> None:
    """
    Raises:
        InvalidRequest: the topology does not have all of these tasks.
    """
    subtopologies = topology.subtopologies or {}
    for each in tasks:
        subtopology = subtopologies.get(each.subtopology_id)
        if subtopology is None:
            raise InvalidRequest(
                f"Subtopology {each.subtopology_id} does not exist in the topology."
            )
        for partition in each.partitions:
            if not 0 <= partition < subtopology.task_count:
                raise InvalidRequest(
                    f"Task {partition} for subtopology {each.subtopology_id} is invalid. Number of"
                    f" tasks for this subtopology: {subtopology.task_count}"
                )


def _owned(request: StreamsGroupHeartbeatRequest) -> TasksTuple | None:
    """
    The tasks that the member says it has.
    """
    active, standby, warmup = request.active_tasks, request.standby_tasks, request.warmup_tasks
    if active is None or standby is None or warmup is None:
        return None
    return TasksTuple(
        *(
            {each.subtopology_id: each.partitions for each in tasks}
            for tasks in (active, standby, warmup)
        )
    )


def _shutdown(member_id: str) -> Status:
    return status(
        StatusCode.SHUTDOWN_APPLICATION,
        f"Streams group member {member_id} encountered a fatal error and requested a shutdown for"
        " the entire application.",
    )
