"""
Large messages are freed in steps, except for parts that are still referenced.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from barnabas.coordination.steps import finished
from barnabas.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from barnabas.server.requests.answer_room import AnswerRoom
from barnabas.server.requests.release import AT_ONCE, released

MANY = 10 * AT_ONCE


class Counted(str):
    __slots__ = ()
    alive = 0

    def __new__(cls) -> Counted:
        Counted.alive += 1
        return super().__new__(cls, "x")

    def __del__(self) -> None:
        Counted.alive -= 1


def topic(partitions: int) -> OffsetCommitRequestTopic:
    return OffsetCommitRequestTopic(
        name="t",
        partitions=[
            OffsetCommitRequestPartition(
                partition_index=index, committed_offset=1, committed_metadata=Counted()
            )
            for index in range(partitions)
        ],
    )


def request(topics: int, partitions: int) -> OffsetCommitRequest:
    return OffsetCommitRequest(
        group_id="g",
        generation_id_or_member_epoch=1,
        member_id="m",
        topics=[topic(partitions) for _ in range(topics)],
    )


@pytest.mark.parametrize(("topics", "partitions"), [(MANY, 1), (1, MANY), (3, MANY), (MANY, 3)])
def test_few_objects_are_freed_in_each_step(topics: int, partitions: int) -> None:
    box: list[Any] = [request(topics, partitions), request(1, 1)]
    left = [Counted.alive]

    for _ in released(box).__await__():
        left.append(Counted.alive)

    assert topics * partitions + 1 == left[0]
    assert 0 == Counted.alive
    assert max(before - after for before, after in pairwise(left)) <= 3 * AT_ONCE
    assert not box


def test_objects_referenced_elsewhere_are_not_freed() -> None:
    """
    For a message, one of its lists, one of its entries and a part of that.
    """
    message = request(MANY, 1)
    finished(released([message]))
    assert MANY == len(message.topics)

    topics = message.topics
    box: list[Any] = [message]
    del message
    finished(released(box))
    assert [1] * MANY == [len(each.partitions) for each in topics]

    box = [request(2, MANY)]
    entry, partitions = box[0].topics[0], box[0].topics[1].partitions
    finished(released(box))
    assert [MANY, MANY] == [len(entry.partitions), len(partitions)]


def test_parts_of_a_refused_answer_are_freed_in_steps() -> None:
    room = AnswerRoom()
    parts = room.list()
    parts += [Counted() for _ in range(MANY)]
    steps = room.emptied()
    most = 0
    before = Counted.alive
    for _ in steps.__await__():
        most, before = max(most, before - Counted.alive), Counted.alive

    assert [] == parts
    assert Counted.alive == 0
    assert most <= AT_ONCE
