"""
The target assignment of a consumer group or a share group (Kafka's ``TargetAssignmentBuilder``).
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Generic, TypeAlias, TypeVar
from uuid import UUID

from barnabas.coordination.groups.assignors.errors import PartitionAssignorError
from barnabas.coordination.groups.assignors.members import member_order
from barnabas.coordination.groups.assignors.spec import (
    Assignment,
    GroupSpec,
    MemberSpec,
    SubscriptionType,
    TopicIds,
    is_same,
)
from barnabas.coordination.groups.modern.group import ModernGroup
from barnabas.coordination.groups.modern.records import ModernRecord
from barnabas.coordination.groups.modern.subscriptions import SubscribingMember, Subscriptions
from barnabas.coordination.groups.modern.topics import SubscribedTopics
from barnabas.protocol.errors import UnknownServerError
from barnabas.protocol.structs import NamedTuple, struct
from barnabas.storage.clock import perf_counter

log = logging.getLogger(__name__)

Assign: TypeAlias = Callable[[GroupSpec, Mapping[UUID, int]], Mapping[str, Assignment]]
"""
Returns the target of each member, by the spec of the group and the partition counts of its topics.
"""


class Assignor(NamedTuple):
    """
    An assignor, by its name.
    """

    name: str
    assign: Assign


M = TypeVar("M", bound=SubscribingMember)


@struct
class MemberChange(Generic[M]):
    """
    A member that is about to join a group, or to change in it.
    """

    member: M
    before: M
    """Without subscription if it is new."""
    static: M | None
    """The member that has its instance id so far."""
    subscriptions: Subscriptions
    """Those of the group with the change."""
    names: Sequence[str] | None = None
    """The names of topics in the order of the request, if it has any."""
    before_it: tuple[Subscriptions, int] | None = None
    """Subscriptions and number of the members without the change, where Kafka counts those."""


class NewTarget(NamedTuple):
    """
    A new target assignment.
    """

    records: list[ModernRecord]
    of_member: Assignment  # of the changed one


def new_target(
    group: ModernGroup[M, Assignment],
    change: MemberChange[M],
    *,
    epoch: int,
    assignor: Assignor,
    topics: SubscribedTopics,
    now_ms: int,
    assignable: Mapping[UUID, frozenset[int]] | None = None,
) -> NewTarget:
    """
    Assign all partitions of the subscribed topics to the members.

    Args:
        epoch: the group epoch with the change.
        assignable: the partitions that a share group may have; None for all of their topics.

    Raises:
        UnknownServerError: the assignor failed.
    """
    member = change.member
    names = sorted(topics.topics.existing(change.subscriptions.topics))
    known = [topic for topic in map(topics.topics.get, names) if topic is not None]
    begun = perf_counter()
    specs = _specs(group, change, {topic.name: topic.id for topic in known})
    subscriptions, count = change.before_it or (change.subscriptions, len(specs))
    is_homogeneous = subscriptions.are_homogeneous(count)
    spec = GroupSpec(
        specs,
        SubscriptionType.HOMOGENEOUS if is_homogeneous else SubscriptionType.HETEROGENEOUS,
        assignable,
    )
    try:
        targets = assignor.assign(spec, {topic.id: len(topic.partitions) for topic in known})
    except PartitionAssignorError as error:
        sentence = f"Failed to compute a new target assignment for epoch {epoch}: {error}"
        log.error("Group %s: %s", group.group_id, sentence)
        raise UnknownServerError(sentence) from None
    log.info(
        "Group %s: %s assigned %d topics to %d members for epoch %d in %.1f ms",
        group.group_id,
        assignor.name,
        len(known),
        len(specs),
        epoch,
        (perf_counter() - begun) * 1000,
    )
    records = []
    for member_id in specs:
        before = group.targets.get(member_id)
        after = targets.get(member_id, {})
        if before is None or not is_same(before, after):
            records.append(group.records.target_record(group.group_id, member_id, after))
    records.append(group.records.target_epoch_record(group.group_id, epoch, now_ms))
    return NewTarget(records, targets.get(member.member_id, {}))


def _specs(
    group: ModernGroup[M, Assignment], change: MemberChange[M], topic_ids: Mapping[str, UUID]
) -> dict[str, MemberSpec]:
    """
    The members as the assignor sees them, in Kafka's order.
    """
    updated, static = change.member, change.static
    replaced = None
    if static is not None and static.member_id != updated.member_id:
        replaced = static.member_id
    specs: dict[str, MemberSpec] = {}
    subscribed: dict[tuple[frozenset[str], str], TopicIds] = {}
    for member_id in member_order(
        group.members, largest=group.largest_size, updated=updated.member_id, replaced=replaced
    ):
        is_updated = member_id == updated.member_id
        member = updated if is_updated else group.members[member_id]
        had = replaced if is_updated and replaced is not None else member_id
        wanted = (member.topic_names, member.topic_regex)
        if is_updated and change.names is not None and not member.topic_regex:
            topics = TopicIds.of_names(change.names, topic_ids)
        elif wanted in subscribed:
            topics = subscribed[wanted]
        else:
            names = _names(member, change.subscriptions)
            topics = subscribed[wanted] = TopicIds.of_names(names, topic_ids)
        specs[member_id] = MemberSpec(
            topics,
            group.targets.get(had, {}),
            member.instance_id,
            member.rack_id,
            inherits=had != member_id,
        )
    return specs


def _names(member: SubscribingMember, subscriptions: Subscriptions) -> frozenset[str]:
    resolved = subscriptions.resolved.get(member.topic_regex)
    return member.topic_names if resolved is None else member.topic_names | resolved.topics
