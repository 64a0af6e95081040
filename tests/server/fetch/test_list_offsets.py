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
from barnabas.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
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


def epoch_request(
    epoch: int, *, current: int = -1, topic: str = "orders", partition: int = 0
) -> OffsetForLeaderEpochRequest:
    asked = OffsetForLeaderPartition(
        partition=partition, current_leader_epoch=current, leader_epoch=epoch
    )
    return OffsetForLeaderEpochRequest(
        replica_id=-1, topics=[OffsetForLeaderTopic(topic=topic, partitions=[asked])]
    )


async def end_of(client: WireClient, request: Any, version: int = 4) -> tuple[int, int, int]:
    answer = await client.ask(request, version)
    (partition,) = answer.topics[0].partitions
    return partition.error_code, partition.leader_epoch, partition.end_offset


@pytest.mark.parametrize("version", range(2, 5))
@pytest.mark.parametrize(
    ("epoch", "expected"),
    [(0, (0, 0, 5)), (1, (0, 0, 5)), (2, (0, 2, 6)), (3, (0, -1, -1)), (-1, (0, -1, -1))],
)
async def test_where_an_epoch_ended(
    broker: TestBroker,
    client: WireClient,
    version: int,
    epoch: int,
    expected: tuple[int, int, int],
) -> None:
    partition = broker.partitions.expect("orders", 0)
    partition.leader_epoch = 2
    partition.append(memoryview(bytearray(batch("x"))))

    assert expected == await end_of(client, epoch_request(epoch), version)


async def test_an_epoch_is_asked_of_its_leader(broker: TestBroker, client: WireClient) -> None:
    broker.partitions.expect("orders", 0).leader_epoch = 2

    old = await end_of(client, epoch_request(0, current=1))
    new = await end_of(client, epoch_request(0, current=3))
    unknown = await end_of(client, epoch_request(0, topic="nowhere"))

    assert (ErrorCode.FENCED_LEADER_EPOCH, -1, -1) == old
    assert (ErrorCode.UNKNOWN_LEADER_EPOCH, -1, -1) == new
    assert (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1, -1) == unknown


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
