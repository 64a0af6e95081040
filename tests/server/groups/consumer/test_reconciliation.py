"""
The next assignment of a member, see ``barnabas.server.groups.consumer.reconciliation``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

import pytest

from barnabas.protocol.errors import FencedMemberEpoch
from barnabas.protocol.messages.consumer_group_heartbeat import TopicPartitions
from barnabas.server.groups.consumer.member import ConsumerGroupMember, MemberState
from barnabas.server.groups.consumer.reconciliation import Goal, reconciled

T, U = UUID(int=1), UUID(int=2)
STABLE, UNREVOKED, UNRELEASED = (
    MemberState.STABLE,
    MemberState.UNREVOKED_PARTITIONS,
    MemberState.UNRELEASED_PARTITIONS,
)


def member(state: MemberState = STABLE, epoch: int = 10, **facts: Any) -> ConsumerGroupMember:
    return ConsumerGroupMember(
        member_id="m", member_epoch=epoch, previous_member_epoch=9, state=state, **facts
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


def step(before: ConsumerGroupMember, to: Goal, *, is_new: bool = False) -> ConsumerGroupMember:
    return reconciled(before, to, has_new_subscription=is_new)


def epochs(after: ConsumerGroupMember) -> tuple[MemberState, int, int]:
    return after.state, after.member_epoch, after.previous_member_epoch


# STABLE


def test_stable_member_at_the_target_epoch_stays_unchanged() -> None:
    before = member(assigned={T: {0: 5}})

    assert before is step(before, goal({T: (1,)}, epoch=10))


def test_stable_member_gets_unowned_partitions() -> None:
    before = member(assigned={T: {0: 5}})

    after = step(before, goal({T: (0, 1), U: (3,)}))

    assert (STABLE, 11, 10) == epochs(after)
    assert {T: {0: 5, 1: 11}, U: {3: 11}} == after.assigned
    assert {} == after.pending_revocation


def test_stable_member_with_its_target_gets_the_target_epoch() -> None:
    after = step(member(assigned={T: {0: 5}}), goal({T: (0,)}))

    assert (STABLE, 11, 10) == epochs(after)
    assert {T: {0: 5}} == after.assigned


def test_stable_member_keeps_its_epoch_while_it_revokes() -> None:
    before = member(assigned={T: {0: 5, 1: 6}})

    after = step(before, goal({T: (0,), U: (0,)}))

    assert (UNREVOKED, 10, 10) == epochs(after)
    assert {T: {0: 5}} == after.assigned
    assert {T: {1: 6}} == after.pending_revocation


def test_stable_member_that_confirms_a_revocation_gets_the_rest_at_once() -> None:
    before = member(assigned={T: {0: 5, 1: 6}})

    after = step(before, goal({T: (0,), U: (0,)}, owned={T: [0]}))

    assert (STABLE, 11, 10) == epochs(after)
    assert {T: {0: 5}, U: {0: 11}} == after.assigned
    assert {} == after.pending_revocation


def test_stable_member_waits_for_partitions_that_others_own() -> None:
    before = member(assigned={T: {0: 5}})

    after = step(before, goal({T: (0, 1, 2)}, taken={(T, 0), (T, 2)}))

    assert (UNRELEASED, 11, 10) == epochs(after)
    assert {T: {0: 5, 1: 11}} == after.assigned


def test_member_waits_if_no_partition_is_free() -> None:
    after = step(member(), goal({T: (1,), U: ()}, taken={(T, 1)}))

    assert (UNRELEASED, 11, 10) == epochs(after)
    assert {} == after.assigned


def test_one_topic_with_owned_partitions_makes_the_member_wait() -> None:
    for target in ({T: (1,), U: (1,)}, {U: (1,), T: (1,)}):
        after = step(member(), goal(target, taken={(T, 1)}))

        assert UNRELEASED is after.state
        assert {U: {1: 11}} == after.assigned


def test_unsubscribed_topics_are_no_part_of_the_target() -> None:
    before = member(assigned={T: {0: 5}})

    after = step(before, goal({T: (0,), U: (0,)}, subscribed=(U,)))

    assert (UNREVOKED, 10, 10) == epochs(after)
    assert {T: {0: 5}} == after.pending_revocation


def test_unsubscribed_topics_are_not_waited_for() -> None:
    after = step(member(), goal({T: (0,)}, subscribed=(U,), taken={(T, 0)}))

    assert (STABLE, 11, 10) == epochs(after)
    assert {} == after.assigned


# A new subscription


def test_changed_subscription_revokes_topics_at_once() -> None:
    before = member(assigned={T: {0: 5}, U: {1: 6}})

    after = step(before, goal({}, epoch=10, subscribed=(U,)), is_new=True)

    assert (UNREVOKED, 10, 10) == epochs(after)
    assert {U: {1: 6}} == after.assigned
    assert {T: {0: 5}} == after.pending_revocation


def test_changed_subscription_without_a_removed_topic_changes_nothing() -> None:
    before = member(assigned={T: {0: 5}})

    assert before is step(before, goal({T: (0,)}, epoch=10), is_new=True)


def test_changed_subscription_drops_partitions_already_revoked() -> None:
    before = member(assigned={T: {0: 5}, U: {1: 6}})

    after = step(before, goal({}, epoch=10, subscribed=(U,), owned={U: [1]}), is_new=True)

    assert (STABLE, 10, 10) == epochs(after)
    assert {U: {1: 6}} == after.assigned
    assert {} == after.pending_revocation


def test_nothing_is_revoked_at_the_same_epoch_without_a_changed_subscription() -> None:
    before = member(assigned={T: {0: 5}})

    assert before is step(before, goal({}, epoch=10, subscribed=()))


def test_end_of_all_subscriptions_begins_an_epoch() -> None:
    """
    As in Kafka, also for a member that has no partitions.
    """
    before = member()

    after = step(before, goal({}, epoch=10, subscribed=(), has_topics=False), is_new=True)

    assert (STABLE, 10, 10) == epochs(after)


def test_unknown_topics_count_as_topics_of_a_subscription() -> None:
    before = member()

    assert before is step(before, goal({}, epoch=10, subscribed=()), is_new=True)


# UNREVOKED_PARTITIONS


@pytest.mark.parametrize("owned", [None, {T: [0, 1]}, {T: [1]}])
def test_member_that_still_owns_revoked_partitions_stays_revoking(
    owned: dict[UUID, list[int]] | None,
) -> None:
    before = member(UNREVOKED, assigned={T: {0: 5}}, pending_revocation={T: {1: 6}})

    assert before is step(before, goal({T: (0,), U: (0,)}, owned=owned))


@pytest.mark.parametrize("owned", [{}, {T: [0]}, {U: [1]}])
def test_member_that_revoked_moves_on_to_the_target(owned: dict[UUID, list[int]]) -> None:
    before = member(UNREVOKED, assigned={T: {0: 5}}, pending_revocation={T: {1: 6}})

    after = step(before, goal({T: (0,), U: (0,)}, owned=owned))

    assert (STABLE, 11, 10) == epochs(after)
    assert {T: {0: 5}, U: {0: 11}} == after.assigned
    assert {} == after.pending_revocation


def test_revoked_partition_may_be_assigned_again() -> None:
    """
    Nobody else can have got it: it counted as the member's own.
    """
    before = member(UNREVOKED, assigned={T: {0: 5}}, pending_revocation={T: {1: 6}})

    after = step(before, goal({T: (0, 1)}, owned={T: [0]}, taken={(T, 0), (T, 1)}))

    assert (STABLE, 11, 10) == epochs(after)
    assert {T: {0: 5, 1: 11}} == after.assigned


def test_one_revocation_may_follow_another() -> None:
    before = member(UNREVOKED, assigned={T: {0: 5, 2: 5}}, pending_revocation={T: {1: 6}})

    after = step(before, goal({T: (0,)}, owned={T: [0, 2]}))

    assert (UNREVOKED, 10, 10) == epochs(after)
    assert {T: {0: 5}} == after.assigned
    assert {T: {2: 5}} == after.pending_revocation


def test_changed_subscription_extends_a_revocation() -> None:
    before = member(
        UNREVOKED, assigned={T: {0: 5}, U: {0: 5}}, pending_revocation={T: {1: 6}, U: {1: 6}}
    )

    after = step(before, goal({U: (0,)}, subscribed=(U,), owned=None), is_new=True)

    assert (UNREVOKED, 10, 10) == epochs(after)
    assert {U: {0: 5}} == after.assigned
    assert {T: {0: 5, 1: 6}, U: {1: 6}} == after.pending_revocation


def test_revoking_member_without_changes_stays_unchanged() -> None:
    before = member(UNREVOKED, assigned={T: {0: 5}}, pending_revocation={T: {1: 6}})

    assert before is step(before, goal({}, owned=None), is_new=True)


def test_end_of_all_subscriptions_extends_a_revocation() -> None:
    before = member(UNREVOKED, assigned={T: {0: 5}}, pending_revocation={T: {1: 6}})

    after = step(before, goal({}, subscribed=(), has_topics=False), is_new=True)

    assert {} == after.assigned
    assert {T: {0: 5, 1: 6}} == after.pending_revocation


# UNRELEASED_PARTITIONS


def test_waiting_member_gets_released_partitions() -> None:
    before = member(UNRELEASED, 11, assigned={T: {0: 5}})

    after = step(before, goal({T: (0, 1)}, taken={(T, 0)}))

    assert (STABLE, 11, 11) == epochs(after)
    assert {T: {0: 5, 1: 11}} == after.assigned


def test_waiting_member_continues_to_wait() -> None:
    before = member(UNRELEASED, 11, assigned={T: {0: 5}})

    after = step(before, goal({T: (0, 1)}, taken={(T, 1)}))

    assert (UNRELEASED, 11, 11) == epochs(after)


def test_waiting_member_may_have_to_revoke_for_the_next_target() -> None:
    before = member(UNRELEASED, 11, assigned={T: {0: 5}})

    after = step(before, goal({T: (1,)}, epoch=12, taken={(T, 1)}))

    assert (UNREVOKED, 11, 11) == epochs(after)
    assert {T: {0: 5}} == after.pending_revocation


# UNKNOWN


@pytest.mark.parametrize("owned", [None, {T: [0]}])
def test_member_in_an_unknown_state_must_own_nothing(
    owned: dict[UUID, list[int]] | None,
) -> None:
    with pytest.raises(FencedMemberEpoch):
        step(member(MemberState.UNKNOWN), goal({T: (0,)}, owned=owned))


def test_member_in_an_unknown_state_starts_over() -> None:
    before = member(MemberState.UNKNOWN, assigned={T: {0: 5, 1: 5}})

    after = step(before, goal({T: (0,)}, owned={}))

    assert (STABLE, 11, 10) == epochs(after)
    assert {T: {0: 5}} == after.assigned


@pytest.mark.parametrize(("number", "state"), [(0, STABLE), (1, UNREVOKED), (2, UNRELEASED)])
def test_member_states_have_kafkas_numbers(number: int, state: MemberState) -> None:
    assert state is MemberState.of(number)


def test_unknown_numbers_are_an_unknown_member_state() -> None:
    assert {MemberState.UNKNOWN} == {MemberState.of(number) for number in (3, 126, 127, -1)}
