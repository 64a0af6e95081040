"""
ListOffsets and OffsetForLeaderEpoch, over the wire.
"""

from __future__ import annotations

import gc
import random
from collections.abc import AsyncIterator
from struct import pack
from types import SimpleNamespace
from typing import Any, cast

import pytest

from barnabas.protocol.codec.codec import encode
from barnabas.protocol.errors import ErrorCode, KafkaError, NotLeaderOrFollower
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
from barnabas.server.fetch.plain_offsets import read_ends_wanted
from barnabas.server.manual_clock import ManualClock
from tests.support.disk import MemoryFiles
from tests.support.server import START_MS, TestBroker, batch, running
from tests.support.wire_client import WireClient

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, PENDING_UPLOAD = range(-1, -7, -1)


@pytest.fixture
async def broker() -> AsyncIterator[TestBroker]:
    async with running(MemoryFiles(), ManualClock(START_MS)) as broker:
        await broker.create("orders", partitions=2)
        partition = broker.partitions.expect("orders", 0)
        for timestamp in (100, 50, 200, 150, 200):
            records = batch("x", timestamp=timestamp)
            partition.append(memoryview(bytearray(records)))
        yield broker


@pytest.fixture
async def client(broker: TestBroker) -> AsyncIterator[WireClient]:
    async with await broker.client() as client:
        yield client


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
    asked = ListOffsetsPartition(partition_index=1, timestamp=timestamp)

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
    asked = [ListOffsetsPartition(partition_index=index, timestamp=LATEST) for index in (0, 1, 0)]

    answer = await client.ask(list_request(*asked), 11)

    assert [(0, ErrorCode.INVALID_REQUEST), (1, 0)] == [
        (each.partition_index, each.error_code) for each in answer.topics[0].partitions
    ]


async def test_a_special_timestamp_is_refused_wherever_it_is_asked_for(client: WireClient) -> None:
    asked = ListOffsetsPartition(partition_index=0, timestamp=MAX_TIMESTAMP)

    answer = await client.ask(list_request(asked, topic="nowhere"), 6)

    assert ErrorCode.UNSUPPORTED_VERSION == answer.topics[0].partitions[0].error_code


@pytest.mark.parametrize(("topic", "index"), [("nowhere", 0), ("orders", 2)])
async def test_an_unknown_partition_is_told(client: WireClient, topic: str, index: int) -> None:
    asked = ListOffsetsPartition(partition_index=index, timestamp=LATEST)

    answer = await client.ask(list_request(asked, topic=topic), 11)

    (partition,) = answer.topics[0].partitions
    assert ErrorCode.UNKNOWN_TOPIC_OR_PARTITION == partition.error_code


async def test_the_leader_epoch_is_compared(client: WireClient) -> None:
    asked = ListOffsetsPartition(partition_index=0, timestamp=LATEST, current_leader_epoch=3)

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
        "t",
        is_transactional=True,
        producer_id=7,
        producer_epoch=0,
        base_sequence=0,
        timestamp=300,
    )
    partition.append(memoryview(bytearray(records)), verification_guard=guard)

    committed = await list_one(client, LATEST, isolation_level=1)
    everything = await list_one(client, LATEST)
    not_committed = await list_one(client, 300, isolation_level=1)
    found = await list_one(client, 300)

    assert (5, 6) == (committed[1], everything[1])
    assert (-1, 5) == (not_committed[1], found[1])


def is_found_at_once(broker: TestBroker, request: ListOffsetsRequest, version: int = 9) -> bool:
    """
    Whether *request* is answered without being decoded.
    """
    parts = cast(Any, SimpleNamespace(partitions=broker.partitions))
    head = b"head"
    wanted = read_ends_wanted(memoryview(head + encode(request, version)), len(head), version)
    return wanted is not None and wanted.answer(bytes(4), parts) is not None


@pytest.mark.parametrize("version", range(6, 12))
@pytest.mark.parametrize("isolation_level", [0, 1])
async def test_the_ends_of_logs_are_found_without_decoding_the_request(
    broker: TestBroker, version: int, isolation_level: int
) -> None:
    asked = [
        ListOffsetsPartition(partition_index=0, timestamp=EARLIEST),
        ListOffsetsPartition(partition_index=1, timestamp=LATEST, current_leader_epoch=0),
    ]

    assert is_found_at_once(broker, list_request(*asked, isolation_level=isolation_level), version)


