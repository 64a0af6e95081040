"""
Batches that take long to examine: a thread does that, and nothing else is different.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from barnabas.protocol.compression import CompressionType
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.find_coordinator import FindCoordinatorRequest
from barnabas.protocol.records.batch import batches as batches_of
from barnabas.protocol.records.batch import build_batch
from barnabas.protocol.records.record import SimpleRecord
from barnabas.storage.log.log import Log
from barnabas.storage.log.validator import EXAMINED_AT_ONCE_BYTES, REBUILT_AT_ONCE_BYTES, Examined
from barnabas.testing.disks.memory import MemoryFiles
from tests.support.bombs import bomb
from tests.support.config_requests import SET, TOPIC, change
from tests.support.limits import stated
from tests.support.server import (
    PATIENCE,
    START_MS,
    TestBroker,
    batch,
    fetch_request,
    fetch_topic,
    list_offsets_request,
    produce_all,
    produce_request,
    produce_topic,
    running,
)
from tests.support.transactional_client import SECOND, Client
from tests.support.wire_client import WireClient

pytestmark = pytest.mark.broker(topics={"orders": 3})


BY_NAME = 12
SHORT = batch("short")
LONG_VALUES = ("x" * EXAMINED_AT_ONCE_BYTES, "y")
LONG = batch(*LONG_VALUES, compression=CompressionType.GZIP)


@contextmanager
def held(broker: TestBroker) -> Iterator[None]:
    """
    Nothing is examined until the block has ended.
    """
    may = threading.Event()
    broker.examiner.submit(may.wait, PATIENCE)
    try:
        yield
    finally:
        may.set()


def told(answer: Any) -> list[tuple[int, int]]:
    """
    Error and base offset of each partition of a Produce.
    """
    return [
        (partition.error_code, partition.base_offset)
        for topic in answer.responses
        for partition in topic.partition_responses
    ]


async def end_of(client: WireClient, partition: int = 0) -> int:
    answer = await client.ask(list_offsets_request("orders", {partition: -1}), 7)
    end: int = answer.topics[0].partitions[0].offset
    return end


async def values(client: WireClient) -> list[bytes | None]:
    request = fetch_request(
        fetch_topic("orders", {0: 0}, partition_max_bytes=2**30), max_bytes=2**30
    )
    answer = await client.ask(request, BY_NAME)
    records = answer.responses[0].partitions[0].records
    return [record.value for batch in batches_of(records) for record in batch.records()]


async def test_other_requests_are_served_while_a_large_batch_is_validated(
    broker: TestBroker, client: WireClient
) -> None:
    async with await broker.client() as other:
        with held(broker):
            client.send(produce_request("orders", LONG), version=BY_NAME)

            assert [(0, 0)] == told(await other.ask(produce_request("orders", SHORT), BY_NAME))
        assert [(0, 1)] == told(await client.receive())

    assert [b"short", *map(str.encode, LONG_VALUES)] == await values(client)


async def test_later_requests_of_the_connection_wait_for_a_large_batch(
    broker: TestBroker, client: WireClient
) -> None:
    with held(broker):
        for records in (SHORT, LONG, SHORT):
            client.send(produce_request("orders", records), version=BY_NAME)
        first = await client.receive()
        later = asyncio.create_task(client.receive())
        async with await broker.client() as other:
            for _ in range(3):  # The broker has read all three requests by the time it answers.
                assert 1 == await end_of(other)
        assert not later.done()

    assert [0, 1, 3] == [
        told(answer)[0][1] for answer in (first, await later, await client.receive())
    ]


@pytest.mark.parametrize("transactional_id", [None, "of the general way"])
@pytest.mark.parametrize("behind", ["other topics", "nothing"])
async def test_partitions_with_large_batches_are_answered_independently(
    broker: TestBroker, client: WireClient, behind: str, transactional_id: str | None
) -> None:
    # The flipped request is not of the plain form, as it has records behind the batch.
    torn = bomb(CompressionType.LZ4)
    short = SHORT if behind == "nothing" else SHORT + SHORT[:20]
    request = produce_all(
        produce_topic("orders", {0: short, 1: LONG, 2: torn}),
        acks=-1,
        transactional_id=transactional_id,
    )

    answer = await client.ask(request, BY_NAME)

    assert [(0, 0), (0, 0), (ErrorCode.UNKNOWN_SERVER_ERROR, -1)] == told(answer)
    assert [1, 2, 0] == [await end_of(client, partition) for partition in range(3)]


async def test_large_batch_waits_for_its_sync(broker: TestBroker, client: WireClient) -> None:
    await broker.create("durable", flush_messages="1")
    for records in (LONG, LONG + LONG[:20]):
        answer = await client.ask(produce_request("durable", records, acks=-1), BY_NAME)
        assert [0] == [code for code, _ in told(answer)]
    log = broker.partitions.expect("durable", 0).log
    assert 4 == log.recovery_point == log.high_watermark


async def test_large_batch_with_acks_0_has_no_response(
    broker: TestBroker, client: WireClient
) -> None:
    client.send(produce_request("orders", LONG, acks=0), version=BY_NAME)
    client.expect_no_answer()
    assert 2 == await end_of(client)

    client.send(produce_request("orders", bomb(CompressionType.LZ4), acks=0), version=BY_NAME)
    assert await client.disconnected()


async def test_large_batch_may_be_transactional(broker: TestBroker, client: WireClient) -> None:
    find = FindCoordinatorRequest(key_type=1, coordinator_keys=["tx"])
    assert 0 == (await client.ask(find, 6)).coordinators[0].error_code
    producer = Client(client, SECOND)
    assert ErrorCode.NONE == await producer.init()
    records = [SimpleRecord(START_MS, None, b"x" * EXAMINED_AT_ONCE_BYTES)] * 2
    for sequence in (0, 2):
        data = build_batch(
            records,
            compression=CompressionType.GZIP,
            producer_id=producer.producer.producer_id,
            producer_epoch=producer.producer.producer_epoch,
            base_sequence=sequence,
            is_transactional=True,
        )
        request = produce_request("orders", bytes(data), acks=-1, transactional_id="tx")
        assert [(0, sequence)] == told(await client.ask(request, BY_NAME))
    assert ErrorCode.NONE == await producer.end(commit=True)
    assert [record.value for record in records] * 2 == (await values(client))[:4]


async def test_large_batch_uses_the_configuration_at_its_append(
    broker: TestBroker, client: WireClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The codec of the topic changes after the batch was examined.
    examine = Log.examine
    is_examined, may_go_on = threading.Event(), threading.Event()

    def examine_and_wait(log: Log, records: memoryview) -> Examined:
        examined = examine(log, records)
        is_examined.set()
        may_go_on.wait(PATIENCE)
        return examined

    monkeypatch.setattr(Log, "examine", examine_and_wait)
    client.send(produce_request("orders", LONG), version=BY_NAME)
    assert await asyncio.to_thread(is_examined.wait, PATIENCE)
    request = change(TOPIC, "orders", ("compression.type", SET, "lz4"))
    async with await broker.client() as other:
        assert 0 == (await other.ask(request, 1)).responses[0].error_code
    may_go_on.set()
    assert [(0, 0)] == told(await client.receive())

    assert [*map(str.encode, LONG_VALUES)] == await values(client)
    answer = await client.ask(fetch_request(fetch_topic("orders", {0: 0})), BY_NAME)
    (stored,) = batches_of(answer.responses[0].partitions[0].records)
    assert CompressionType.LZ4 == stored.compression


async def test_large_batches_of_many_clients_are_validated_fairly(
    broker: TestBroker, client: WireClient
) -> None:
    for request in (produce_request("orders", LONG), produce_request("orders", LONG + LONG[:20])):
        assert [0] == [code for code, _ in told(await client.ask(request, BY_NAME))]
    crowd = [await broker.client() for _ in range(3)]
    with held(broker):
        for each in crowd:
            each.send(produce_request("orders", LONG), version=BY_NAME)
        client.send(produce_request("orders", LONG), version=BY_NAME)
        async with await broker.client() as other:
            for _ in range(3):  # The broker has read all requests by the time it answers.
                assert 4 == await end_of(other)

    assert [(0, 6)] == told(await client.receive())
    assert [4, 8, 10] == [told(await each.receive())[0][1] for each in crowd]
    for each in crowd:
        await each.close()


async def test_topic_may_be_deleted_during_the_validation(
    broker: TestBroker, client: WireClient
) -> None:
    with held(broker):
        client.send(produce_request("orders", LONG), version=BY_NAME)
        await broker.delete("orders")

    assert [(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)] == told(await client.receive())


async def test_shutdown_does_not_wait_for_large_batches(caplog: pytest.LogCaptureFixture) -> None:
    files = MemoryFiles()
    async with running(files) as broker:
        await broker.create("orders")
        async with await broker.client() as client:
            with held(broker):
                client.send(produce_request("orders", LONG), version=BY_NAME)
                async with await broker.client() as other:
                    assert 0 == await end_of(other)
                async with asyncio.timeout(PATIENCE):
                    await broker.stop()
            assert await client.disconnected()
    assert not [record for record in caplog.records if record.exc_info]

    async with running(files) as broker, await broker.client() as client:
        assert [(0, 0)] == told(await client.ask(produce_request("orders", LONG), BY_NAME))


@pytest.mark.parametrize("target", ["producer", "gzip", "uncompressed"])
async def test_event_loop_validates_only_small_batches(broker: TestBroker, target: str) -> None:
    # The longest turn of the loop while it examines a batch of nearly the largest size.
    await broker.create("long", compression_type=target)
    value = bytes(2**20)
    count = int(stated("decompressed")) // len(value) - 1
    data = bytes(
        build_batch([SimpleRecord(1, None, value)] * count, compression=CompressionType.ZSTD)
    )
    longest_s = 0.0
    async with await broker.client() as client:
        answer = asyncio.create_task(client.ask(produce_request("long", data), BY_NAME))
        last = time.thread_time()
        while not answer.done():
            await asyncio.sleep(0)
            now = time.thread_time()
            longest_s, last = max(longest_s, now - last), now
        code = ErrorCode.MESSAGE_TOO_LARGE if target == "uncompressed" else 0
        assert [code] == [code for code, _ in told(await answer)]
    assert longest_s <= stated("longest-turn")


def test_validation_limits_match_the_documentation() -> None:
    assert stated("examined-at-once") == EXAMINED_AT_ONCE_BYTES
    assert stated("rebuilt-at-once") == REBUILT_AT_ONCE_BYTES
