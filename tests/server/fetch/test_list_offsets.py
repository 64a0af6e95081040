"""
ListOffsets and OffsetForLeaderEpoch, over the wire.
"""

from __future__ import annotations

import gc
from typing import Any

import pytest

from barnabas.protocol.codec.schema import Message
from barnabas.protocol.errors import ErrorCode, KafkaError
from tests.support.build import api_request
from tests.support.server import TestBroker, batch, list_offsets_request
from tests.support.wire_client import WireClient

pytestmark = pytest.mark.broker(topics={"orders": 2})


LATEST, EARLIEST = -1, -2


@pytest.fixture(autouse=True)
async def _records(broker: TestBroker) -> None:
    partition = broker.partitions.expect("orders", 0)
    for timestamp in (100, 50, 200, 150, 200):
        partition.append(memoryview(bytearray(batch("x", timestamp=timestamp))))


def list_request(*asked: dict[str, int], topic: str = "orders", **options: Any) -> Message:
    topics = [{"name": topic, "partitions": asked}]
    return api_request("list_offsets", **{"replica_id": -1, "topics": topics, **options})


def asked_of(index: int, timestamp: int, **options: int) -> dict[str, int]:
    return {"partition_index": index, "timestamp": timestamp, **options}


async def list_one(
    client: WireClient, timestamp: int, version: int = 11, **options: Any
) -> tuple[int, int, int, int]:
    """
    Error, offset, timestamp and leader epoch.
    """
    asked = asked_of(0, timestamp)
    answer = await client.ask(list_request(asked, **options), version)
    (partition,) = answer.topics[0].partitions
    return (partition.error_code, partition.offset, partition.timestamp, partition.leader_epoch)


async def test_earliest_offset_of_a_closed_log_is_refused(
    broker: TestBroker, client: WireClient
) -> None:
    broker.partitions.expect("orders", 0).log.close()

    assert ErrorCode.KAFKA_STORAGE_ERROR == (await list_one(client, EARLIEST, 9))[0]


def errors() -> int:
    """
    How many errors there are.
    """
    return sum(isinstance(found, KafkaError) for found in gc.get_objects())


@pytest.mark.parametrize("timestamp", [LATEST, 100])
async def test_requests_for_unknown_partitions_leave_no_garbage(
    client: WireClient, timestamp: int
) -> None:
    """
    Not even until the next collection: errors that keep their tracebacks would.
    """
    request = list_offsets_request("nothing", dict.fromkeys(range(50), timestamp))
    gc.collect()
    gc.disable()
    try:
        before = errors()
        answer = await client.ask(request, 7)
        after = errors()
    finally:
        gc.enable()

    assert {3} == {partition.error_code for partition in answer.topics[0].partitions}
    assert after <= before
