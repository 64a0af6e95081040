"""
Groups that change between the classic and the consumer protocol while they are alive (KIP-848).

A classic group becomes a consumer group when its first member of the consumer protocol joins. A
consumer group becomes a classic one when its last member of that protocol leaves, or is replaced by
a classic member. ``group.consumer.migration.policy`` says which of the two may happen. Committed
offsets stay as they are.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Final
from uuid import UUID

from barnabas.coordination.config.coordinators import CoordinationOptions
from barnabas.coordination.coordinator_runtime.result import CoordinatorResult
from barnabas.coordination.groups.answers import join_error, sync_error
from barnabas.coordination.groups.assignors.java_order.timeline import timeline_order
from barnabas.coordination.groups.classic.group import ClassicGroup
from barnabas.coordination.groups.classic.member import (
    ClassicGroupMember,
    MemberProtocol,
    Protocols,
)
from barnabas.coordination.groups.classic.rebalance import Rebalance
from barnabas.coordination.groups.classic.state import GroupState
from barnabas.coordination.groups.classic.subscriptions import (
    CONSUMER,
    assignment_bytes,
    assignment_of,
    subscription_of,
    version_of,
)
from barnabas.coordination.groups.consumer.group import ConsumerGroup
from barnabas.coordination.groups.consumer.member import (
    Assigned,
    ClassicMember,
    ConsumerGroupMember,
    MemberState,
)
from barnabas.coordination.groups.consumer.records import (
    Target,
    current_record,
    epoch_record,
    group_tombstones,
    member_record,
    target_epoch_record,
    target_record,
)
from barnabas.coordination.groups.consumer.sessions import Sessions
from barnabas.coordination.groups.groups import Groups
from barnabas.coordination.groups.modern.records import ModernRecord
from barnabas.coordination.groups.modern.topics import SubscribedTopics, with_topics
from barnabas.coordination.groups.persistence import group_record
from barnabas.coordination.groups.records import CoordinatorRecord, GroupRecord, GroupResult
from barnabas.protocol.errors import DecodeError, ErrorCode, GroupIdNotFound
from barnabas.protocol.structs import replace

log = logging.getLogger(__name__)

DISABLED: Final = "disabled"
_UPGRADES: Final = frozenset({"bidirectional", "upgrade"})
_DOWNGRADES: Final = frozenset({"bidirectional", "downgrade"})


class Migration:
    """
    Changes the protocol of the groups of one partition.
    """

    def __init__(
        self,
        groups: Groups,
        topics: SubscribedTopics,
        rebalance: Rebalance,
        options: CoordinationOptions,
    ) -> None:
        self._groups = groups
        self._topics = topics
        self._rebalance = rebalance
        self._options = options
        self._policy = options.group_consumer_migration_policy.lower()

    @property
    def is_disabled(self) -> bool:
        """
        Whether no group may change its protocol while it has members.
        """
        return self._policy == DISABLED

    # From classic to consumer

    def upgrade(
        self, group: ClassicGroup, sessions: Sessions, records: list[CoordinatorRecord]
    ) -> ConsumerGroup:
        """
        Make a consumer group of a classic group, which stays until the records are applied. Its
        members go on from where they are.

        Args:
            records: gets those of the change.

        Raises:
            GroupIdNotFound: the group cannot be changed, or may not.
        """
        self._check_upgrade(group)
        members = self._upgraded_members(group)
        for waiting in group.members.values():
            error = ErrorCode.REBALANCE_IN_PROGRESS
            group.answer_join(waiting, join_error(waiting.member_id, error))
            group.answer_sync(waiting, sync_error(error))
        names = {name for member, _ in members for name in member.topic_names}
        group_id, epoch = group.group_id, group.generation_id
        made: list[ModernRecord] = [member_record(group_id, member) for member, _ in members]
        made.append(epoch_record(group_id, epoch, self._topics.hash(names)))
        made += [target_record(group_id, each.member_id, target) for each, target in members]
        made.append(target_epoch_record(group_id, epoch, 0))
        made += [current_record(group_id, member) for member, _ in members]
        after = ConsumerGroup(group_id)
        for record in made:
            after.apply(record)
        records.append(GroupRecord(group_id, None))
        records += made
        for member, _ in members:
            assert member.classic is not None
            sessions.prolong(group_id, member.member_id, member.classic.session_timeout_ms)
        log.info("Group %s becomes a consumer group", group_id)
        return after

    def _check_upgrade(self, group: ClassicGroup) -> None:
        if self._policy not in _UPGRADES:
            reason = "online upgrade is disabled"
        elif group.protocol_type != CONSUMER:
            reason = "the group does not use the consumer embedded protocol"
        elif len(group.members) > self._options.group_consumer_max_size:
            reason = "the group size exceeds the consumer group maximum size"
        else:
            return
        raise _cannot_upgrade(group, reason)

    def _upgraded_members(self, group: ClassicGroup) -> list[tuple[ConsumerGroupMember, Target]]:
        try:
            # A group whose first round of joins is not over has no protocol yet.
            protocol = group.protocol_name or group.select_protocol()
            ids = timeline_order(group.members, len(group.members))
            return [self._upgraded(group, group.members[each], protocol) for each in ids]
        except DecodeError:
            reason = "the embedded consumer protocol is malformed"
            raise _cannot_upgrade(group, reason) from None

    def _upgraded(
        self, group: ClassicGroup, member: ClassicGroupMember, protocol: str
    ) -> tuple[ConsumerGroupMember, Target]:
        target: dict[UUID, tuple[int, ...]] = {}
        if member.assignment:
            assignment = assignment_of(member.assignment)
            if assignment.user_data:
                raise _cannot_upgrade(
                    group,
                    "an unsupported custom assignor is in use. Please refer to the documentation or"
                    " switch to a default assignor before re-attempting the upgrade",
                )
            for each in assignment.assigned_partitions:
                topic = self._topics.topics.get(each.topic)
                if topic is not None:
                    target[topic.id] = tuple(dict.fromkeys(each.partitions))
        subscription = subscription_of(member.metadata(protocol))
        epoch = group.generation_id
        assigned = {topic_id: dict.fromkeys(indexes, epoch) for topic_id, indexes in target.items()}
        after = ConsumerGroupMember(
            member_id=member.member_id,
            member_epoch=epoch,
            previous_member_epoch=epoch,
            instance_id=member.instance_id,
            rack_id=subscription.rack_id or None,
            rebalance_timeout_ms=member.rebalance_timeout_ms,
            client_id=member.client_id,
            client_host=member.client_host,
            topic_names=frozenset(subscription.topics),
            state=MemberState.STABLE,
            assigned=assigned,
            classic=ClassicMember(
                session_timeout_ms=member.session_timeout_ms,
                protocols=tuple((each.name, each.metadata) for each in member.protocols),
            ),
        )
        return after, target

    # From consumer to classic

    def can_downgrade(self, group: ConsumerGroup, leaving: Sequence[ConsumerGroupMember]) -> bool:
        """
        Whether the group becomes a classic one without these members.
        """
        gone = {member.member_id for member in leaving}
        stay = [member for member_id, member in group.members.items() if member_id not in gone]
        return bool(stay) and self._may_downgrade(group, stay)

    def can_downgrade_replacing(
        self, group: ConsumerGroup, replaced: ConsumerGroupMember, protocols: Protocols
    ) -> bool:
        """
        Whether the group becomes a classic one when a classic member takes the place of a static
        member.

        Args:
            protocols: those of the classic member.
        """
        if replaced.is_classic:
            return False
        offered = tuple((name, metadata) for name, metadata in protocols)
        joining = replace(replaced, classic=ClassicMember(session_timeout_ms=0, protocols=offered))
        stay = [each for each in group.members.values() if each is not replaced]
        return self._may_downgrade(group, [*stay, joining])

    def _may_downgrade(self, group: ConsumerGroup, stay: Sequence[ConsumerGroupMember]) -> bool:
        if not all(member.is_classic for member in stay):
            return False
        if self._policy not in _DOWNGRADES:
            log.info("Group %s stays a consumer group: downgrades are disabled", group.group_id)
            return False
        if len(stay) > self._options.group_max_size:
            log.info("Group %s stays a consumer group: it is too large", group.group_id)
            return False
        after = ClassicGroup(
            group.group_id, GroupState.STABLE, state_timestamp_ms=None, protocol_type=CONSUMER
        )
        for member in stay:
            after.add(_downgraded(member))
        protocol = after.select_protocol()
        try:
            for each in after.members.values():
                version_of(each.metadata(protocol))
        except DecodeError as error:
            # In Kafka the last member of the consumer protocol could not leave.
            log.info("Group %s stays a consumer group: %s", group.group_id, error)
            return False
        return True

    def downgrade_without(
        self, group: ConsumerGroup, leaving: Sequence[ConsumerGroupMember], now_ms: int
    ) -> GroupResult:
        """
        Make the group a classic one without members that leave, and let the others rebalance.
        """
        gone = {member.member_id for member in leaving}
        stay = [group.members[each] for each in group.members_in_order() if each not in gone]
        targets = {member.member_id: group.target_of(member.member_id) for member in stay}
        reason = f"Downgrade group {group.group_id} from consumer to classic for member leaving."
        records: list[CoordinatorRecord] = [*group.tombstones()]
        return self._downgrade(group, stay, targets, records=records, reason=reason, now_ms=now_ms)

    def downgrade_replacing(
        self,
        group: ConsumerGroup,
        replaced: ConsumerGroupMember,
        joining: ConsumerGroupMember,
        *,
        records: list[CoordinatorRecord],
        reason: str | None,
        now_ms: int,
    ) -> GroupResult:
        """
        Make the group a classic one with a member in place of a static one.

        Args:
            records: have the replacement already.
            reason: of the rebalance; None if there is none.
        """
        members = [group.members[each] for each in group.members_in_order()]
        stay = [each for each in members if each is not replaced] + [joining]
        targets = {member.member_id: group.target_of(member.member_id) for member in stay[:-1]}
        targets[joining.member_id] = group.target_of(replaced.member_id)
        # The replacement has written the records of the joining member already.
        member_ids = [joining.member_id if each is replaced else each.member_id for each in members]
        records += group_tombstones(group.group_id, member_ids, group.subscriptions.resolved)
        return self._downgrade(group, stay, targets, records=records, reason=reason, now_ms=now_ms)

    def _downgrade(
        self,
        group: ConsumerGroup,
        stay: Iterable[ConsumerGroupMember],
        targets: Mapping[str, Target],
        *,
        records: list[CoordinatorRecord],
        reason: str | None,
        now_ms: int,
    ) -> GroupResult:
        after = ClassicGroup(
            group.group_id,
            GroupState.STABLE,
            state_timestamp_ms=now_ms,
            generation_id=group.group_epoch,
            protocol_type=CONSUMER,
        )
        for kept in stay:
            after.add(_downgraded(kept))
        after.protocol_name = after.select_protocol()
        after.subscribed_topics = after.compute_subscribed_topics()
        for each in after.members.values():
            version = version_of(each.metadata(after.protocol_name))
            each.assignment = assignment_bytes(self.named(targets[each.member_id]), version)
        assignment = {each.member_id: each.assignment for each in after.members.values()}
        records.append(group_record(after, assignment))
        self._groups.put(group.group_id, after)
        self._rebalance.watch_all(after)
        if reason is not None:
            self._rebalance.begin(after, reason, now_ms)
        log.info("Group %s becomes a classic group", group.group_id)

        def written(error: ErrorCode | None, _now_ms: int) -> None:
            if error is None or self._groups.get(group.group_id) is not after:
                return
            self._groups.put(group.group_id, group)
            for member in after.members.values():
                after.answer_join(member, join_error(member.member_id, error))
                after.answer_sync(member, sync_error(error))

        return CoordinatorResult(records=records, replay_records=False, on_append=written)

    def named(self, assigned: Target | Assigned) -> list[tuple[str, list[int]]]:
        """
        Partitions by the names of their topics, without those of topics that are gone.
        """
        return [(topic.name, found) for topic, found in with_topics(assigned, self._topics.topics)]


def _downgraded(member: ConsumerGroupMember) -> ClassicGroupMember:
    classic = member.classic
    assert classic is not None, member
    return ClassicGroupMember(
        member.member_id,
        instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        session_timeout_ms=classic.session_timeout_ms,
        protocol_type=CONSUMER,
        protocols=tuple(MemberProtocol(name, metadata) for name, metadata in classic.protocols),
    )


def _cannot_upgrade(group: ClassicGroup, reason: str) -> GroupIdNotFound:
    sentence = f"Cannot upgrade classic group {group.group_id} to consumer group because {reason}."
    log.info("%s", sentence)
    return GroupIdNotFound(sentence)
