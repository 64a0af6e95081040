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


LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, PENDING_UPLOAD = range(-1, -7, -1)


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


@pytest.mark.parametrize("version", range(1, 12))
async def test_the_ends_of_a_log(broker: TestBroker, client: WireClient, version: int) -> None:
    broker.partitions.expect("orders", 0).log.delete_records(2)

    first = await list_one(client, EARLIEST, version)
    last = await list_one(client, LATEST, version)

    epoch = 0 if version >= 4 else -1
    assert (0, 2, -1, epoch) == first
    assert (0, 5, -1, epoch) == last


@pytest.mark.parametrize(
    ("timestamp", "offset", "found"),
    [(0, 0, 100), (50, 0, 100), (101, 2, 200), (200, 2, 200), (201, -1, -1)],
)
async def test_the_first_record_from_a_time_on(
    client: WireClient, timestamp: int, offset: int, found: int
) -> None:
    expected_epoch = 0 if offset >= 0 else -1

    assert (0, offset, found, expected_epoch) == await list_one(client, timestamp)


async def test_the_record_with_the_largest_timestamp(client: WireClient) -> None:
    assert (0, 2, 200, 0) == await list_one(client, MAX_TIMESTAMP)


@pytest.mark.parametrize("timestamp", [MAX_TIMESTAMP, 0])
async def test_an_empty_log_has_no_record(client: WireClient, timestamp: int) -> None:
    asked = asked_of(1, timestamp)

    answer = await client.ask(list_request(asked), 11)

    (partition,) = answer.topics[0].partitions
    assert (0, -1, -1) == (partition.error_code, partition.offset, partition.timestamp)


@pytest.mark.parametrize("timestamp", [LATEST_TIERED, PENDING_UPLOAD])
async def test_there_is_no_tiered_storage(client: WireClient, timestamp: int) -> None:
    assert (0, -1, -1, -1) == await list_one(client, timestamp)


@pytest.mark.parametrize(
    ("timestamp", "since"),
    [(MAX_TIMESTAMP, 7), (EARLIEST_LOCAL, 8), (LATEST_TIERED, 9), (PENDING_UPLOAD, 11)],
)
async def test_a_special_timestamp_needs_its_version(
    client: WireClient, timestamp: int, since: int
) -> None:
    before = await list_one(client, timestamp, since - 1)
    then = await list_one(client, timestamp, since)

    assert (ErrorCode.UNSUPPORTED_VERSION, 0) == (before[0], then[0])


@pytest.mark.parametrize("timestamp", [-7, -(2**63)])
async def test_an_unknown_special_timestamp_is_refused(client: WireClient, timestamp: int) -> None:
    assert (ErrorCode.UNSUPPORTED_VERSION, -1, -1, -1) == await list_one(client, timestamp)


async def test_a_partition_may_be_asked_for_once(client: WireClient) -> None:
    asked = [asked_of(index, LATEST) for index in (0, 1, 0)]

    answer = await client.ask(list_request(*asked), 11)

    assert [(0, ErrorCode.INVALID_REQUEST), (1, 0)] == [
        (each.partition_index, each.error_code) for each in answer.topics[0].partitions
    ]


async def test_a_special_timestamp_is_refused_wherever_it_is_asked_for(client: WireClient) -> None:
    asked = asked_of(0, MAX_TIMESTAMP)

    answer = await client.ask(list_request(asked, topic="nowhere"), 6)

    assert ErrorCode.UNSUPPORTED_VERSION == answer.topics[0].partitions[0].error_code


@pytest.mark.parametrize(("topic", "index"), [("nowhere", 0), ("orders", 2)])
async def test_an_unknown_partition_is_told(client: WireClient, topic: str, index: int) -> None:
    asked = asked_of(index, LATEST)

    answer = await client.ask(list_request(asked, topic=topic), 11)

    (partition,) = answer.topics[0].partitions
    assert ErrorCode.UNKNOWN_TOPIC_OR_PARTITION == partition.error_code


async def test_the_leader_epoch_is_compared(client: WireClient) -> None:
    asked = asked_of(0, LATEST, current_leader_epoch=3)

    answer = await client.ask(list_request(asked), 11)

    assert ErrorCode.UNKNOWN_LEADER_EPOCH == answer.topics[0].partitions[0].error_code


async def test_committed_records_end_where_a_transaction_is_open(
    broker: TestBroker, client: WireClient
) -> None:
    partition = broker.partitions.expect("orders", 0)
    guard = partition.log.maybe_start_transaction_verification(
        7, sequence=0, epoch=0, supports_epoch_bump=False
    )
    records = batch(
        "t", is_transactional=True, producer_id=7, producer_epoch=0, base_sequence=0, timestamp=300
    )
    partition.append(memoryview(bytearray(records)), verification_guard=guard)

    committed = await list_one(client, LATEST, isolation_level=1)
    everything = await list_one(client, LATEST)
    not_committed = await list_one(client, 300, isolation_level=1)
    found = await list_one(client, 300)

    assert (5, 6) == (committed[1], everything[1])
    assert (-1, 5) == (not_committed[1], found[1])


async def test_the_first_offset_of_a_log_that_is_closed_is_refused(
    broker: TestBroker, client: WireClient
) -> None:
    broker.partitions.expect("orders", 0).log.close()

    assert ErrorCode.KAFKA_STORAGE_ERROR == (await list_one(client, EARLIEST, 9))[0]


async def test_an_unknown_isolation_level_is_refused(client: WireClient) -> None:
    assert ErrorCode.UNKNOWN_SERVER_ERROR == (await list_one(client, LATEST, isolation_level=9))[0]


def epoch_request(
    epoch: int, *, current: int = -1, topic: str = "orders", partition: int = 0
) -> Message:
    asked = {"partition": partition, "current_leader_epoch": current, "leader_epoch": epoch}
    topics = [{"topic": topic, "partitions": [asked]}]
    return api_request("offset_for_leader_epoch", replica_id=-1, topics=topics)


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
    broker: TestBroker, client: WireClient, version: int, epoch: int, expected: tuple[int, int, int]
) -> None:
    partition = broker.partitions.expect("orders", 0)
    partition.leader_epoch = 2
    partition.append(memoryview(bytearray(batch("x"))))

    assert expected == await end_of(client, epoch_request(epoch), version)


async def test_the_epoch_of_an_empty_log_ends_at_its_start(client: WireClient) -> None:
    assert (0, 0, 0) == await end_of(client, epoch_request(0, partition=1))


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
