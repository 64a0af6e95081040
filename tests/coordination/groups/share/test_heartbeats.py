"""
Members of share groups join, share partitions, and leave.
"""

from __future__ import annotations

import pytest

from barnabas.coordination.groups.caller import Caller
from tests.support.coordination import GROUP
from tests.support.share_groups import ShareCoordination, share_facts

# Joining


def test_first_member_creates_the_share_group_and_initializes_its_states() -> None:
    c = ShareCoordination()
    topic_id = c.create("t", 2)
    c.is_slow_to_initialize = True

    answer = c.enter("a", ["t"])

    assert ["10 a", "11", "13 a", "12", "14 a", "15"] == c.last
    assert (2, []) == (
        answer.member_epoch,
        answer.assignment and answer.assignment.topic_partitions,
    )
    assert [(GROUP, 2, {topic_id: frozenset({0, 1})})] == [
        (group_id, epoch, {each: topic.partitions for each, topic in topics.items()})
        for group_id, epoch, topics in c.asked
    ]


def test_share_partitions_are_assigned_once_their_states_are_initialized() -> None:
    c = ShareCoordination()
    topic_id = c.create("t", 2)
    c.enter("a", ["t"])

    answer = c.report("a")

    assert 3 == answer.member_epoch
    assert {topic_id: [0, 1]} == c.assigned("a")
    assert answer.assignment is not None


@pytest.mark.parametrize(
    ("partitions", "member_ids", "sizes"),
    [(1, "abc", [1, 1, 1]), (4, "ab", [2, 2])],
    ids=["more members", "fewer members"],
)
def test_share_partitions_are_spread_over_the_members(
    partitions: int, member_ids: str, sizes: list[int]
) -> None:
    c = ShareCoordination.of(*member_ids, partitions=partitions)

    assigned = [c.assigned(member_id)[c.topic_id()] for member_id in member_ids]

    assert sizes == [*map(len, assigned)]
    assert set(range(partitions)) == set().union(*assigned)


def test_share_members_get_only_topics_they_subscribe_to() -> None:
    c = ShareCoordination()
    first, second = c.create("t", 2), c.create("u", 1)
    c.enter("a", ["t"])
    c.enter("b", ["u"])

    c.settle("a", "b")

    assert ({first: [0, 1]}, {second: [0]}) == (c.assigned("a"), c.assigned("b"))


def test_heartbeat_that_repeats_its_topics_returns_the_assignment() -> None:
    c = ShareCoordination.of("a", partitions=1)

    answer = c.beat("a", c.member("a").member_epoch, topics=["t"])

    assert answer.assignment is not None
    assert [[0]] == [topic.partitions for topic in answer.assignment.topic_partitions]


def test_changed_topics_begin_an_epoch() -> None:
    c = ShareCoordination({"t": 1})
    other = c.create("u", 1)
    c.enter("a", ["t"])
    c.settle("a")
    epoch = c.shares.group_epoch

    c.beat("a", c.member("a").member_epoch, topics=["u"])
    c.settle("a")

    assert epoch < c.shares.group_epoch
    assert {other: [0]} == c.assigned("a")


def test_changed_client_or_rack_is_recorded_without_an_epoch() -> None:
    c = ShareCoordination.of("a", partitions=1)
    epoch = c.shares.group_epoch

    c.beat("a", epoch, rack_id="r", caller=Caller(1, "other", "/10.0.0.1"))

    assert ["10 a"] == c.last
    member = c.member("a")
    assert ("r", "other", "/10.0.0.1") == (member.rack_id, member.client_id, member.client_host)
    assert epoch == c.shares.group_epoch


def test_next_assignment_waits_for_the_assignment_interval() -> None:
    c = ShareCoordination({"t": 2}, interval_ms=1000)
    c.enter("a", ["t"])
    c.report("a")
    assert c.shares.assignment_epoch < c.shares.group_epoch

    c.advance(1000)
    c.report("a")

    assert c.shares.assignment_epoch == c.shares.group_epoch


# Topics


@pytest.mark.parametrize("before", [0, 1])
def test_new_partitions_are_initialized_and_assigned(before: int) -> None:
    c = ShareCoordination()
    if before:
        c.create("t", before)
    c.enter("a", ["t"])
    c.settle("a")

    topic_id = c.create("t", 3)
    c.settle("a")

    assert {topic_id: frozenset(range(before, 3))} == {
        each: topic.partitions for each, topic in c.asked[-1].topics.items()
    }
    assert {topic_id: [0, 1, 2]} == c.assigned("a")


def test_missing_share_states_are_requested_again_after_the_interval() -> None:
    c = ShareCoordination({"t": 1}, group_share_initialize_retry_interval_ms=30_000)
    c.is_slow_to_initialize = True
    c.enter("a", ["t"])
    c.report("a")
    c.advance(29_999)
    c.report("a")
    assert 1 == len(c.asked)

    c.advance(1)
    c.report("a")

    assert 2 == len(c.asked)


def test_failed_share_states_are_requested_with_the_next_heartbeat() -> None:
    c = ShareCoordination({"t": 1})
    c.is_slow_to_initialize = True
    c.enter("a", ["t"])
    c.change_states(c.shares.known_states.failed(c.asked[0].topics))

    c.report("a")

    assert 2 == len(c.asked)


def test_failed_share_states_of_an_added_topic_are_requested_again() -> None:
    c = ShareCoordination({"t": 1})
    other = c.create("u", 1)
    c.enter("a", ["t"])
    c.settle("a")
    c.is_slow_to_initialize = True
    c.beat("a", c.member("a").member_epoch, topics=["t", "u"])
    c.change_states(c.shares.known_states.failed(c.asked[-1].topics))
    asked = len(c.asked)

    c.report("a")
    c.report("a")

    assert asked < len(c.asked)
    assert {other} == set(c.asked[-1].topics)


# Leaving


def test_share_group_without_members_is_empty_and_kept() -> None:
    c = ShareCoordination({"t": 1})
    c.enter("a", ["t"])

    c.beat("a", -1)

    assert ("Empty", True) == (c.shares.state_name, c.shares.is_empty)
    assert c.shares.known_states.initialized


# Epochs


def test_previous_epoch_is_accepted() -> None:
    # The response with the current epoch may have been lost.
    c = ShareCoordination.of("a", partitions=1)

    assert 3 == c.beat("a", 2).member_epoch


# Restarts


def test_share_group_survives_a_restart() -> None:
    c = ShareCoordination({"t": 3, "u": 1})
    c.enter("a", ["t"], rack_id="r")
    c.enter("b", ["t", "u"])
    c.settle("a", "b")
    c.enter("c", ["u"])
    c.beat("a", -1)
    facts = share_facts(c.state)

    c.restart()

    assert facts == share_facts(c.state)
    assert facts[GROUP]["members"]
