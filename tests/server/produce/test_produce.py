"""
Produce, over the wire.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from barnabas.protocol.compression import CompressionType
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.produce import ProduceRequest
from barnabas.protocol.records.batch import build_batch
from barnabas.protocol.records.record import SimpleRecord
from barnabas.server.config import BrokerConfig
from barnabas.storage.config.log_config import LogConfig
from barnabas.testing.disks.failing import FailingFiles
from barnabas.testing.disks.memory import MemoryFiles
from tests.support.limits import stated
from tests.support.server import (
    START_MS,
    TestBroker,
    batch,
    list_offsets_request,
    produce_all,
    produce_request,
    produce_topic,
    running,
    until,
)
from tests.support.wire_client import WireClient

pytestmark = pytest.mark.broker(topics={"orders": 2})
BY_NAME = 12


def start_at(broker: TestBroker, topic: str, offset: int) -> None:
    broker.partitions.expect(topic, 0).log.delete_records(offset)


async def ask_one(client: WireClient, request: ProduceRequest, version: int = BY_NAME) -> Any:
    """
    The answer for the only partition of a request.
    """
    answer = await client.ask(request, version)
    (topic,) = answer.responses
    (partition,) = topic.partition_responses
    return partition


async def test_acks_0_has_no_response(client: WireClient) -> None:
    client.send(produce_request("orders", batch("a"), acks=0), version=BY_NAME)
    client.expect_no_answer()

    following = await ask_one(client, produce_request("orders", batch("b")))

    assert 1 == following.base_offset


async def test_error_with_acks_0_closes_the_connection(
    client: WireClient, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")

    client.send(produce_request("nowhere", batch("a"), acks=0), version=BY_NAME)

    assert await client.disconnected()
    assert "{'nowhere-0': 'UNKNOWN_TOPIC_OR_PARTITION'}" in caplog.text


async def test_partitions_are_answered_independently(
    broker: TestBroker, client: WireClient
) -> None:
    request = produce_all(
        produce_topic("nowhere", {0: batch("x")}),
        produce_topic("orders", {0: None, 1: batch("a"), 7: batch("x")}),
    )

    answer = await client.ask(request, BY_NAME)

    assert [("nowhere", [(0, 3)]), ("orders", [(0, 87), (1, 0), (7, 3)])] == [
        (topic.name, [(each.index, each.error_code) for each in topic.partition_responses])
        for topic in answer.responses
    ]
    assert 2 == broker.metrics.value("errors", api="Produce", code="UNKNOWN_TOPIC_OR_PARTITION")
    assert 1 == broker.metrics.value("errors", api="Produce", code="INVALID_RECORD")


@pytest.mark.parametrize("version", range(3, 14))
async def test_many_partitions_of_many_topics_are_answered_in_order(
    broker: TestBroker, client: WireClient, version: int
) -> None:
    await broker.create("more", partitions=200, message_timestamp_type="LogAppendTime")
    ids = {await broker.topic_id(name): name for name in ("orders", "more")}
    names: list[Any] = list(ids if version > BY_NAME else ids.values())
    start_at(broker, "orders", await append_and_end(client, "orders"))
    request = produce_all(
        produce_topic(names[0], {1: batch("a", "b"), 0: batch("c")}),
        produce_topic(names[1], dict.fromkeys(reversed(range(200)), batch("d"))),
        acks=-1,
    )

    answer = await client.ask(request, version)

    from_0, from_1 = (0, 1) if version >= 5 else (-1, -1)
    orders = [(1, 0, 0, -1, from_0), (0, 0, 1, -1, from_1)]
    more = [(index, 0, 0, START_MS, from_0) for index in reversed(range(200))]
    assert [("orders", orders), ("more", more)] == [
        (
            ids.get(topic.topic_id, topic.name),
            [
                (p.index, p.error_code, p.base_offset, p.log_append_time_ms, p.log_start_offset)
                for p in topic.partition_responses
            ],
        )
        for topic in answer.responses
    ]


async def append_and_end(client: WireClient, topic: str) -> int:
    """
    The end of the log of partition 0 behind a record that is appended now.
    """
    appended = await ask_one(client, produce_request(topic, batch("first")))
    return int(appended.base_offset) + 1


GOOD = batch("good")


async def test_batch_that_grows_beyond_the_broker_limit_is_refused() -> None:
    limits = {"barnabas_max_decompressed_bytes": "100000"}
    async with running(**limits) as broker:
        await broker.create("t")
        async with await broker.client() as client:
            codes = []
            for size in (200_000, 50_000):
                records = batch("x" * size, compression=CompressionType.ZSTD)
                answer = await client.ask(produce_request("t", records), 9)
                codes.append(answer.responses[0].partition_responses[0].error_code)
        assert [ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.NONE] == codes
        assert 1 == broker.partitions.expect("t", 0).log.log_end_offset


def test_decompression_limit_matches_the_documentation() -> None:
    assert stated("decompressed-most") == BrokerConfig().barnabas_max_decompressed_bytes
    assert stated("decompressed-most") == LogConfig().barnabas_max_decompressed_bytes


async def test_coordinator_is_not_asked_if_verification_is_disabled() -> None:
    # Up to version 11: from 12 on the append itself adds the partition to the transaction.
    unverified = {"transaction_partition_verification_enable": "false"}
    transactional = {"is_transactional": True, "producer_epoch": 0, "base_sequence": 0}
    async with running(**unverified) as broker, await broker.client() as client:
        await broker.create("orders")
        one, other = (
            produce_request(
                "orders", batch("a", producer_id=n, **transactional), transactional_id="t"
            )
            for n in (7, 8)
        )

        old = await ask_one(client, one, 11)
        new = await ask_one(client, other, 12)

    assert (0, 0) == (old.error_code, old.base_offset)
    assert ErrorCode.NOT_ENOUGH_REPLICAS == new.error_code


@pytest.mark.parametrize("version", [9, 11, 12])
async def test_transaction_is_retriable_without_a_coordinator(
    client: WireClient, version: int
) -> None:
    records = batch("a", is_transactional=True, producer_id=7, producer_epoch=0, base_sequence=0)

    answer = await ask_one(
        client, produce_request("orders", records, transactional_id="t"), version
    )

    assert (ErrorCode.NOT_ENOUGH_REPLICAS, -1) == (answer.error_code, answer.log_start_offset)
    assert "Underlying error: COORDINATOR_NOT_AVAILABLE" in answer.error_message


async def test_internal_topics_are_refused_for_clients(broker: TestBroker) -> None:
    await broker.create("__consumer_offsets", cleanup_policy="compact")
    records = bytes(build_batch([SimpleRecord(START_MS, b"k", b"v")]))

    async with await broker.client() as client, await broker.client("__admin_client") as admin:
        answer = await ask_one(client, produce_request("__consumer_offsets", records))
        allowed = await ask_one(admin, produce_request("__consumer_offsets", records))

    assert (ErrorCode.INVALID_TOPIC_EXCEPTION, -1) == (answer.error_code, answer.log_start_offset)
    assert 0 == allowed.error_code


@pytest.mark.parametrize("version", range(3))
async def test_produce_versions_before_3_close_the_connection(
    client: WireClient, version: int
) -> None:
    client.send_bytes(b"\0\0\0\x12\0\0" + version.to_bytes(2) + b"\0\0\0\0\xff\xff" + bytes(8))

    assert await client.disconnected()


class SlowFiles(MemoryFiles):
    """
    A disk that takes its time to sync, once it is told to.
    """

    def __init__(self) -> None:
        super().__init__()
        self.may_sync = threading.Event()
        self.may_sync.set()
        self.slow = ""

    def step(self, action: str, path: Path, position: int = 0, data: bytes = b"") -> None:
        if action == "sync" and self.slow and self.slow in str(path):
            self.may_sync.wait(10)


@pytest.fixture
async def slow_broker() -> AsyncIterator[TestBroker]:
    files = SlowFiles()
    async with running(files) as broker:
        await broker.create("durable", flush_messages="1")
        files.slow = "durable-0/0000"  # its segments
        files.may_sync.clear()
        yield broker
        files.may_sync.set()


async def turns() -> None:
    for _ in range(30):
        await asyncio.sleep(0.001)


async def held_back(broker: TestBroker, client: WireClient) -> Any:
    """
    The next answer, which does not come before the disk has synced.
    """
    files: Any = broker.files
    answer = asyncio.create_task(client.receive())
    await turns()
    assert not answer.done()
    files.may_sync.set()
    return await answer


@pytest.mark.parametrize("acks", [1, -1])
async def test_response_waits_for_the_sync_that_flush_messages_requires(
    slow_broker: TestBroker, acks: int
) -> None:
    async with await slow_broker.client() as client:
        for _ in range(3):
            client.send(produce_request("durable", GOOD, acks=acks), version=BY_NAME)
        first = await held_back(slow_broker, client)
        others = [await client.receive() for _ in range(2)]

    assert [0, 1, 2] == [
        answer.responses[0].partition_responses[0].base_offset for answer in (first, *others)
    ]


@pytest.mark.parametrize("acks", [0, 1, -1])
async def test_next_request_sees_appended_records(slow_broker: TestBroker, acks: int) -> None:
    # Even if an fsync comes first, as in Kafka, whose append returns after it.
    async with await slow_broker.client() as client:
        client.send(produce_request("durable", GOOD, acks=acks), version=BY_NAME)
        if acks == 0:
            client.expect_no_answer()
        client.send(list_offsets_request("durable", {0: -1}), version=7)
        answer = await held_back(slow_broker, client)
        if acks:
            assert 0 == answer.responses[0].partition_responses[0].error_code
            answer = await client.receive()

    assert 1 == answer.topics[0].partitions[0].offset


async def test_request_behind_several_appends_sees_all_of_them(slow_broker: TestBroker) -> None:
    # Appends do not wait for each other, and the last may need no fsync.
    await slow_broker.create("quick")
    files: Any = slow_broker.files
    async with await slow_broker.client() as client:
        for name in ("durable", "durable", "quick"):
            client.send(produce_request(name, GOOD), version=BY_NAME)
        client.send(list_offsets_request("durable", {0: -1}), version=7)
        appended = slow_broker.partitions.expect("quick", 0).log
        await until(lambda: appended.log_end_offset == 1)
        files.may_sync.set()

        answers = [await client.receive() for _ in range(4)]

    assert 2 == answers[-1].topics[0].partitions[0].offset


async def test_failed_fsync_with_acks_0_closes_the_connection() -> None:
    files = FailingFiles()
    async with running(files) as broker:
        await broker.create("durable", flush_messages="1")
        async with await broker.client() as client:
            files.fail(only=frozenset({"sync"}), forever=True)

            client.send(produce_request("durable", GOOD, acks=0), version=BY_NAME)

            assert await client.disconnected()


async def test_response_waits_for_all_of_its_partitions(slow_broker: TestBroker) -> None:
    await slow_broker.create("quick")
    request = produce_all(
        produce_topic("quick", {0: GOOD}), produce_topic("durable", {0: GOOD}), acks=-1
    )
    async with await slow_broker.client() as client:
        client.send(request, version=BY_NAME)
        answer = await held_back(slow_broker, client)

    assert [("quick", [(0, 0, 0)]), ("durable", [(0, 0, 0)])] == [
        (
            topic.name,
            [(each.index, each.error_code, each.base_offset) for each in topic.partition_responses],
        )
        for topic in answer.responses
    ]


async def test_acks_all_times_out(slow_broker: TestBroker) -> None:
    clock: Any = slow_broker.clock
    async with await slow_broker.client() as client:
        client.send(produce_request("durable", GOOD, acks=-1, timeout_ms=500), version=BY_NAME)
        await turns()

        await clock.pass_time(0.5)
        answer = await client.receive()

    partition = answer.responses[0].partition_responses[0]
    assert ErrorCode.REQUEST_TIMED_OUT == partition.error_code


async def test_failed_disk_is_reported() -> None:
    files = FailingFiles()
    async with running(files) as broker:
        await broker.create("orders")
        async with await broker.client() as client:
            await ask_one(client, produce_request("orders", GOOD))
            files.fail(only=frozenset({"write"}), forever=True)

            answer = await ask_one(client, produce_request("orders", GOOD))

    assert (ErrorCode.KAFKA_STORAGE_ERROR, -1) == (answer.error_code, answer.log_start_offset)
