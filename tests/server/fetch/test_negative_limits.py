"""
A fetch whose ``max_bytes`` is negative fails for the first partition that is read, as in Kafka: its
``ReplicaManager.readFromLog`` has 0 bytes left for the others.
"""

from __future__ import annotations

from functools import partial

import pytest

from barnabas.protocol.errors import ErrorCode
from tests.support.server import (
    TestBroker,
    batch,
    fetch_request,
    fetch_topic,
    produce_request,
)

E = ErrorCode
VERSION = 12


async def outcomes(
    broker: TestBroker, *offsets: int, max_bytes: int, topic: str = "t"
) -> list[tuple[int, int]]:
    """
    The code and the number of bytes of each partition.
    """
    request = fetch_request(
        fetch_topic(topic, dict(enumerate(offsets))), max_bytes=max_bytes, max_wait_ms=0
    )
    async with await broker.client() as client:
        answer = await client.ask(request, VERSION)
    return [(part.error_code, len(part.records or b"")) for part in answer.responses[0].partitions]


async def filled(broker: TestBroker) -> int:
    """
    The size of the one batch in each of three partitions.
    """
    await broker.create("t", 3)
    records = batch("a")
    async with await broker.client() as client:
        for partition in range(3):
            await client.ask(produce_request("t", records, partition=partition), 9)
    return len(records)


@pytest.mark.parametrize(
    ("offset", "max_bytes", "first"),
    [
        pytest.param(0, -1, E.UNKNOWN_SERVER_ERROR, id="negative fails the first alone"),
        pytest.param(99, -1, E.OFFSET_OUT_OF_RANGE, id="an error is the first"),
        pytest.param(1, -1, E.NONE, id="an empty partition is the first"),
        pytest.param(0, 0, None, id="0 gives one batch"),
        pytest.param(0, 1, None, id="1 gives one batch"),
    ],
)
async def test_first_partition_is_treated_apart_if_max_bytes_is_small(
    broker: TestBroker, offset: int, max_bytes: int, first: ErrorCode | None
) -> None:
    """
    The first partition with a batch gives it; *first* is the code of one before it that does not.
    """
    size = await filled(broker)

    found = await outcomes(broker, offset, 0, 0, max_bytes=max_bytes)

    batch_alone = [(E.NONE, size), (E.NONE, 0), (E.NONE, 0)]
    assert found == (batch_alone if first is None else [(first, 0), *batch_alone[:2]])


async def test_first_partition_counts_in_a_session_that_knows_it_to_be_empty(
    broker: TestBroker,
) -> None:
    size = await filled(broker)
    topic = fetch_topic("t", {0: 1, 1: 1})
    async with await broker.client() as client:
        session = await client.ask(fetch_request(topic, session_epoch=0, max_wait_ms=0), VERSION)
        again = partial(fetch_request, session_id=session.session_id, max_wait_ms=0)
        await client.ask(again(session_epoch=1), VERSION)
        await client.ask(produce_request("t", batch("b"), partition=1), 9)
        answer = await client.ask(again(session_epoch=2, max_bytes=-1), VERSION)

    found = [part for each in answer.responses for part in each.partitions]
    assert [(1, E.NONE, size)] == [
        (part.partition_index, part.error_code, len(part.records or b"")) for part in found
    ]
