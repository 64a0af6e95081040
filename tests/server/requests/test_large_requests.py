"""
Requests over many existing partitions, producers and offsets do not block the event loop.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Iterator
from typing import Any, Final

import pytest

from barnabas.protocol.messages.create_topics import CreateTopicsRequest
from barnabas.protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest
from barnabas.protocol.messages.find_coordinator import FindCoordinatorRequest
from barnabas.protocol.messages.init_producer_id import InitProducerIdRequest
from barnabas.protocol.messages.metadata import MetadataRequest
from barnabas.protocol.messages.offset_commit import OffsetCommitRequest
from barnabas.protocol.messages.offset_delete import OffsetDeleteRequest
from barnabas.protocol.messages.produce import ProduceRequest
from tests.server.requests.test_absurd_requests import TRIES, Broker, turn_of
from tests.support.group_requests import commit_request, offset_delete_request
from tests.support.limits import stated
from tests.support.server import batch, fetch_request, fetch_topic, produce_all, produce_topic
from tests.support.topic_requests import creatable
from tests.support.transaction_requests import add_partitions_request, end_request
from tests.support.wire_client import WireClient, request_frame

PARTITIONS: Final = 2100
MANY_TIMES: Final = 100_000


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    thresholds = gc.get_threshold()
    with Broker() as broker:
        asyncio.run(populate(broker))
        yield broker
    gc.set_threshold(*thresholds)
    gc.unfreeze()


def topic_request(name: str) -> CreateTopicsRequest:
    topic = creatable(name, PARTITIONS)
    return CreateTopicsRequest(topics=[topic], timeout_ms=60_000)


async def populate(broker: Broker) -> None:
    async with await WireClient.open(broker.port) as client:
        answer = await client.ask(topic_request("wide"), 7)
        assert 0 == answer.topics[0].error_code
        for kind in (0, 1):
            await coordinated(client, kind)


async def coordinated(client: WireClient, kind: int) -> None:
    """
    Wait for the coordinator of groups (0) or of transactions (1).
    """
    codes = [1]

    async def is_there() -> None:
        answer = await client.ask(FindCoordinatorRequest(key="g", key_type=kind), 3)
        codes[0] = answer.error_code

    while codes[0]:
        await is_there()


async def check(broker: Broker, *requests: tuple[Any, int]) -> None:
    """
    Send *requests* one after the other; none may block the loop for longer than documented.
    """
    frames = [request_frame(request, version) for request, version in requests]
    longest = 1.0
    for _ in range(TRIES):
        longest = min(longest, max([await turn_of(broker, frame) for frame in frames]))
        if longest <= stated("longest-turn"):
            return
    assert longest <= stated("longest-turn")


def produce_to_all() -> ProduceRequest:
    records = dict.fromkeys(range(PARTITIONS), batch(b"x"))
    return produce_all(produce_topic("wide", records), acks=-1)


def commit(indexes: list[int]) -> OffsetCommitRequest:
    return commit_request("g", "wide", [(index, 1) for index in indexes])


def offset_deletion(indexes: list[int]) -> OffsetDeleteRequest:
    return offset_delete_request("g", {"wide": indexes})


async def test_large_produce_and_fetch_requests_are_served(broker: Broker) -> None:
    wanted = fetch_topic("wide", dict.fromkeys(range(PARTITIONS), 0))

    await check(
        broker,
        (produce_to_all(), 9),
        (fetch_request(wanted, max_bytes=50 << 20), 12),
        (fetch_request(wanted, session_epoch=0), 12),
        (MetadataRequest(topics=None), 9),
    )


async def test_large_offset_requests_are_served(broker: Broker) -> None:
    every = list(range(PARTITIONS))

    await check(broker, (commit(every), 8), (offset_deletion(every), 0))


async def test_large_work_does_not_delay_later_large_requests(broker: Broker) -> None:
    """
    A client that sends large requests one after the other does not wait for its own earlier ones.
    """
    wanted = fetch_topic("wide", dict.fromkeys(range(PARTITIONS), 0))
    large: list[tuple[Any, int]] = [
        (produce_to_all(), 9),
        (fetch_request(wanted, max_bytes=50 << 20), 12),
        (MetadataRequest(topics=None), 9),
    ]
    async with await WireClient.open(broker.port) as client:
        before = broker.served

        for request, version in large:
            await client.ask(request, version)
        assert before == broker.served

        await client.ask(FindCoordinatorRequest(key="g", key_type=0), 3)
        assert before + 1 == broker.served


async def test_same_offset_may_be_committed_and_deleted_very_often(broker: Broker) -> None:
    """
    The records of these changes do not fit into one batch.
    """
    same = [0] * MANY_TIMES

    await check(broker, (commit([0]), 8), (commit(same), 8), (offset_deletion(same), 0))


async def test_transaction_over_all_partitions_ends(broker: Broker) -> None:
    longest = []
    async with await WireClient.open(broker.port) as client:
        for _ in range(TRIES):
            told = await client.ask(
                InitProducerIdRequest(transactional_id="t", transaction_timeout_ms=60_000), 4
            )
            producer = (told.producer_id, told.producer_epoch)
            add = add_partitions_request("t", producer, {"wide": range(PARTITIONS)})
            await client.ask(add, 3)
            broker.longest_s = 0.0
            end = end_request("t", producer, commit=True)
            assert 0 == (await client.ask(end, 3)).error_code
            while 51 == (await client.ask(end, 3)).error_code:
                pass
            longest.append(broker.longest_s)
            if min(longest) <= stated("longest-turn"):
                break

    assert min(longest) <= stated("longest-turn")


async def test_producers_of_one_partition_may_be_described_very_often(broker: Broker) -> None:
    """
    The cost does not depend on the number of partitions of the topic.
    """
    topic = TopicRequest(name="wide", partition_indexes=[0] * (MANY_TIMES // 20))

    await check(broker, (DescribeProducersRequest(topics=[topic]), 0))
