"""
The records of streams groups, as Kafka's ``StreamsCoordinatorRecordHelpers`` makes them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from barnabas.coordination.groups.assignors.tasks import Tasks, TasksTuple
from barnabas.coordination.groups.modern.member import LEAVING
from barnabas.coordination.groups.modern.records import ModernRecord, RecordTypes, epochs_of
from barnabas.coordination.groups.streams.member import (
    NO_ASSIGNED_TASKS,
    ActiveTasks,
    AssignedTasks,
    MemberState,
    PassiveTasks,
    StreamsGroupMember,
    UserEndpoint,
)
from barnabas.coordination.java_strings import string_rank
from barnabas.protocol.internal_topics.group_records.streams import (
    CurrentTaskIds,
    KeyValue,
    LastAssignmentConfig,
    StreamsGroupCurrentMemberAssignmentKey,
    StreamsGroupCurrentMemberAssignmentValue,
    StreamsGroupMemberMetadataKey,
    StreamsGroupMemberMetadataValue,
    StreamsGroupMetadataKey,
    StreamsGroupMetadataValue,
    StreamsGroupTargetAssignmentMemberKey,
    StreamsGroupTargetAssignmentMemberValue,
    StreamsGroupTargetAssignmentMetadataKey,
    StreamsGroupTargetAssignmentMetadataValue,
    StreamsGroupTopologyKey,
    StreamsGroupTopologyValue,
    TaskIds,
)
from barnabas.protocol.internal_topics.group_records.streams import Endpoint as StoredEndpoint
from barnabas.protocol.structs import replace

_TYPES: Final = RecordTypes(
    epoch=StreamsGroupMetadataValue,
    epoch_key=StreamsGroupMetadataKey,
    member_key=StreamsGroupMemberMetadataKey,
    target_epoch=StreamsGroupTargetAssignmentMetadataValue,
    target_epoch_key=StreamsGroupTargetAssignmentMetadataKey,
    target_key=StreamsGroupTargetAssignmentMemberKey,
    current_key=StreamsGroupCurrentMemberAssignmentKey,
)

# From members to records.

new_member = StreamsGroupMember
target_epoch_record = _TYPES.target_epoch_record
member_tombstones = _TYPES.member_tombstones


def epoch_record(
    group_id: str,
    epoch: int,
    *,
    metadata_hash: int,
    validated_topology_epoch: int,
    assignment_configs: Mapping[str, str],
) -> ModernRecord:
    """
    The record of the group itself.
    """
    return _TYPES.epoch_record(
        group_id,
        epoch,
        metadata_hash,
        validated_topology_epoch=validated_topology_epoch,
        last_assignment_configs=[
            LastAssignmentConfig(key=key, value=value)
            for key, value in sorted(assignment_configs.items())
        ],
    )


def member_record(group_id: str, member: StreamsGroupMember) -> ModernRecord:
    """
    The record of a member and its process.
    """
    endpoint = member.user_endpoint
    value = StreamsGroupMemberMetadataValue(
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        topology_epoch=member.topology_epoch,
        process_id=member.process_id,
        user_endpoint=None
        if endpoint is None
        else StoredEndpoint(host=endpoint.host, port=endpoint.port),
        client_tags=[
            KeyValue(key=key, value=member.client_tags[key])
            for key in sorted(member.client_tags, key=string_rank)
        ],
    )
    key = StreamsGroupMemberMetadataKey(group_id=group_id, member_id=member.member_id)
    return ModernRecord(key, value)


def topology_record(group_id: str, topology: StreamsGroupTopologyValue) -> ModernRecord:
    """
    The record of the topology of a group.
    """
    return ModernRecord(StreamsGroupTopologyKey(group_id=group_id), topology)


def target_record(group_id: str, member_id: str, target: TasksTuple) -> ModernRecord:
    """
    The record of a member's target assignment.
    """
    active, standby, warmup = map(_task_ids, target)
    value = StreamsGroupTargetAssignmentMemberValue(
        active_tasks=active, standby_tasks=standby, warmup_tasks=warmup
    )
    key = StreamsGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id)
    return ModernRecord(key, value)


def current_record(group_id: str, member: StreamsGroupMember) -> ModernRecord:
    """
    The record of what a member has, and its epoch.
    """
    assigned, pending = member.assigned, member.pending_revocation
    value = StreamsGroupCurrentMemberAssignmentValue(
        member_epoch=member.member_epoch,
        previous_member_epoch=member.previous_member_epoch,
        state=member.state,
        active_tasks=_with_epochs(assigned.active),
        standby_tasks=_without_epochs(assigned.standby),
        warmup_tasks=_without_epochs(assigned.warmup),
        active_tasks_pending_revocation=_with_epochs(pending.active),
        standby_tasks_pending_revocation=_without_epochs(pending.standby),
        warmup_tasks_pending_revocation=_without_epochs(pending.warmup),
    )
    key = StreamsGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member.member_id)
    return ModernRecord(key, value)


def group_tombstones(group_id: str, members: Sequence[str]) -> list[ModernRecord]:
    """
    The records that delete a group with its members, in Kafka's order.
    """
    keys = (
        StreamsGroupMetadataKey(group_id=group_id),
        StreamsGroupTopologyKey(group_id=group_id),
    )
    return _TYPES.group_tombstones(group_id, members, keys)


# From records to members.


def with_subscription(
    member: StreamsGroupMember, value: StreamsGroupMemberMetadataValue
) -> StreamsGroupMember:
    """
    The member, with what a record says of it and its process.
    """
    endpoint = value.user_endpoint
    return replace(
        member,
        instance_id=value.instance_id,
        rack_id=value.rack_id,
        client_id=value.client_id,
        client_host=value.client_host,
        rebalance_timeout_ms=value.rebalance_timeout_ms,
        topology_epoch=value.topology_epoch,
        process_id=value.process_id,
        user_endpoint=None if endpoint is None else UserEndpoint(endpoint.host, endpoint.port),
        client_tags={tag.key: tag.value for tag in value.client_tags},
    )


def with_assignment(
    member: StreamsGroupMember, value: StreamsGroupCurrentMemberAssignmentValue
) -> StreamsGroupMember:
    """
    The member, with the epoch and the tasks of a record.
    """
    epoch = value.member_epoch
    return replace(
        member,
        member_epoch=epoch,
        previous_member_epoch=value.previous_member_epoch,
        state=MemberState.of(value.state),
        assigned=AssignedTasks(
            _active(value.active_tasks, epoch),
            _passive(value.standby_tasks),
            _passive(value.warmup_tasks),
        ),
        pending_revocation=AssignedTasks(
            _active(value.active_tasks_pending_revocation, epoch),
            _passive(value.standby_tasks_pending_revocation),
            _passive(value.warmup_tasks_pending_revocation),
        ),
    )


def without_assignment(member: StreamsGroupMember) -> StreamsGroupMember:
    """
    The member, after the tombstone of what it has.
    """
    return replace(
        member,
        member_epoch=LEAVING,
        previous_member_epoch=LEAVING,
        assigned=NO_ASSIGNED_TASKS,
        pending_revocation=NO_ASSIGNED_TASKS,
    )


def target_of(value: StreamsGroupTargetAssignmentMemberValue) -> TasksTuple:
    """
    The target assignment of a record.
    """
    return TasksTuple(
        *(
            {each.subtopology_id: tuple(each.partitions) for each in tasks}
            for tasks in (value.active_tasks, value.standby_tasks, value.warmup_tasks)
        )
    )


def assignment_configs_of(value: StreamsGroupMetadataValue) -> dict[str, str]:
    """
    The configuration of the last assignment, of a record.
    """
    return {config.key: config.value for config in value.last_assignment_configs or ()}


def in_order(tasks: Mapping[str, Collection[int]]) -> list[tuple[str, list[int]]]:
    """
    Tasks by subtopology and partition.
    """
    return [(each, sorted(tasks[each])) for each in sorted(tasks, key=string_rank)]


def _task_ids(tasks: Tasks) -> list[TaskIds]:
    return [
        TaskIds(subtopology_id=subtopology_id, partitions=partitions)
        for subtopology_id, partitions in in_order(tasks)
    ]


def _with_epochs(tasks: ActiveTasks) -> list[CurrentTaskIds]:
    return [
        CurrentTaskIds(
            subtopology_id=subtopology_id,
            partitions=partitions,
            assignment_epochs=[tasks[subtopology_id][each] for each in partitions],
        )
        for subtopology_id, partitions in in_order(tasks)
    ]


def _without_epochs(tasks: PassiveTasks) -> list[CurrentTaskIds]:
    return [
        CurrentTaskIds(subtopology_id=subtopology_id, partitions=partitions)
        for subtopology_id, partitions in in_order(tasks)
    ]


def _active(tasks: Iterable[CurrentTaskIds], default_epoch: int) -> ActiveTasks:
    return {
        each.subtopology_id: epochs_of(each.partitions, each.assignment_epochs, default_epoch)
        for each in tasks
    }


def _passive(tasks: Iterable[CurrentTaskIds]) -> PassiveTasks:
    return {each.subtopology_id: frozenset(each.partitions) for each in tasks}