async def test_what_is_not_an_end_of_a_log_that_is_well_is_not_found_without_decoding(
    broker: TestBroker,
) -> None:
    def asked(timestamp: int = LATEST, **options: Any) -> ListOffsetsPartition:
        return ListOffsetsPartition(**{"partition_index": 0, "timestamp": timestamp} | options)

    others = [
        list_request(asked(), topic="nowhere"),
        list_request(asked(partition_index=2)),
        list_request(asked(current_leader_epoch=1)),
        list_request(asked(), isolation_level=2),
        list_request(asked(), replica_id=0),
        list_request(asked(), asked()),
        list_request(asked(MAX_TIMESTAMP)),
        list_request(asked(EARLIEST_LOCAL)),
        list_request(asked(0)),
    ]
    twice = list_request(asked())
    twice.topics.append(ListOffsetsTopic(name="orders", partitions=[asked(partition_index=1)]))

    assert is_found_at_once(broker, list_request(asked()))
    assert not any(is_found_at_once(broker, request) for request in (*others, twice))

    broker.partitions.expect("orders", 0).close(NotLeaderOrFollower())
    assert not is_found_at_once(broker, list_request(asked()))
    assert is_found_at_once(broker, list_request(asked(partition_index=1)))


async def test_the_first_offset_of_a_log_that_is_closed_is_refused(
    broker: TestBroker, client: WireClient
) -> None:
    broker.partitions.expect("orders", 0).log.close()

    assert ErrorCode.KAFKA_STORAGE_ERROR == (await list_one(client, EARLIEST, 9))[0]


@pytest.mark.parametrize("seed", range(8))
async def test_answers_do_not_depend_on_whether_the_request_is_decoded(
    broker: TestBroker, client: WireClient, seed: int
) -> None:
    """
    A request with a tagged field, which nobody knows, always is. Requests come again, and what is
    there changes meanwhile.
    """
    await broker.create("others", partitions=3)
    broker.partitions.expect("others", 1).close(NotLeaderOrFollower())
    chance = random.Random(seed)
    asked: list[tuple[ListOffsetsRequest, int]] = []
    answers = []
    found = 0
    for _ in range(400):
        if chance.random() < 0.1:
            await change_something(broker, chance)
        if not asked or chance.random() < 0.5:
            asked.append((any_request(chance), chance.randrange(6, 12)))
        request, version = chance.choice(asked)
        found += is_found_at_once(broker, request, version)
        plain, tagged = client.frame(request, version), client.frame(request, version)
        tagged = tagged[4:-1] + b"\1\5\1x"
        client.send_bytes(plain + pack(">i", len(tagged)) + tagged)
        answers.append((await client.receive(), await client.receive()))

    assert all(plain == decoded for plain, decoded in answers)
    assert 10 < found < 300


def any_request(chance: random.Random) -> ListOffsetsRequest:
    return ListOffsetsRequest(
        replica_id=chance.choice((-1,) * 9 + (0,)),
        isolation_level=chance.choice((0, 1) * 5 + (2,)),
        topics=[
            ListOffsetsTopic(
                name=chance.choice(("orders", "others") * 3 + ("nowhere",)),
                partitions=[
                    ListOffsetsPartition(
                        partition_index=chance.choice((0, 0, 1, 1, 2, 3)),
                        current_leader_epoch=chance.choice((-1, 0) * 5 + (1,)),
                        timestamp=chance.choice((LATEST, EARLIEST) * 3 + (150,)),
                    )
                    for _ in range(chance.choice((0, 1, 1, 1, 2, 3)))
                ],
            )
            for _ in range(chance.choice((0, 1, 1, 1, 2)))
        ],
    )


async def change_something(broker: TestBroker, chance: random.Random) -> None:
    match chance.randrange(5):
        case 0:
            await broker.delete("others")
            await broker.create("others", partitions=chance.randrange(1, 4))
        case 1:
            log = broker.partitions.expect("orders", 0).log
            log.delete_records(chance.randint(log.log_start_offset, log.high_watermark))
        case 2:  # as after an upgrade from before there were epochs
            broker.partitions.expect("orders", 0).log.leader_epochs.clear_and_flush()
        case _:
            partition = broker.partitions.expect("orders", chance.randrange(2))
            partition.append(memoryview(bytearray(batch("x", timestamp=100))))


async def test_an_unknown_isolation_level_is_refused(client: WireClient) -> None:
    assert ErrorCode.UNKNOWN_SERVER_ERROR == (await list_one(client, LATEST, isolation_level=9))[0]


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
    asked = [
        ListOffsetsPartition(partition_index=index, timestamp=timestamp) for index in range(50)
    ]
    request = ListOffsetsRequest(
        replica_id=-1, topics=[ListOffsetsTopic(name="nothing", partitions=asked)]
    )
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
