"""
The removal of members from streams groups, on their own wish or not.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from barnabas.coordination.coordinator_runtime.result import CoordinatorResult
from barnabas.coordination.groups.records import CoordinatorRecord, GroupResult
from barnabas.coordination.groups.streams.group import StreamsGroup
from barnabas.coordination.groups.streams.member import StreamsGroupMember
from barnabas.coordination.groups.streams.records import epoch_record, member_tombstones
from barnabas.coordination.groups.streams.sessions import Sessions

log = logging.getLogger(__name__)


class Fencing:
    """
    Removes members from the streams groups of one partition.
    """

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    def fence(
        self, group: StreamsGroup, members: Sequence[StreamsGroupMember], _now_ms: int
    ) -> GroupResult:
        """
        Remove members, and begin a new epoch.
        """
        member_ids = [member.member_id for member in members]
        records: list[CoordinatorRecord] = []
        for member_id in member_ids:
            records += member_tombstones(group.group_id, member_id)
        epoch = group.group_epoch + 1
        records.append(
            epoch_record(
                group.group_id,
                epoch,
                metadata_hash=group.metadata_hash,
                validated_topology_epoch=group.validated_topology_epoch,
                assignment_configs=group.assignment_configs,
            )
        )
        log.debug("Group %s: epoch %d begins without %s", group.group_id, epoch, member_ids)
        return self._sessions.removing(group, members, CoordinatorResult(records=records))
