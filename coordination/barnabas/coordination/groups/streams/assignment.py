"""
The target assignment of a streams group (Kafka's ``TargetAssignmentBuilder`` of streams groups).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Final

from barnabas.coordination.groups.assignors.errors import TaskAssignorError
from barnabas.coordination.groups.assignors.members import member_order
from barnabas.coordination.groups.assignors.spec import is_same
from barnabas.coordination.groups.assignors.sticky_assignor import assign
from barnabas.coordination.groups.assignors.tasks import (
    NO_TASKS,
    StreamsMemberSpec,
    SubtopologySpec,
    TasksTuple,
)
from barnabas.coordination.groups.modern.records import ModernRecord
from barnabas.coordination.groups.streams.configured_topology import ConfiguredTopology
from barnabas.coordination.groups.streams.group import StreamsGroup
from barnabas.coordination.groups.streams.member import StreamsGroupMember
from barnabas.coordination.groups.streams.records import target_epoch_record, target_record
from barnabas.protocol.errors import UnknownServerError
from barnabas.protocol.structs import NamedTuple
from barnabas.storage.clock import perf_counter

log = logging.getLogger(__name__)

NUM_STANDBY_REPLICAS: Final = "num.standby.replicas"
"""
The name of the option in the record of the group.
"""


class NewTarget(NamedTuple):
    """
    A new target assignment.
    """

    records: list[ModernRecord]
    of_members: Mapping[str, TasksTuple]


def new_target(
    group: StreamsGroup,
    topology: ConfiguredTopology,
    *,
    updated: StreamsGroupMember | None,
    epoch: int,
    configs: Mapping[str, str],
    now_ms: int,
) -> NewTarget:
    """
    Assign all tasks to the members; none, if the topology is not ready.

    Args:
        updated: the member whose heartbeat it is, new or not; None if it is none.
        epoch: the group epoch.

    Raises:
        UnknownServerError: the assignor failed.
    """
    begun = perf_counter()
    members = _specs(group, updated)
    if topology.is_ready and topology.subtopologies is not None:
        try:
            targets = assign(
                members,
                {
                    subtopology_id: SubtopologySpec(each.task_count, each.is_stateful)
                    for subtopology_id, each in topology.subtopologies.items()
                },
                int(configs.get(NUM_STANDBY_REPLICAS, 0)),
            )
        except TaskAssignorError as error:
            sentence = f"Failed to compute a new target assignment for epoch {epoch}: {error}"
            log.error("Group %s: %s", group.group_id, sentence)
            raise UnknownServerError(sentence) from None
    else:
        targets = dict.fromkeys(members, NO_TASKS)
    log.info(
        "Group %s: tasks are assigned to %d members for epoch %d in %.1f ms",
        group.group_id,
        len(members),
        epoch,
        (perf_counter() - begun) * 1000,
    )
    records = []
    for member_id in members:
        before, after = group.targets.get(member_id), targets[member_id]
        if before is None or not all(map(is_same, before, after)):
            records.append(target_record(group.group_id, member_id, after))
    records.append(target_epoch_record(group.group_id, epoch, now_ms))
    return NewTarget(records, targets)


def _specs(group: StreamsGroup, updated: StreamsGroupMember | None) -> dict[str, StreamsMemberSpec]:
    """
    The members as the assignor sees them, in Kafka's order.
    """
    updated_id = None if updated is None else updated.member_id
    members = group.members if updated is None else {**group.members, updated.member_id: updated}
    return {
        member_id: StreamsMemberSpec(
            members[member_id].process_id,
            group.target_of(member_id),
            members[member_id].instance_id,
            members[member_id].rack_id,
            members[member_id].client_tags,
        )
        for member_id in member_order(group.members, largest=group.largest_size, updated=updated_id)
    }
