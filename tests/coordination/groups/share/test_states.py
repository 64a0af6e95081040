"""
The states of a share group's partitions: begun, completed, ended, forgotten.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID

import pytest

from barnabas.coordination.groups.offsets.deleting import DeletedTopic
from barnabas.coordination.groups.share.state_partitions import (
    NO_STATES,
    StatePartitions,
    TopicStates,
)
from barnabas.coordination.groups.share.states import ShareGroupStates
from barnabas.protocol.errors import ErrorCode, NotCoordinator
from tests.support.share_groups import ShareCoordination

A, B = UUID(int=1), UUID(int=2)


def of(topic_id: UUID, *partitions: int) -> dict[UUID, TopicStates]:
    return {topic_id: TopicStates(f"t{topic_id.int}", frozenset(partitions))}


def test_share_states_are_initialized_in_parts() -> None:
    begun = NO_STATES.beginning(of(A, 0, 1)).beginning(of(A, 2))
    assert of(A, 0, 1, 2) == begun.initializing

    completed = begun.completed(of(A, 1))

    assert (of(A, 0, 2), of(A, 1)) == (completed.initializing, completed.initialized)
    assert of(A, 0, 1) == completed.completed(of(A, 0)).initialized


def test_failed_share_states_are_no_longer_initializing() -> None:
    failed = NO_STATES.beginning(of(A, 0, 1) | of(B, 0)).failed(of(A, 0) | of(B, 0))

    assert (of(A, 1), {}) == (failed.initializing, failed.initialized)


def test_topic_without_partitions_stays_initializing_until_named() -> None:
    states = NO_STATES.beginning(of(A, 0) | of(B))

    assert of(B) == states.completed(of(A, 0)).initializing
    assert {} == states.completed(of(A, 0) | of(B, 0)).initializing


def test_share_states_of_initialized_topics_can_be_deleted() -> None:
    states = StatePartitions(initialized=of(A, 0, 1) | of(B, 0), deleting={})

    ending = states.ending([A, UUID(int=9)])

    assert (of(B, 0), {A: "t1"}) == (ending.initialized, ending.deleting)
    assert {} == ending.ended([A]).deleting


def test_topic_initialized_again_is_no_longer_being_deleted() -> None:
    states = StatePartitions(deleting={A: "t1", B: "t2"})

    assert {B: "t2"} == states.beginning(of(A, 0)).deleting


@pytest.mark.parametrize(
    "states",
    [
        StatePartitions(initializing=of(A, 0) | of(B, 0)),
        StatePartitions(initialized=of(A, 0) | of(B, 0)),
        StatePartitions(deleting={A: "t1", B: "t2"}),
    ],
)
def test_deleted_topics_are_forgotten_in_every_state(states: StatePartitions) -> None:
    assert states.knows_any([A])

    left = states.without([A])

    assert not left.knows_any([A])
    assert left.knows_any([B])


def test_deleted_topic_is_removed_from_the_group_record() -> None:
    c = ShareCoordination()
    topic_id = c.create("t", 2)
    other = c.create("u", 1)
    c.enter("a", ["t", "u"])
    assert {topic_id, other} == set(c.shares.known_states.initialized)

    c.delete("t")
    for result in c.state.deleting.forget_topics([DeletedTopic("t", topic_id)]):
        c.write(result)

    assert ["15"] == c.last
    assert {other} == set(c.shares.known_states.initialized)


def test_deleted_topic_unknown_to_all_groups_writes_no_record() -> None:
    c = ShareCoordination({"t": 2})
    c.enter("a", ["t"])
    before = len(c.log)

    for result in c.state.deleting.forget_topics([DeletedTopic("u", UUID(int=7))]):
        c.write(result)

    assert before == len(c.log)


def test_share_group_without_members_and_offsets_is_kept() -> None:
    c = ShareCoordination({"t": 1})
    c.enter("a", ["t"])
    c.beat("a", -1)
    c.advance(365 * 24 * 3600 * 1000)

    for result in c.state.deleting.expire(c.now_ms):
        c.write(result)

    assert c.shares.is_empty


def test_heartbeat_removes_a_deleted_topic_that_was_not_recorded() -> None:
    # A crash may come between the deletion and its record; the epoch stays the same.
    c = ShareCoordination()
    kept = c.create("t", 2)
    deleted = c.create("u", 1)
    c.enter("m", ["t", "u"])
    c.settle("m")
    c.delete("u")

    c.settle("m")

    assert deleted not in c.shares.known_states.initialized
    assert {kept: [0, 1]} == c.assigned("m")


async def test_groups_whose_states_cannot_be_deleted_have_the_reason() -> None:
    class NoShards:
        def of(self, group_id: str) -> Any:
            raise NotCoordinator(group_id)

    nothing = cast(Any, None)
    states = ShareGroupStates(cast(Any, NoShards()), nothing, nothing)

    assert {
        "g": ErrorCode.NOT_COORDINATOR,
        "h": ErrorCode.NOT_COORDINATOR,
    } == await states.delete_all(["g", "h"])


def test_states_are_noted_under_the_names_of_their_topics() -> None:
    nothing = cast(Any, None)
    topics = {UUID(int=1): SimpleNamespace(name="t")}
    states = ShareGroupStates(nothing, cast(Any, SimpleNamespace(get_by_id=topics.get)), nothing)

    assert {
        UUID(int=1): TopicStates("t", frozenset({0})),
        UUID(int=2): TopicStates("<UNKNOWN>", frozenset({1})),
    } == states._named({UUID(int=1): [0], UUID(int=2): [1]})
