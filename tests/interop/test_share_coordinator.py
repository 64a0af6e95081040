"""
The share coordinator beside that of Apache Kafka: the same requests, answers and records.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from barnabas.coordination.share.coordinator.records import decode_record
from barnabas.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from barnabas.protocol.records.batch import batches
from barnabas.protocol.structs import items
from tests.support.both_brokers import BothBrokers
from tests.support.share_client import PATIENCE_S, ShareClient, topic_id_of

pytestmark = [pytest.mark.interop, pytest.mark.prove]

TOPIC = "t"
STATE_TOPIC = "__share_group_state"
REQUESTS = 400
SETTINGS = {
    "share.coordinator.state.topic.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "share.coordinator.snapshot.update.records.per.snapshot": "5",
}
Step = Callable[[ShareClient], Awaitable[Any]]


def random_step(choose: random.Random) -> Step:
    """
    A request about one of a few share-partitions, one of which cannot be.
    """
    group = choose.choice(["g", "h"])
    partition = choose.choice([0, 0, 0, 1, 2, -1])
    kind = choose.choices(["initialize", "read", "write", "delete", "summary"], [2, 3, 14, 0.4, 3])[
        0
    ]
    state_epoch, leader_epoch = (choose.choice([-1, 0, 0, 0, 1]) for _ in range(2))
    if kind == "initialize":
        start = choose.choice([-1, 0, 5])
        return lambda client: client.initialize(
            group, start, partition=partition, state_epoch=state_epoch
        )
    if kind == "read":
        return lambda client: client.read(group, leader_epoch, partition=partition)
    if kind == "delete":
        return lambda client: client.delete(group, partition=partition)
    if kind == "summary":
        return lambda client: client.summary(group, partition=partition)
    state = []
    for _ in range(choose.randrange(4)):
        first = choose.randrange(30)
        last = first + choose.randrange(6)
        state.append((first, last, choose.choice([0, 2, 4]), choose.randrange(1, 5)))
    values = {
        "state_epoch": state_epoch,
        "leader_epoch": leader_epoch,
        "start_offset": choose.choice([-1, 0, choose.randrange(15)]),
        "delivery_complete_count": choose.randrange(5),
    }
    return lambda client: client.write(group, state, partition=partition, **values)


def without_message(answer: Any) -> dict[str, Any]:
    """
    An answer without the sentence of its error. Sentences are our own.
    """
    return {name: repr(value) for name, value in items(answer) if name != "error_message"}


async def state_records(client: ShareClient) -> list[Any]:
    """
    The records of the topic, without topic ids and times.
    """
    topic_id = await topic_id_of(client.client, STATE_TOPIC)
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 24)
    request = FetchRequest(
        max_wait_ms=0,
        min_bytes=0,
        topics=[FetchTopic(topic_id=topic_id, partitions=[partition])],
    )
    answer = await client.client.ask(request, 13)
    found = []
    for batch in batches(answer.responses[0].partitions[0].records):
        for stored in batch.records():
            record = decode_record(stored.key, stored.value)
            assert record is not None
            value = record.value
            fields = {} if value is None else dict(items(value))
            for name in ("create_timestamp", "write_timestamp"):
                fields.pop(name, None)
            found.append((stored.offset, record.key.group_id, record.key.partition, fields))
    return found


async def test_random_share_state_requests_are_answered_and_written_as_in_kafka(
    tmp_path: Path,
) -> None:
    choose = random.Random(11)
    with BothBrokers.side_by_side(tmp_path, SETTINGS) as both:
        await asyncio.to_thread(both.start)
        for _ in range(2):
            kafka, barnabas = [await ShareClient.of(each.port, TOPIC, 2) for each in both]
            for client in (kafka, barnabas):
                await until_ready(client)
            for number in range(REQUESTS):
                step = random_step(choose)

                theirs, ours = (
                    without_message(await step(kafka)),
                    without_message(await step(barnabas)),
                )

                assert theirs == ours, number
            assert await state_records(kafka) == await state_records(barnabas)
            for client in (kafka, barnabas):
                await client.close()
            for broker in both:
                await asyncio.to_thread(broker.restart)


async def until_ready(client: ShareClient) -> None:
    """
    Kafka creates the topic of the share coordinator for FindCoordinator only, and loads it later.
    """
    async with asyncio.timeout(PATIENCE_S):
        while (await client.summary("g")).error_code:
            await client.find_coordinator("g")
            await asyncio.sleep(0.2)
