"""
The next assignment of a member on its way to its target (Kafka's ``CurrentAssignmentBuilder``).

::

            gives up what the target has not         gets what nobody else has
    STABLE ----------------> UNREVOKED_PARTITIONS ----------------------> STABLE
       |                       (its epoch stays)      |                     ^
       |                                              | others still have   |
       +----------------------------------------------+ some partitions     |
                                                      v                     |
                                          UNRELEASED_PARTITIONS ------------+
                                           (it has the new epoch)

A partition moves only after its member has shown, by a heartbeat that lists what it owns, that it
gave the partition up.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any
from uuid import UUID

from barnabas.coordination.groups.consumer.member import (
    NOTHING_ASSIGNED,
    Assigned,
    ConsumerGroupMember,
    MemberState,
)
from barnabas.coordination.groups.consumer.records import Target
from barnabas.protocol.errors import FencedMemberEpoch
from barnabas.protocol.messages.consumer_group_heartbeat import TopicPartitions
from barnabas.protocol.structs import NamedTuple, replace


class Goal(NamedTuple):
    """
    What a member is reconciled with.
    """

    epoch: int  # of the target assignment
    target: Target
    has_topics: bool  # whether the member subscribes to any, existing or not
    topic_ids: Collection[UUID]  # of the topics that the member subscribes to
    is_taken: Callable[[UUID, int], bool]  # whether a member has a partition
    owned: Sequence[TopicPartitions] | None  # what the member says it owns; None: not said


def reconciled(
    member: ConsumerGroupMember, goal: Goal, *, has_new_subscription: bool
) -> ConsumerGroupMember:
    """
    The member after its next step; the same object if there is none.

    Args:
        has_new_subscription: the member gives topics up that it no longer subscribes to at once.

    Raises:
        FencedMemberEpoch: its state is one of a later release, and it still owns partitions.
    """
    match member.state:
        case MemberState.STABLE:
            if member.member_epoch != goal.epoch:
                return _next_assignment(member, goal, member.member_epoch)
            return _without_unsubscribed(member, goal) if has_new_subscription else member
        case MemberState.UNREVOKED_PARTITIONS:
            if not _still_owns(member.pending_revocation, goal):
                return _next_assignment(member, goal, member.member_epoch)
            return _without_unsubscribed(member, goal) if has_new_subscription else member
        case MemberState.UNRELEASED_PARTITIONS:
            return _next_assignment(member, goal, member.member_epoch)
        case _:
            if goal.owned is None or goal.owned:
                raise FencedMemberEpoch(
                    "The consumer group member is in a unknown state. The member must abandon all"
                    " its partitions and rejoin."
                )
            return _next_assignment(member, goal, goal.epoch)


def _still_owns(given_up: Assigned, goal: Goal) -> bool:
    """
    Whether the member may still own some of these partitions.
    """
    if goal.owned is None:
        return True
    return any(
        partition in given_up.get(topic.topic_id, NOTHING_ASSIGNED)
        for topic in goal.owned
        for partition in topic.partitions
    )


def _at_epoch(member: ConsumerGroupMember, epoch: int, **changes: Any) -> ConsumerGroupMember:
    return replace(member, member_epoch=epoch, previous_member_epoch=member.member_epoch, **changes)


def _without_unsubscribed(member: ConsumerGroupMember, goal: Goal) -> ConsumerGroupMember:
    """
    The member, giving up the topics that it does not subscribe to.
    """
    lost = {t: epochs for t, epochs in member.assigned.items() if t not in goal.topic_ids}
    # As in Kafka, the epoch of a member without topics counts as a new one.
    if not lost and (goal.has_topics or member.pending_revocation):
        return member
    kept = {t: epochs for t, epochs in member.assigned.items() if t in goal.topic_ids}
    given_up = dict(member.pending_revocation)
    for topic_id, epochs in lost.items():
        given_up[topic_id] = {**given_up.get(topic_id, {}), **epochs}
    if not given_up or not _still_owns(given_up, goal):
        return _at_epoch(member, member.member_epoch, assigned=kept)
    return _at_epoch(
        member,
        member.member_epoch,
        state=MemberState.UNREVOKED_PARTITIONS,
        assigned=kept,
        pending_revocation=given_up,
    )


def _next_assignment(member: ConsumerGroupMember, goal: Goal, epoch: int) -> ConsumerGroupMember:
    """
    The member at *epoch* if it has to give partitions up, otherwise at the epoch of the target.
    """
    kept: dict[UUID, dict[int, int]] = {}
    given_up: dict[UUID, dict[int, int]] = {}
    new: dict[UUID, list[int]] = {}
    has_unreleased = False
    for topic_id in dict.fromkeys((*goal.target, *member.assigned)):
        is_subscribed = topic_id in goal.topic_ids
        target = set(goal.target.get(topic_id, ())) if is_subscribed else set()
        current = member.assigned.get(topic_id, {})
        if stays := {p: at for p, at in current.items() if p in target}:
            kept[topic_id] = stays
        if len(stays) < len(current):
            given_up[topic_id] = {p: at for p, at in current.items() if p not in target}
        if len(stays) == len(target):
            continue
        own = member.pending_revocation.get(topic_id, {})
        missing = sorted(p for p in target if p not in stays)
        free = [p for p in missing if p in own or not goal.is_taken(topic_id, p)]
        has_unreleased |= len(free) < len(missing)
        if free:
            new[topic_id] = free
    if given_up and _still_owns(given_up, goal):
        return _at_epoch(
            member,
            epoch,
            state=MemberState.UNREVOKED_PARTITIONS,
            assigned=kept,
            pending_revocation=given_up,
        )
    for topic_id, partitions in new.items():
        both = kept.get(topic_id, {}) | dict.fromkeys(partitions, goal.epoch)
        kept[topic_id] = dict(sorted(both.items()))
    return _at_epoch(
        member,
        goal.epoch,
        state=MemberState.UNRELEASED_PARTITIONS if has_unreleased else MemberState.STABLE,
        assigned=kept,
        pending_revocation=NOTHING_ASSIGNED,
    )
