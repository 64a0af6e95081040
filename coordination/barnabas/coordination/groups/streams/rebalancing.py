"""
The rebalance of a streams group, one heartbeat at a time.

A change of a member, of the topics or of the group's configuration begins a new group epoch. Its
target assignment is made by the first heartbeat that may make one, and each member moves towards it
with its own heartbeats (Kafka's ``streamsGroupHeartbeat``, ``maybeUpdateStreamsTargetAssignment``
and ``maybeReconcile``).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import partial

from barnabas.coordination.config.groups import GroupConfigOf
from barnabas.coordination.coordinator_runtime.result import NOTHING, CoordinatorResult
from barnabas.coordination.coordinator_runtime.timers import Timers
from barnabas.coordination.groups.assignors.tasks import NO_TASKS, TasksTuple
from barnabas.coordination.groups.groups import Groups
from barnabas.coordination.groups.modern.topics import SubscribedTopics
from barnabas.coordination.groups.records import CoordinatorRecord, GroupResult
from barnabas.coordination.groups.streams.assignment import NUM_STANDBY_REPLICAS, new_target
from barnabas.coordination.groups.streams.configured_topology import ConfiguredTopology, configured
from barnabas.coordination.groups.streams.group import UNVALIDATED, StreamsGroup
from barnabas.coordination.groups.streams.member import StreamsGroupMember
from barnabas.coordination.groups.streams.reconciliation import Goal, reconciled
from barnabas.coordination.groups.streams.records import current_record, epoch_record
from barnabas.coordination.groups.streams.sessions import Sessions
from barnabas.coordination.groups.streams.statuses import StatusCode, status
from barnabas.coordination.groups.streams.topology import StreamsTopology
from barnabas.coordination.groups.timeouts import Timeout
from barnabas.protocol.errors import KafkaError
from barnabas.protocol.messages.streams_group_heartbeat import Status
from barnabas.protocol.structs import NamedTuple

log = logging.getLogger(__name__)


class Outlook(NamedTuple):
    """
    A topology with the topics as they are now.
    """

    topology: ConfiguredTopology
    metadata_hash: int

    @property
    def validated_epoch(self) -> int:
        """
        The epoch of the topology if its topics are there.
        """
        return self.topology.epoch if self.topology.is_ready else UNVALIDATED


class TargetOfMember(NamedTuple):
    """
    The target assignment of a member, and the epoch that it is for.
    """

    epoch: int
    target: TasksTuple


class Rebalancing:
    """
    Moves the streams groups of one partition through their epochs.
    """

    def __init__(
        self,
        groups: Groups,
        timers: Timers,
        topics: SubscribedTopics,
        sessions: Sessions,
        config_of: GroupConfigOf,
    ) -> None:
        self._groups = groups
        self._timers = timers
        self._topics = topics
        self._sessions = sessions
        self._config_of = config_of

    # Topics

    def outlook_of(self, group: StreamsGroup, topology: StreamsTopology) -> Outlook:
        """
        The topology of the group with its topics, looked at again if they may have changed.

        Raises:
            StreamsInvalidTopology, UnknownServerError: see ``configured``.
        """
        known = group.configured_topology
        if not (group.topology is None or known is None or group.is_metadata_stale):
            return Outlook(known, group.metadata_hash)
        metadata_hash = self._topics.hash(topology.required_topics)
        if known is None or group.topology is None or metadata_hash != group.metadata_hash:
            known = configured(topology, self._topics.topics)
        return Outlook(known, metadata_hash)

    # Epochs

    def assignment_configs(self, group_id: str) -> Mapping[str, str]:
        """
        The configuration of a group that its assignments depend on.
        """
        config = self._config_of(group_id)
        return {NUM_STANDBY_REPLICAS: str(config.streams_num_standby_replicas)}

    def next_epoch(
        self,
        group: StreamsGroup,
        outlook: Outlook,
        configs: Mapping[str, str],
        records: list[CoordinatorRecord],
        *,
        must_bump: bool,
    ) -> int:
        """
        The group epoch: a new one if topics or the configuration have changed, too.
        """
        is_same = (
            not must_bump
            and outlook.metadata_hash == group.metadata_hash
            and outlook.validated_epoch == group.validated_topology_epoch
            and configs == group.assignment_configs
        )
        if is_same:
            return group.group_epoch
        epoch = group.group_epoch + 1
        records.append(
            epoch_record(
                group.group_id,
                epoch,
                metadata_hash=outlook.metadata_hash,
                validated_topology_epoch=outlook.validated_epoch,
                assignment_configs=configs,
            )
        )
        log.debug("Group %s: epoch %d begins", group.group_id, epoch)
        return epoch

    # Targets

    def delay_assignment(self, group: StreamsGroup) -> None:
        """
        Let the first assignment of an empty group wait for more members.
        """
        key = (Timeout.INITIAL_REBALANCE, group.group_id, "")
        delay_ms = self._config_of(group.group_id).streams_initial_rebalance_delay_ms
        if group.is_empty and delay_ms > 0 and key not in self._timers:
            operation = partial(self._delay_is_over, group.group_id)
            self._timers.schedule(key, delay_ms, operation)

    def end_delay(self, group_id: str) -> None:
        """
        Wait for no members any more: the group is deleted.
        """
        self._timers.cancel((Timeout.INITIAL_REBALANCE, group_id, ""))

    def target_of(
        self,
        group: StreamsGroup,
        member: StreamsGroupMember,
        topology: ConfiguredTopology,
        epoch: int,
        *,
        records: list[CoordinatorRecord],
        statuses: list[Status],
        configs: Mapping[str, str],
        now_ms: int,
    ) -> TargetOfMember:
        """
        The target of the member: of a new assignment, if there has to be one and may be.

        Raises:
            UnknownServerError: the assignor failed.
        """
        if (Timeout.INITIAL_REBALANCE, group.group_id, "") in self._timers:
            statuses.append(_delayed_by("the configured initial rebalance delay"))
            return TargetOfMember(group.assignment_epoch, NO_TASKS)
        last = TargetOfMember(group.assignment_epoch, group.target_of(member.member_id))
        if group.assignment_epoch >= epoch:
            return last
        if not self._may_assign(group, now_ms):
            statuses.append(_delayed_by("the configured assignment interval"))
            return last
        made = new_target(
            group, topology, updated=member, epoch=epoch, configs=configs, now_ms=now_ms
        )
        records += made.records
        return TargetOfMember(epoch, made.of_members[member.member_id])

    def _may_assign(self, group: StreamsGroup, now_ms: int) -> bool:
        interval_ms = self._config_of(group.group_id).streams_assignment_interval_ms
        return group.may_assign(interval_ms, now_ms)

    def _delay_is_over(self, group_id: str, now_ms: int) -> GroupResult:
        """
        Make the assignment that was delayed, if a heartbeat has not changed its mind.
        """
        group = self._groups.get(group_id)
        if (
            not isinstance(group, StreamsGroup)
            or group.is_empty
            or group.configured_topology is None
            or group.assignment_epoch >= group.group_epoch
            or not self._may_assign(group, now_ms)
        ):
            return NOTHING
        try:
            made = new_target(
                group,
                group.configured_topology,
                updated=None,
                epoch=group.group_epoch,
                configs=group.assignment_configs,
                now_ms=now_ms,
            )
        except KafkaError as error:
            log.warning("Group %s: %s", group_id, error)
            return NOTHING
        return CoordinatorResult(records=made.records)

    # Members

    def reconcile(
        self,
        group: StreamsGroup,
        member: StreamsGroupMember,
        target: TargetOfMember,
        records: list[CoordinatorRecord],
        *,
        owned: TasksTuple | None,
    ) -> StreamsGroupMember:
        """
        The member after its next step towards its target.

        Args:
            owned: the tasks that the member says it has; None if it does not say.

        Raises:
            FencedMemberEpoch: see ``reconciled``.
        """
        if member.is_reconciled_to(target.epoch):
            return member
        after = reconciled(member, Goal(target.epoch, target.target, group.owners, owned))
        if after != member:
            records.append(current_record(group.group_id, after))
            self._sessions.expect_revocation(group.group_id, after)
        return after


def _delayed_by(reason: str) -> Status:
    return status(StatusCode.ASSIGNMENT_DELAYED, f"Assignment delayed due to {reason}.")
