"""
Members of share groups join, share partitions, and leave.
"""

from __future__ import annotations

import pytest

from barnabas.protocol.errors import (
    ErrorCode,
)
from barnabas.server.groups.caller import Caller
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


def test_share_partitions_are_shared_among_more_members() -> None:
    c = ShareCoordination()
    topic_id = c.create("t", 1)
    for member_id in ("a", "b", "c"):
        c.enter(member_id, ["t"])

    c.settle("a", "b", "c")

    assert [{topic_id: [0]}] * 3 == [c.assigned(member_id) for member_id in ("a", "b", "c")]


def test_share_partitions_are_spread_over_fewer_members() -> None:
    c = ShareCoordination()
    topic_id = c.create("t", 4)
    for member_id in ("a", "b"):
        c.enter(member_id, ["t"])

    c.settle("a", "b")

    assert [0, 1, 2, 3] == sorted(c.assigned("a")[topic_id] + c.assigned("b")[topic_id])
    assert 2 == len(c.assigned("a")[topic_id])


def test_share_members_get_only_topics_they_subscribe_to() -> None:
    c = ShareCoordination()
    first, second = c.create("t", 2), c.create("u", 1)
    c.enter("a", ["t"])
    c.enter("b", ["u"])

    c.settle("a", "b")

    assert ({first: [0, 1]}, {second: [0]}) == (c.assigned("a"), c.assigned("b"))


def test_heartbeat_without_changes_writes_nothing() -> None:
    c = ShareCoordination()
    c.create("t", 1)
    c.enter("a", ["t"])
    c.settle("a")
    before = len(c.log)

    answer = c.report("a")

    assert (before, None) == (len(c.log), answer.assignment)


def test_heartbeat_that_repeats_its_topics_returns_the_assignment() -> None:
    c = ShareCoordination()
    c.create("t", 1)
    c.enter("a", ["t"])
    c.settle("a")

    answer = c.beat("a", c.member("a").member_epoch, topics=["t"])

    assert answer.assignment is not None
    assert [[0]] == [topic.partitions for topic in answer.assignment.topic_partitions]


def test_changed_topics_begin_an_epoch() -> None:
    c = ShareCoordination()
    c.create("t", 1)
    other = c.create("u", 1)
    c.enter("a", ["t"])
    c.settle("a")
    epoch = c.shares.group_epoch

    c.beat("a", c.member("a").member_epoch, topics=["u"])
    c.settle("a")

    assert epoch < c.shares.group_epoch
    assert {other: [0]} == c.assigned("a")


def test_changed_client_or_rack_is_recorded_without_an_epoch() -> None:
    c = ShareCoordination()
    c.create("t", 1)
    c.enter("a", ["t"])
    c.settle("a")
    epoch = c.shares.group_epoch

    c.beat("a", epoch, rack_id="r", caller=Caller(1, "other", "/10.0.0.1"))

    assert ["10 a"] == c.last
    member = c.member("a")
    assert ("r", "other", "/10.0.0.1") == (member.rack_id, member.client_id, member.client_host)
    assert epoch == c.shares.group_epoch


def test_next_assignment_waits_for_the_assignment_interval() -> None:
    c = ShareCoordination(interval_ms=1000)
    c.create("t", 2)
    c.enter("a", ["t"])
    c.report("a")
    assert c.shares.assignment_epoch < c.shares.group_epoch

    c.advance(1000)
    c.report("a")

    assert c.shares.assignment_epoch == c.shares.group_epoch


# Topics


def test_added_partitions_are_initialized_and_assigned() -> None:
    c = ShareCoordination()
    topic_id = c.create("t", 1)
    c.enter("a", ["t"])
    c.settle("a")

    c.grow("t", 3)
    c.settle("a")

    assert {topic_id: frozenset({1, 2})} == {
        each: topic.partitions for each, topic in c.asked[-1].topics.items()
    }
    assert {topic_id: [0, 1, 2]} == c.assigned("a")


def test_topic_created_later_is_assigned() -> None:
    c = ShareCoordination()
    c.enter("a", ["t"])
    assert not c.asked

    topic_id = c.create("t", 1)
    c.settle("a")

    assert {topic_id: [0]} == c.assigned("a")


