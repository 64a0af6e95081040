"""
The target assignment of a consumer group (Kafka's ``TargetAssignmentBuilder``).
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from time import perf_counter
from typing import Final
from uuid import UUID

from barnabas.protocol.errors import UnknownServerError
from barnabas.protocol.structs import NamedTuple
from barnabas.server.groups.assignors import range_assignor, uniform_assignor
from barnabas.server.groups.assignors.errors import PartitionAssignorError
from barnabas.server.groups.assignors.members import member_order
from barnabas.server.groups.assignors.spec import (
    Assignment,
    GroupSpec,
    MemberSpec,
    SubscriptionType,
    TopicIds,
    is_same,
)
from barnabas.server.groups.consumer.group import ConsumerGroup
from barnabas.server.groups.consumer.member import ConsumerGroupMember
from barnabas.server.groups.consumer.records import target_epoch_record, target_record
from barnabas.server.groups.consumer.subscriptions import Subscriptions
from barnabas.server.groups.modern.records import ModernRecord
from barnabas.server.groups.modern.topics import SubscribedTopics

log = logging.getLogger(__name__)

ASSIGNORS: Final = {
    assignor.NAME: assignor.assign for assignor in (uniform_assignor, range_assignor)
}
"""
The assignors of consumer groups, by name.
"""


class Change(NamedTuple):
    """
    A member that is about to join a group, or to change in it.
    """

    member: ConsumerGroupMember
    before: ConsumerGroupMember  # without subscription if it is new
    static: ConsumerGroupMember | None  # who has its instance id so far
    subscriptions: Subscriptions  # of the group with the change
    names: Sequence[str] | None = None  # of the request, in its order, if it has any
    is_counted: bool = True  # whether the group has looked at its subscriptions with the change


class NewTarget(NamedTuple):
    """
    A new target assignment.
    """

    records: list[ModernRecord]
    of_member: Assignment  # of the changed one


def new_target(
    group: ConsumerGroup,
    change: Change,
    *,
    epoch: int,
    assignor: str,
    topics: SubscribedTopics,
    now_ms: int,
) -> NewTarget:
    """
    Assign all partitions of the subscribed topics to the members.

    Args:
        epoch: the group epoch with the change.

    Raises:
        UnknownServerError: the assignor failed.
    """
    member = change.member
    names = sorted(change.subscriptions.topics)
    known = [topic for topic in map(topics.topics.get, names) if topic is not None]
    begun = perf_counter()
    specs = dict(_specs(group, change, {topic.name: topic.id for topic in known}))
    if change.is_counted:
        is_homogeneous = change.subscriptions.are_homogeneous(len(specs))
    else:
        is_homogeneous = group.subscriptions.are_homogeneous(len(group.members))
    spec = GroupSpec(
        specs,
        SubscriptionType.HOMOGENEOUS if is_homogeneous else SubscriptionType.HETEROGENEOUS,
    )
    try:
        targets = ASSIGNORS[assignor](spec, {topic.id: len(topic.partitions) for topic in known})
    except PartitionAssignorError as error:
        sentence = f"Failed to compute a new target assignment for epoch {epoch}: {error}"
        log.error("Group %s: %s", group.group_id, sentence)
        raise UnknownServerError(sentence) from None
    log.info(
        "Group %s: %s assigned %d topics to %d members for epoch %d in %.1f ms",
        group.group_id,
        assignor,
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
            records.append(target_record(group.group_id, member_id, after))
    records.append(target_epoch_record(group.group_id, epoch, now_ms))
    return NewTarget(records, targets.get(member.member_id, {}))


def _specs(
    group: ConsumerGroup, change: Change, topic_ids: Mapping[str, UUID]
) -> Iterator[tuple[str, MemberSpec]]:
    """
    The members as the assignor sees them, in Kafka's order.
    """
    updated, static = change.member, change.static
    replaced = None
    if static is not None and static.member_id != updated.member_id:
        replaced = static.member_id
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
        yield (
            member_id,
            MemberSpec(
                topics,
                group.target_of(had),
                member.instance_id,
                member.rack_id,
                inherits=had != member_id,
            ),
        )


def _names(member: ConsumerGroupMember, subscriptions: Subscriptions) -> Sequence[str]:
    resolved = subscriptions.resolved.get(member.topic_regex)
    names = member.topic_names if resolved is None else member.topic_names | resolved.topics
    return sorted(names)
