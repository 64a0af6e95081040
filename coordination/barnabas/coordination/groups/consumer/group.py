"""
A consumer group: the sum of its records (KIP-848).
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final
from uuid import UUID

from barnabas.coordination.groups.assignors.java_order.timeline import timeline_order
from barnabas.coordination.groups.classic.subscriptions import CONSUMER
from barnabas.coordination.groups.consumer import records
from barnabas.coordination.groups.consumer.member import Assigned, ConsumerGroupMember
from barnabas.coordination.groups.consumer.records import Target
from barnabas.coordination.groups.group_type import GroupType
from barnabas.coordination.groups.modern.group import ModernGroup
from barnabas.coordination.groups.modern.offsets import check_since, late_member, validate_fetch
from barnabas.coordination.groups.modern.records import ModernRecord, Role
from barnabas.coordination.groups.modern.subscriptions import ResolvedRegex, Subscriptions
from barnabas.coordination.groups.modern.tally import Tally, count, discount


class ConsumerGroup(ModernGroup[ConsumerGroupMember, Target]):
    """
    A consumer group (Kafka's class of this name).

    Invariants:

    1. ``owners`` has the member that has a partition, or has to give it up, of every such
       partition.
    2. ``static_members`` maps the instance id of every static member to its member id.

    Used on the event loop's thread only.
    """

    type = GroupType.CONSUMER
    listed_protocol_type: Final = CONSUMER

    __slots__ = (
        "assignor_votes",
        "classic_protocols",
        "has_partition_metadata",
        "owners",
        "static_members",
        "subscriptions",
    )

    def __init__(self, group_id: str) -> None:
        super().__init__(group_id, records)
        self.static_members: dict[str, str] = {}
        self.subscriptions = Subscriptions()
        self.owners: dict[UUID, dict[int, str]] = {}
        self.assignor_votes: Tally = {}
        self.classic_protocols: Tally = {}  # offered by how many members
        self.has_partition_metadata = False

    # State

    @property
    def state_name(self) -> str:
        """
        The state, as ``maybeUpdateGroupState`` of Kafka's class computes it.
        """
        if not self.members:
            return "Empty"
        if self.group_epoch > self.assignment_epoch:
            return "Assigning"
        if all(each.is_reconciled_to(self.assignment_epoch) for each in self.members.values()):
            return "Stable"
        return "Reconciling"

    @property
    def preferred_assignor(self) -> str | None:
        """
        The assignor that most members ask for; None if no member asks for any.
        """
        return most_voted(
            timeline_order(self.assignor_votes, len(self.assignor_votes)), self.assignor_votes
        )

    @property
    def classic_member_count(self) -> int:
        """
        The number of members that use the classic protocol.
        """
        return sum(member.is_classic for member in self.members.values())

    @property
    def can_become_classic(self) -> bool:
        """
        Whether a member of the classic protocol may join, and make this a classic group.
        """
        return self.is_empty

    def target_of(self, member_id: str) -> Target:
        """
        The target assignment of a member.
        """
        return self.targets.get(member_id, {})

    def static_member(self, instance_id: str | None) -> ConsumerGroupMember | None:
        """
        The member with that instance id.
        """
        if instance_id is None:
            return None
        member_id = self.static_members.get(instance_id)
        return None if member_id is None else self.members[member_id]

    def is_taken(self, topic_id: UUID, partition: int) -> bool:
        """
        Whether a member has a partition, or has not given it up yet.
        """
        owned = self.owners.get(topic_id)
        return owned is not None and partition in owned

    def waits_for_others(self, member: ConsumerGroupMember) -> bool:
        """
        Whether some partition of the member's target still belongs to another member.
        """
        return any(
            partition not in member.assigned.get(topic_id, {})
            and self.is_taken(topic_id, partition)
            for topic_id, partitions in self.target_of(member.member_id).items()
            for partition in partitions
        )

    @property
    def subscribed_topics(self) -> set[str]:
        """
        The names of the topics that members subscribe to, by name or by regular expression.
        """
        return self.subscriptions.topics

    def is_subscribed_to(self, topic: str) -> bool:
        """
        Whether a member subscribes to the topic.
        """
        return topic in self.subscriptions

    def supports_classic(self, protocol_type: str, protocols: Iterable[str]) -> bool:
        """
        Whether a member of the classic protocol may join, with one of the protocols that all
        classic members offer.
        """
        protocols = list(protocols)
        if protocol_type != CONSUMER or not protocols:
            return False
        if self.is_empty:
            return True
        members = self.classic_member_count
        return any(self.classic_protocols.get(name, 0) == members for name in protocols)

    # Validation of requests

    def validate_commit(
        self,
        member_id: str,
        instance_id: str | None,
        epoch: int,
        *,
        version: int,
        is_transactional: bool = False,
    ) -> PastEpochCheck | None:
        """
        See whether the sender may commit offsets.

        Returns:
            What each partition has to pass; None if that is nothing.

        Raises:
            KafkaError: see ``late_member``.
        """
        member = late_member(
            self,
            member_id,
            instance_id,
            epoch,
            version=version,
            is_transactional=is_transactional,
        )
        return None if member is None else PastEpochCheck(member, epoch)

    def validate_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """
        See whether the sender may read committed offsets, see ``modern.offsets``.
        """
        validate_fetch(self, member_id, member_epoch)

    # Records

    def tombstones(self) -> list[ModernRecord]:
        """
        The records that delete the group, in Kafka's order.
        """
        ids, regexes = self.members_in_order(), self.subscriptions.resolved
        return records.group_tombstones(self.group_id, ids, regexes)

    def _apply_other(self, role: Role, key: Any, value: Any) -> None:
        if role is not Role.REGEX:
            self.has_partition_metadata = value is not None
        elif value is None:
            self.subscriptions.resolved.pop(key.regular_expression, None)
        else:
            self.subscriptions.resolved[key.regular_expression] = ResolvedRegex(
                frozenset(value.topics), value.version, value.timestamp
            )

    def _count(self, member: ConsumerGroupMember) -> None:
        self.subscriptions.add(member)
        if member.server_assignor is not None:
            count(self.assignor_votes, member.server_assignor)
        if member.classic is not None:
            for name, _ in member.classic.protocols:
                count(self.classic_protocols, name)
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.member_id
        for assigned in (member.assigned, member.pending_revocation):
            for topic_id, partitions in assigned.items():
                owners = self.owners.setdefault(topic_id, {})
                owners.update(dict.fromkeys(partitions, member.member_id))

    def _uncount(self, member: ConsumerGroupMember) -> None:
        self.subscriptions.remove(member)
        if member.server_assignor is not None:
            discount(self.assignor_votes, member.server_assignor)
        if member.classic is not None:
            for name, _ in member.classic.protocols:
                discount(self.classic_protocols, name)
        instance_id = member.instance_id
        if instance_id is not None and self.static_members.get(instance_id) == member.member_id:
            del self.static_members[instance_id]
        self._disown(member.member_id, member.assigned)
        self._disown(member.member_id, member.pending_revocation)

    def _disown(self, member_id: str, assigned: Assigned) -> None:
        for topic_id, partitions in assigned.items():
            owners = self.owners.get(topic_id, {})
            for partition in partitions:
                if owners.get(partition) == member_id:
                    del owners[partition]
            if not owners:
                self.owners.pop(topic_id, None)


class PastEpochCheck:
    """
    Decides which offsets a member may commit with an epoch that it has left (KIP-1251).
    """

    __slots__ = ("_epoch", "_member")

    def __init__(self, member: ConsumerGroupMember, epoch: int) -> None:
        self._member = member
        self._epoch = epoch

    def check_all(self, partitions: Iterable[tuple[str, UUID, int]]) -> None:
        """
        See whether the member had all these partitions at its epoch, and has them still.

        Raises:
            StaleMemberEpoch, IllegalGeneration: it has not.
        """
        for _, topic_id, partition in partitions:
            since = self._member.epoch_of(topic_id, partition)
            name = f"{topic_id}-{partition}"
            check_since(self._member, self._epoch, since, "Partition", name)


def most_voted(names: Iterable[str], votes: Mapping[str, int]) -> str | None:
    """
    The first assignor with most votes; None if there are none.

    Args:
        names: all that have votes, in the order of one of Kafka's maps.
    """
    most = max(votes.values(), default=0)
    return next((name for name in names if votes[name] == most), None) if most else None