def test_missing_share_states_are_requested_again_after_the_interval() -> None:
    c = ShareCoordination(group_share_initialize_retry_interval_ms=30_000)
    c.create("t", 1)
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
    c = ShareCoordination()
    c.create("t", 1)
    c.is_slow_to_initialize = True
    c.enter("a", ["t"])
    c.change_states(c.shares.known_states.failed(c.asked[0].topics))

    c.report("a")

    assert 2 == len(c.asked)


def test_failed_share_states_of_an_added_topic_are_requested_again() -> None:
    c = ShareCoordination()
    c.create("t", 1)
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


def test_leaving_member_is_removed_and_an_epoch_begins() -> None:
    c = ShareCoordination()
    topic_id = c.create("t", 2)
    for member_id in ("a", "b"):
        c.enter(member_id, ["t"])
    c.settle("a", "b")
    epoch = c.shares.group_epoch

    answer = c.beat("b", -1)

    assert ("b", -1) == (answer.member_id, answer.member_epoch)
    assert ["-14 b", "-13 b", "-10 b", "11"] == c.last
    assert epoch + 1 == c.shares.group_epoch
    c.settle("a")
    assert {topic_id: [0, 1]} == c.assigned("a")


def test_share_group_without_members_is_empty_and_kept() -> None:
    c = ShareCoordination()
    c.create("t", 1)
    c.enter("a", ["t"])

    c.beat("a", -1)

    assert ("Empty", True) == (c.shares.state_name, c.shares.is_empty)
    assert c.shares.known_states.initialized


def test_member_without_heartbeats_is_fenced() -> None:
    c = ShareCoordination()
    c.create("t", 1)
    c.set_config(share_assignment_interval_ms=0, share_session_timeout_ms=45_000)
    c.enter("a", ["t"])
    c.enter("b", ["t"])
    c.advance(44_000)
    c.report("a")

    c.advance(1_000)

    assert ["a"] == list(c.shares.members)
    assert ["-14 b", "-13 b", "-10 b", "11"] == c.last


@pytest.mark.parametrize("leave", [False, True])
def test_removal_of_an_expired_member_is_retried_after_a_failed_write(leave: bool) -> None:
    c = ShareCoordination()
    c.create("t", 1)
    c.enter("a", ["t"])
    c.append_error = ErrorCode.MESSAGE_TOO_LARGE
    if leave:
        c.beat("a", -1)
    else:
        c.advance(45_000)
    assert ["a"] == list(c.shares.members)
    c.append_error = None

    c.advance(45_000)

    assert c.shares.is_empty


def test_members_have_full_sessions_after_a_restart() -> None:
    c = ShareCoordination()
    c.create("t", 1)
    c.enter("a", ["t"])
    c.settle("a")

    c.restart()
    c.state.loaded(c.now_ms)
    c.advance(44_999)
    assert "a" in c.shares.members
    c.advance(1)

    assert c.shares.is_empty


# Epochs


def test_previous_epoch_is_accepted() -> None:
    """
    The response with the current epoch may have been lost.
    """
    c = ShareCoordination()
    c.create("t", 1)
    c.enter("a", ["t"])
    c.settle("a")

    assert 3 == c.beat("a", 2).member_epoch


def test_a_member_may_join_again() -> None:
    c = ShareCoordination()
    c.create("t", 1)
    c.enter("a", ["t"])
    c.settle("a")
    epoch = c.shares.group_epoch

    answer = c.enter("a", ["t"])

    assert epoch == answer.member_epoch
    assert answer.assignment is not None
    assert answer.assignment.topic_partitions


# Restarts


def test_share_group_survives_a_restart() -> None:
    c = ShareCoordination()
    c.create("t", 3)
    c.create("u", 1)
    c.enter("a", ["t"], rack_id="r")
    c.enter("b", ["t", "u"])
    c.settle("a", "b")
    c.enter("c", ["u"])
    c.beat("a", -1)
    facts = share_facts(c.state)

    c.restart()

    assert facts == share_facts(c.state)
    assert facts[GROUP]["members"]
