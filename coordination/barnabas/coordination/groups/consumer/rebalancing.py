"""
The rebalance of a consumer group, one heartbeat at a time.

A change of a member's subscription, or of the topics, begins a new group epoch. Its target
assignment is made by the first heartbeat that may make one, and each member moves towards it with
its own heartbeats (Kafka's ``updateSubscriptionMetadata``, ``maybeUpdateTargetAssignment`` and
``maybeReconcile``).
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

from collections.abc import Sequence

from barnabas.coordination.config.groups import GroupConfigOf
from barnabas.coordination.groups.assignors.java_order.hash_order import HashOrder
from barnabas.coordination.groups.consumer.assignors import ASSIGNORS
from barnabas.coordination.groups.consumer.group import ConsumerGroup, most_voted
from barnabas.coordination.groups.consumer.member import ConsumerGroupMember
from barnabas.coordination.groups.consumer.reconciliation import Goal, reconciled
from barnabas.coordination.groups.consumer.records import (
    Target,
    current_record,
    epoch_record,
    partition_metadata_tombstone,
)
from barnabas.coordination.groups.consumer.sessions import Sessions
from barnabas.coordination.groups.modern.epochs import next_epoch
from barnabas.coordination.groups.modern.tally import count, discount
from barnabas.coordination.groups.modern.target import Assignor, MemberChange, new_target
from barnabas.coordination.groups.modern.topics import SubscribedTopics
from barnabas.coordination.groups.records import CoordinatorRecord
from barnabas.coordination.java_strings import string_hash
from barnabas.protocol.messages.consumer_group_heartbeat import TopicPartitions
from barnabas.protocol.structs import NamedTuple


class TargetOfMember(NamedTuple):
    """
    The target assignment of a member, and the epoch that it is for.
    """

    epoch: int
    target: Target


class Rebalancing:
    """
    Moves the consumer groups of one partition through their epochs.
    """

    def __init__(
        self,
        topics: SubscribedTopics,
        sessions: Sessions,
        config_of: GroupConfigOf,
        default_assignor: str,
    ) -> None:
        self._topics = topics
        self._sessions = sessions
        self._config_of = config_of
        self._default_assignor = default_assignor

    def change_of(
        self,
        group: ConsumerGroup,
        before: ConsumerGroupMember,
        after: ConsumerGroupMember,
        names: Sequence[str] | None,
        *,
        must_bump: bool,
    ) -> MemberChange[ConsumerGroupMember]:
        """
        The change from one state of a member to the next.

        Args:
            before: without subscription if the member is new.
            names: of topics, in the order of the request, if it has any.
            must_bump: the change begins an epoch.
        """
        subscriptions = group.subscriptions.changed(before, after)
        static = group.static_member(after.instance_id)
        # Kafka counts the kinds of subscriptions where it looks at their topics only.
        has_to_look = must_bump or group.is_metadata_stale
        before_it = None if has_to_look else (group.subscriptions, len(group.members))
        return MemberChange(after, before, static, subscriptions, names, before_it)

    def next_epoch(
        self,
        group: ConsumerGroup,
        change: MemberChange[ConsumerGroupMember],
        records: list[CoordinatorRecord],
        *,
        must_bump: bool,
    ) -> int:
        """
        The group epoch with the change: a new one if topics have changed, too.
        """
        if not (must_bump or group.is_metadata_stale):
            return group.group_epoch
        epoch = next_epoch(
            group,
            change.subscriptions,
            self._topics,
            records,
            epoch_record=epoch_record,
            must_bump=must_bump,
        )
        if group.has_partition_metadata:
            records.append(partition_metadata_tombstone(group.group_id))
        return epoch

    def target_of(
        self,
        group: ConsumerGroup,
        change: MemberChange[ConsumerGroupMember],
        epoch: int,
        records: list[CoordinatorRecord],
        *,
        now_ms: int,
    ) -> TargetOfMember:
        """
        The target of the changed member: of a new assignment, if there has to be one and may be.

        Raises:
            UnknownServerError: the assignor failed.
        """
        interval_ms = self._config_of(group.group_id).consumer_assignment_interval_ms
        if group.assignment_epoch >= epoch or not group.may_assign(interval_ms, now_ms):
            return self.last_target_of(group, change.member)
        made = new_target(
            group,
            change,
            epoch=epoch,
            assignor=self._assignor_of(group, change),
            topics=self._topics,
            now_ms=now_ms,
        )
        records += made.records
        return TargetOfMember(epoch, made.of_member)

    def last_target_of(self, group: ConsumerGroup, member: ConsumerGroupMember) -> TargetOfMember:
        """
        The target that a member has, or inherits from the static member that it replaces.
        """
        member_id: str | None = member.member_id
        if member.instance_id is not None:
            member_id = group.static_members.get(member.instance_id)
        target = {} if member_id is None else group.target_of(member_id)
        return TargetOfMember(group.assignment_epoch, target)

    def reconcile(
        self,
        group: ConsumerGroup,
        member: ConsumerGroupMember,
        target: TargetOfMember,
        records: list[CoordinatorRecord],
        *,
        owned: Sequence[TopicPartitions] | None,
        has_new_subscription: bool,
    ) -> ConsumerGroupMember:
        """
        The member after its next step towards its target.

        Args:
            owned: the partitions that the member says it has; None if it does not say.

        Raises:
            FencedMemberEpoch: see ``reconciled``.
        """
        if not has_new_subscription and member.is_reconciled_to(target.epoch):
            return member
        names = member.topic_names
        resolved = group.subscriptions.resolved.get(member.topic_regex)
        if resolved is not None:
            names |= resolved.topics
        goal = Goal(
            target.epoch,
            target.target,
            bool(names),
            self._topics.ids(names),
            group.is_taken,
            owned,
        )
        after = reconciled(member, goal, has_new_subscription=has_new_subscription)
        if after != member:
            records.append(current_record(group.group_id, after))
            if not after.is_classic:
                self._sessions.expect_revocation(group.group_id, after)
        return after

    def _assignor_of(
        self, group: ConsumerGroup, change: MemberChange[ConsumerGroupMember]
    ) -> Assignor:
        votes = group.assignor_votes
        before, after = change.before.server_assignor, change.member.server_assignor
        if before != after:
            votes = votes.copy()
            if before is not None:
                discount(votes, before)
            if after is not None:
                count(votes, after)
        name = most_voted(HashOrder(string_hash, keys=votes), votes) if votes else None
        # The log of a broker with assignors of its own may have votes for those.
        return ASSIGNORS.get(name or "", ASSIGNORS[self._default_assignor])
