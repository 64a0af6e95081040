"""
The next assignment of a member, see ``barnabas.coordination.groups.consumer.reconciliation``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias
from uuid import UUID

import pytest

from barnabas.coordination.groups.consumer.member import ConsumerGroupMember, MemberState
from barnabas.coordination.groups.consumer.reconciliation import Goal, reconciled
from barnabas.protocol.errors import FencedMemberEpoch
from barnabas.protocol.messages.consumer_group_heartbeat import TopicPartitions

T, U = UUID(int=1), UUID(int=2)
STABLE, UNREVOKED, UNRELEASED = (
    MemberState.STABLE,
    MemberState.UNREVOKED_PARTITIONS,
    MemberState.UNRELEASED_PARTITIONS,
)
Assigned: TypeAlias = "dict[UUID, dict[int, int]]"


def member(
    state: MemberState,
    assigned: Assigned | None = None,
    revoking: Assigned | None = None,
    epoch: int = 10,
) -> ConsumerGroupMember:
    return ConsumerGroupMember(
        member_id="m",
        member_epoch=epoch,
        previous_member_epoch=9,
        state=state,
        assigned=assigned or {},
        pending_revocation=revoking or {},
    )


def goal(
    target: Mapping[UUID, tuple[int, ...]],
    *,
    epoch: int = 11,
    owned: dict[UUID, list[int]] | None = None,
    taken: set[tuple[UUID, int]] = frozenset(),  # type: ignore[assignment]
    subscribed: tuple[UUID, ...] = (T, U),
    has_topics: bool = True,
) -> Goal:
    listed = None
    if owned is not None:
        listed = [TopicPartitions(topic_id=t, partitions=p) for t, p in owned.items()]
    return Goal(epoch, target, has_topics, subscribed, lambda t, p: (t, p) in taken, listed)


NOTHING: Assigned = {}
T0 = {T: {0: 5}}
T1_REVOKING = {T: {1: 6}}
REVOKING = member(UNREVOKED, T0, T1_REVOKING)
WAITING = member(UNRELEASED, T0, epoch=11)
BOTH = {T: (0,), U: (0,)}

# The member before, its goal, and afterwards: state, epoch, partitions, partitions to revoke.
After: TypeAlias = "tuple[MemberState, int, Assigned, Assigned]"
STEPS: dict[str, tuple[ConsumerGroupMember, Goal, After]] = {
    "stable member gets unowned partitions": (
        member(STABLE, T0),
        goal({T: (0, 1), U: (3,)}),
        (STABLE, 11, {T: {0: 5, 1: 11}, U: {3: 11}}, NOTHING),
    ),
    "stable member with its target gets the target epoch": (
        member(STABLE, T0),
        goal({T: (0,)}),
        (STABLE, 11, T0, NOTHING),
    ),
    "stable member keeps its epoch while it revokes": (
        member(STABLE, {T: {0: 5, 1: 6}}),
        goal(BOTH),
        (UNREVOKED, 10, T0, T1_REVOKING),
    ),
    "stable member that confirms a revocation gets the rest at once": (
        member(STABLE, {T: {0: 5, 1: 6}}),
        goal(BOTH, owned={T: [0]}),
        (STABLE, 11, {T: {0: 5}, U: {0: 11}}, NOTHING),
    ),
    "stable member waits for partitions that others own": (
        member(STABLE, T0),
        goal({T: (0, 1, 2)}, taken={(T, 0), (T, 2)}),
        (UNRELEASED, 11, {T: {0: 5, 1: 11}}, NOTHING),
    ),
    "member waits if no partition is free": (
        member(STABLE),
        goal({T: (1,), U: ()}, taken={(T, 1)}),
        (UNRELEASED, 11, NOTHING, NOTHING),
    ),
    "member waits for the first topic and gets the second": (
        member(STABLE),
        goal({T: (1,), U: (1,)}, taken={(T, 1)}),
        (UNRELEASED, 11, {U: {1: 11}}, NOTHING),
    ),
    "member waits for the second topic and gets the first": (
        member(STABLE),
        goal({U: (1,), T: (1,)}, taken={(T, 1)}),
        (UNRELEASED, 11, {U: {1: 11}}, NOTHING),
    ),
    "unsubscribed topics are no part of the target": (
        member(STABLE, T0),
        goal(BOTH, subscribed=(U,)),
        (UNREVOKED, 10, NOTHING, T0),
    ),
    "unsubscribed topics are not waited for": (
        member(STABLE),
        goal({T: (0,)}, subscribed=(U,), taken={(T, 0)}),
        (STABLE, 11, NOTHING, NOTHING),
    ),
    "revoking member that confirmed moves on to the target": (
        REVOKING,
        goal(BOTH, owned={T: [0]}),
        (STABLE, 11, {T: {0: 5}, U: {0: 11}}, NOTHING),
    ),
    "revoking member without partitions moves on to the target": (
        REVOKING,
        goal(BOTH, owned={}),
        (STABLE, 11, {T: {0: 5}, U: {0: 11}}, NOTHING),
    ),
    "revoking member with another topic's partitions moves on to the target": (
        REVOKING,
        goal(BOTH, owned={U: [1]}),
        (STABLE, 11, {T: {0: 5}, U: {0: 11}}, NOTHING),
    ),
    # The partition counted as the member's own, so no other member has it.
    "revoked partition may be assigned again": (
        REVOKING,
        goal({T: (0, 1)}, owned={T: [0]}, taken={(T, 0), (T, 1)}),
        (STABLE, 11, {T: {0: 5, 1: 11}}, NOTHING),
    ),
    "one revocation may follow another": (
        member(UNREVOKED, {T: {0: 5, 2: 5}}, T1_REVOKING),
        goal({T: (0,)}, owned={T: [0, 2]}),
        (UNREVOKED, 10, T0, {T: {2: 5}}),
    ),
    "waiting member gets released partitions": (
        WAITING,
        goal({T: (0, 1)}, taken={(T, 0)}),
        (STABLE, 11, {T: {0: 5, 1: 11}}, NOTHING),
    ),
    "waiting member continues to wait": (
        WAITING,
        goal({T: (0, 1)}, taken={(T, 1)}),
        (UNRELEASED, 11, T0, NOTHING),
    ),
    "waiting member may have to revoke for the next target": (
        WAITING,
        goal({T: (1,)}, epoch=12, taken={(T, 1)}),
        (UNREVOKED, 11, NOTHING, T0),
    ),
    "member in an unknown state starts over": (
        member(MemberState.UNKNOWN, {T: {0: 5, 1: 5}}),
        goal({T: (0,)}, owned={}),
        (STABLE, 11, T0, NOTHING),
    ),
}

NEW_SUBSCRIPTIONS: dict[str, tuple[ConsumerGroupMember, Goal, After]] = {
    "topics are revoked at once": (
        member(STABLE, {T: {0: 5}, U: {1: 6}}),
        goal({}, epoch=10, subscribed=(U,)),
        (UNREVOKED, 10, {U: {1: 6}}, T0),
    ),
    "partitions already revoked are dropped": (
        member(STABLE, {T: {0: 5}, U: {1: 6}}),
        goal({}, epoch=10, subscribed=(U,), owned={U: [1]}),
        (STABLE, 10, {U: {1: 6}}, NOTHING),
    ),
    # As in Kafka, even if the member has no partitions.
    "end of all subscriptions begins an epoch": (
        member(STABLE),
        goal({}, epoch=10, subscribed=(), has_topics=False),
        (STABLE, 10, NOTHING, NOTHING),
    ),
    "a revocation is extended": (
        member(UNREVOKED, {T: {0: 5}, U: {0: 5}}, {T: {1: 6}, U: {1: 6}}),
        goal({U: (0,)}, subscribed=(U,)),
        (UNREVOKED, 10, {U: {0: 5}}, {T: {0: 5, 1: 6}, U: {1: 6}}),
    ),
    "end of all subscriptions extends a revocation": (
        REVOKING,
        goal({}, subscribed=(), has_topics=False),
        (UNREVOKED, 10, NOTHING, {T: {0: 5, 1: 6}}),
    ),
}


@pytest.mark.parametrize(
    ("is_new", "before", "to", "expected"),
    [pytest.param(False, *row, id=rule) for rule, row in STEPS.items()]
    + [pytest.param(True, *row, id=f"new: {rule}") for rule, row in NEW_SUBSCRIPTIONS.items()],
)
def test_member_moves_towards_its_target(
    is_new: bool, before: ConsumerGroupMember, to: Goal, expected: After
) -> None:
    after = reconciled(before, to, has_new_subscription=is_new)

    assert expected == (after.state, after.member_epoch, after.assigned, after.pending_revocation)
    assert before.member_epoch == after.previous_member_epoch


STAYS: dict[str, tuple[ConsumerGroupMember, Goal, bool]] = {
    "stable at the target epoch": (member(STABLE, T0), goal({T: (1,)}, epoch=10), False),
    "no removed topic": (member(STABLE, T0), goal({T: (0,)}, epoch=10), True),
    "no new subscription": (member(STABLE, T0), goal({}, epoch=10, subscribed=()), False),
    "topics unknown to the broker": (member(STABLE), goal({}, epoch=10, subscribed=()), True),
    "revoking without changes": (REVOKING, goal({}), True),
    "nothing said of the revocation": (REVOKING, goal(BOTH), False),
    "still owns all": (REVOKING, goal(BOTH, owned={T: [0, 1]}), False),
    "still owns what it revokes": (REVOKING, goal(BOTH, owned={T: [1]}), False),
}


@pytest.mark.parametrize(("before", "to", "is_new"), STAYS.values(), ids=list(STAYS))
def test_member_stays_unchanged(before: ConsumerGroupMember, to: Goal, is_new: bool) -> None:
    assert before is reconciled(before, to, has_new_subscription=is_new)


@pytest.mark.parametrize("owned", [None, {T: [0]}])
def test_member_in_an_unknown_state_must_own_nothing(owned: dict[UUID, list[int]] | None) -> None:
    with pytest.raises(FencedMemberEpoch):
        reconciled(
            member(MemberState.UNKNOWN), goal({T: (0,)}, owned=owned), has_new_subscription=False
        )


def test_member_states_have_kafkas_numbers() -> None:
    states: dict[int, Any] = {0: STABLE, 1: UNREVOKED, 2: UNRELEASED}
    states |= dict.fromkeys((3, 126, 127, -1), MemberState.UNKNOWN)

    assert states == {number: MemberState.of(number) for number in states}
