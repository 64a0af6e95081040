"""
The rules of committed offsets and of the epochs of groups.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tests.checkers.fakes import TOPIC_ID, committed, shard
from tests.support.checkers.groups import Groups

KEY = ("office", "orders", 0)
RETENTION_MS = 1000


class World:
    """
    A group whose offset was 5 at the first look.
    """

    def __init__(self) -> None:
        self.found: list[str] = []
        self.now_ms = 0
        self.topic_id: Any = TOPIC_ID
        self.groups = Groups(
            self.found.append,
            now_ms=lambda: self.now_ms,
            retention_ms=lambda: RETENTION_MS,
            topic_id=lambda _: self.topic_id,
        )
        self.shard = shard(offsets=[(*KEY, committed(5))])
        self.groups.look([self.shard])

    def change(self, offset: int | None) -> None:
        """
        Look when the offset has become *offset*, or has disappeared.
        """
        offsets = [] if offset is None else [(*KEY, committed(offset))]
        self.shard.state.offsets.committed = offsets
        self.groups.look([self.shard])


def test_offset_that_changes_without_a_request_is_found() -> None:
    world = World()

    world.change(4)

    assert [
        "group office: the offset of orders-0 became 4 instead of 5, which no request has asked for"
    ] == world.found


def test_offset_may_become_what_a_client_commits() -> None:
    world = World()
    world.groups.asks().values[KEY] = 4

    world.change(4)

    assert [] == world.found


def test_answered_commit_that_stored_another_offset_is_found() -> None:
    world = World()
    world.groups.asks().values[KEY] = 6

    world.groups.acknowledge(KEY, 6)
    world.groups.acknowledge(KEY, 5)

    assert 1 == len(world.found)
    assert "is answered, and the offset is 5" in world.found[0]


def test_commit_may_be_answered_after_a_later_one() -> None:
    """
    The append of the later one moves the high watermark: it is answered at once, and the waiters of
    the earlier ones go on in the next round of the event loop, perhaps after a look.
    """
    world = World()
    first, second = world.groups.asks(), world.groups.asks()
    first.values[KEY], second.values[KEY] = 6, 7
    world.groups.acknowledge(KEY, 7)
    second.is_done = True
    world.change(7)

    world.groups.acknowledge(KEY, 7)

    assert [] == world.found


def test_offset_may_not_return_to_one_that_was_committed_before_the_last_look() -> None:
    world = World()
    first, second = world.groups.asks(), world.groups.asks()
    first.values[KEY], second.values[KEY] = 6, 7
    first.is_done = second.is_done = True
    world.change(7)

    world.change(6)

    assert 1 == len(world.found)


def test_offset_may_become_what_a_transaction_commits() -> None:
    world = World()
    world.groups.asks_in_transaction(KEY, 4)
    world.groups.look([world.shard])

    world.change(4)

    assert [] == world.found


def test_offset_may_become_what_a_transaction_from_before_the_restart_commits() -> None:
    world = World()
    world.shard.state.offsets._pending = {7: [(*KEY, committed(9))]}
    world.change(5)

    world.change(9)

    assert [] == world.found


def test_offset_that_disappears_is_found() -> None:
    world = World()

    world.change(None)

    assert [
        "group office: the offset 5 of orders-0 disappeared, neither deleted nor expired"
    ] == world.found


def test_offset_may_be_deleted() -> None:
    world = World()
    world.groups.asks().keys.add(KEY)

    world.change(None)

    assert [] == world.found


def test_offset_may_be_deleted_with_its_group() -> None:
    world = World()
    world.groups.asks().names.add("office")

    world.change(None)

    assert [] == world.found


def test_offset_may_expire() -> None:
    world = World()
    world.now_ms = RETENTION_MS

    world.change(None)

    assert [] == world.found


def test_offset_may_be_deleted_with_its_topic() -> None:
    world = World()
    world.topic_id = None

    world.change(None)

    assert [] == world.found


@pytest.mark.parametrize("name", ["generation_id", "group_epoch"])
def test_epoch_that_goes_back_is_found(name: str) -> None:
    world = World()
    group = SimpleNamespace(group_id="office", **{name: 3})
    world.groups.look([shard(group)])
    setattr(group, name, 2)

    world.groups.look([shard(group)])

    assert "group office: its epoch went back from 3 to 2" in world.found


def test_assignment_of_a_later_epoch_than_that_of_the_group_is_found() -> None:
    world = World()

    world.groups.look([shard(SimpleNamespace(group_id="g", group_epoch=3, assignment_epoch=4))])

    assert "group g: its assignment is of epoch 4, the group is at 3" in world.found


def test_group_that_is_created_again_may_begin_at_its_first_epoch() -> None:
    world = World()
    world.groups.look(
        [shard(SimpleNamespace(group_id="g", group_epoch=3), offsets=[(*KEY, committed(5))])]
    )

    world.groups.look(
        [shard(SimpleNamespace(group_id="g", group_epoch=2), offsets=[(*KEY, committed(5))])]
    )

    assert [] == world.found
