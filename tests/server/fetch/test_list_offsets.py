"""
ListOffsets and OffsetForLeaderEpoch, over the wire.
"""

from __future__ import annotations

import gc
from typing import Any

import pytest

from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from tests.support.server import TestBroker, batch, list_offsets_request
from tests.support.wire_client import WireClient

pytestmark = pytest.mark.broker(topics={"orders": 2})


LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, PENDING_UPLOAD = range(-1, -7, -1)


@pytest.fixture(autouse=True)
async def _records(broker: TestBroker) -> None:
    partition = broker.partitions.expect("orders", 0)
    for timestamp in (100, 50, 200, 150, 200):
        partition.append(memoryview(bytearray(batch("x", timestamp=timestamp))))


def list_request(*asked: ListOffsetsPartition, topic: str = "orders", **options: Any) -> Any:
    return ListOffsetsRequest(
        **{"replica_id": -1, "isolation_level": 0} | options,
        topics=[ListOffsetsTopic(name=topic, partitions=list(asked))],
    )


async def list_one(
    client: WireClient, timestamp: int, version: int = 11, **options: Any
) -> tuple[int, int, int, int]:
    """
    Error, offset, timestamp and leader epoch.
    """
    asked = ListOffsetsPartition(partition_index=0, timestamp=timestamp)
    answer = await client.ask(list_request(asked, **options), version)
    (partition,) = answer.topics[0].partitions
    return (
        partition.error_code,
        partition.offset,
        partition.timestamp,
        partition.leader_epoch,
    )


async def test_the_first_offset_of_a_log_that_is_closed_is_refused(
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
async def test_unknown_partitions_leave_nothing_behind(client: WireClient, timestamp: int) -> None:
    """
    Not even until the next collection of garbage: errors that keep their own tracebacks would.
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
