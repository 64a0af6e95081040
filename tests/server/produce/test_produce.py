"""
Produce, over the wire.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from crc32c import crc32c

from barnabas.protocol.compression import CompressionType
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.produce import ProduceRequest
from barnabas.protocol.records.batch import ATTRIBUTES_AT, CRC_AT, build_batch
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
    fetch_request,
    fetch_topic,
    list_offsets_request,
    produce_all,
    produce_request,
    produce_topic,
    running,
    until,
)
from tests.support.wire_client import WireClient

pytestmark = pytest.mark.broker(topics={"orders": 2})


LATEST = 13
BY_NAME = 12


def start_at(broker: TestBroker, topic: str, offset: int) -> None:
    """
    Let a log start there, as DeleteRecords does.
    """
    broker.partitions.expect(topic, 0).log.delete_records(offset)


async def ask_one(client: WireClient, request: ProduceRequest, version: int = BY_NAME) -> Any:
    """
    The answer for the only partition of a request.
    """
    answer = await client.ask(request, version)
    (topic,) = answer.responses
    (partition,) = topic.partition_responses
    return partition


@pytest.mark.parametrize("version", range(3, 13))
@pytest.mark.parametrize("acks", [1, -1])
async def test_records_get_the_next_offsets(client: WireClient, version: int, acks: int) -> None:
    first = await ask_one(client, produce_request("orders", batch("a", "b"), acks=acks), version)
    second = await ask_one(client, produce_request("orders", batch("c"), acks=acks), version)

    assert (0, 0, -1) == (first.error_code, first.base_offset, first.log_append_time_ms)
    assert (0, 2) == (second.error_code, second.base_offset)
    assert (0 if version >= 5 else -1) == second.log_start_offset


async def test_a_topic_can_be_named_by_its_id(broker: TestBroker, client: WireClient) -> None:
    topic_id = await broker.topic_id("orders")

    answer = await client.ask(produce_request(topic_id, batch("a"), partition=1), LATEST)

    assert topic_id == answer.responses[0].topic_id
    assert (1, 0, 0) == (
        answer.responses[0].partition_responses[0].index,
        answer.responses[0].partition_responses[0].error_code,
        answer.responses[0].partition_responses[0].base_offset,
    )


async def test_with_acks_0_there_is_no_answer(client: WireClient) -> None:
    client.send(produce_request("orders", batch("a"), acks=0), version=BY_NAME)
    client.expect_no_answer()

    following = await ask_one(client, produce_request("orders", batch("b")))

    assert 1 == following.base_offset


async def test_with_acks_0_an_error_ends_the_connection(
    client: WireClient, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")

    client.send(produce_request("nowhere", batch("a"), acks=0), version=BY_NAME)

    assert await client.disconnected()
    assert "{'nowhere-0': 'UNKNOWN_TOPIC_OR_PARTITION'}" in caplog.text


@pytest.mark.parametrize(("topic", "partition"), [("nowhere", 0), ("orders", 2), ("orders", -1)])
async def test_an_unknown_partition_is_told(client: WireClient, topic: str, partition: int) -> None:
    answer = await ask_one(client, produce_request(topic, batch("a"), partition=partition))

    assert (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, partition, -1, -1) == (
        answer.error_code,
        answer.index,
        answer.base_offset,
        answer.log_start_offset,
    )


async def test_an_unknown_topic_id_is_told(client: WireClient) -> None:
    answer = await ask_one(client, produce_request(UUID(int=99), batch("a")), LATEST)

    assert ErrorCode.UNKNOWN_TOPIC_ID == answer.error_code


async def test_a_partition_is_answered_once(broker: TestBroker, client: WireClient) -> None:
    """
    For the last batch that comes for it, wherever in the request.
    """
    request = produce_all(
        produce_topic("orders", {0: batch("a")}),
        produce_topic("nowhere", {}),
        produce_topic("orders", {1: batch("b"), 0: batch("c", "d")}),
    )

    answer = await client.ask(request, BY_NAME)

    assert [("orders", [(0, 0), (1, 0)])] == [
        (topic.name, [(p.index, p.error_code) for p in topic.partition_responses])
        for topic in answer.responses
    ]
    assert 2 == broker.partitions.expect("orders", 0).log.log_end_offset


async def test_each_partition_stands_for_itself(broker: TestBroker, client: WireClient) -> None:
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
async def test_many_partitions_of_many_topics_are_answered_in_their_order(
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


async def test_a_topic_that_comes_twice_is_answered_once(client: WireClient) -> None:
    request = produce_all(
        produce_topic("orders", {0: batch("a")}), produce_topic("orders", {1: batch("b")})
    )

    answer = await client.ask(request, BY_NAME)

    assert [("orders", [0, 1])] == [
        (topic.name, [each.index for each in topic.partition_responses])
        for topic in answer.responses
    ]


async def test_a_batch_that_the_log_refuses_holds_up_no_other(
    broker: TestBroker, client: WireClient
) -> None:
    await broker.create("more")
    await append_and_end(client, "orders")
    start_at(broker, "orders", 1)
    request = produce_all(
        produce_topic("orders", {0: batch("a", base_offset=5), 1: spoiled(-1, 7)}),
        produce_topic("more", {0: batch("a")}),
    )

    answer = await client.ask(request, BY_NAME)

    assert [
        ("orders", [(0, ErrorCode.INVALID_RECORD, -1, 1), (1, ErrorCode.CORRUPT_MESSAGE, -1, -1)]),
        ("more", [(0, 0, 0, 0)]),
    ] == [
        (
            topic.name,
            [
                (each.index, each.error_code, each.base_offset, each.log_start_offset)
                for each in topic.partition_responses
            ],
        )
        for topic in answer.responses
    ]
    assert 1 == broker.metrics.value("errors", api="Produce", code="CORRUPT_MESSAGE")


def spoiled(position: int, value: int, size: int = 1) -> bytes:
    """
    A batch of which some bytes are others.
    """
    data = bytearray(batch("spoiled"))
    data[position : position + size] = value.to_bytes(size, signed=value < 0)
    return bytes(data)


GOOD = batch("good")

REFUSED_BEFORE_THE_LOG: dict[str, tuple[bytes | None, int]] = {
    "null": (None, 87),
    "empty": (b"", 87),
    "two batches": (GOOD + GOOD, 87),
    "a cut batch": (GOOD[:-1], 87),
    "less than a header": (GOOD[:11], 87),
    "magic 0": (spoiled(16, 0), 87),
    "magic 1": (spoiled(16, 1), 87),
    "magic 3": (spoiled(16, 3), 2),
    "magic -1": (spoiled(16, -1), 2),
    "length -1": (spoiled(8, -1, 4), 2),
    "length 13": (spoiled(8, 13, 4), 2),
    "length 48": (spoiled(8, 48, 4), 2),
    "length 2**31-1": (spoiled(8, 2**31 - 1, 4), -1),
    "length 2**31-13": (spoiled(8, 2**31 - 13, 4), 87),
    "behind it, length 13": (GOOD + spoiled(8, 13, 4)[:12], 2),
    "behind it, magic 3": (GOOD + spoiled(16, 3)[:17], 2),
    "checksum": (spoiled(-1, 7), 2),
    "too large": (batch("x" * 1_048_588), 10),
}


async def test_a_batch_that_becomes_too_large_is_refused() -> None:
    """
    By the broker's limit; what is smaller is stored.
    """
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


def test_the_limit_of_the_page_is_that_of_the_option() -> None:
    assert stated("decompressed-most") == BrokerConfig().barnabas_max_decompressed_bytes
    assert stated("decompressed-most") == LogConfig().barnabas_max_decompressed_bytes


@pytest.mark.parametrize("case", REFUSED_BEFORE_THE_LOG)
async def test_what_is_no_batch_is_refused(
    broker: TestBroker, client: WireClient, case: str
) -> None:
    records, code = REFUSED_BEFORE_THE_LOG[case]
    await ask_one(client, produce_request("orders", batch("a", "b", "c")))
    start_at(broker, "orders", 2)

    answer = await ask_one(client, produce_request("orders", records))
    following = await ask_one(client, produce_request("orders", batch("d")))

    assert (code, -1, -1) == (answer.error_code, answer.base_offset, answer.log_start_offset)
    assert (3, 2) == (following.base_offset, following.log_start_offset)


@pytest.mark.parametrize("tail", [b"", GOOD[:11], GOOD[:16], GOOD[:17], GOOD[:-1]], ids=len)
async def test_the_beginning_of_another_batch_is_cut_off(client: WireClient, tail: bytes) -> None:
    answer = await ask_one(client, produce_request("orders", GOOD + tail))
    following = await ask_one(client, produce_request("orders", GOOD))

    assert (0, 0, 1) == (answer.error_code, answer.base_offset, following.base_offset)


def with_codec(number: int) -> bytes:
    """
    A batch that says it is compressed with that codec, and has the checksum of that.
    """
    data = bytearray(batch("a"))
    data[22] |= number
    data[17:21] = crc32c(data[21:]).to_bytes(4)
    return bytes(data)


REFUSED_BY_THE_LOG = {
    "base offset": (batch("a", base_offset=5), 87),
    "control batch": (batch("a", is_control=True), 87),
    "producer without sequence": (batch("a", producer_id=9, producer_epoch=0), 87),
    "no records": (build_batch([], base_offset=0), 87),
    "unknown codec": (with_codec(5), -1),
    "too new": (batch("a", timestamp=START_MS + 3_600_001), 32),
}


@pytest.mark.parametrize("case", REFUSED_BY_THE_LOG)
async def test_what_the_log_refuses_comes_with_its_start(
    broker: TestBroker, client: WireClient, case: str
) -> None:
    records, code = REFUSED_BY_THE_LOG[case]
    await ask_one(client, produce_request("orders", batch("a", "b", "c")))
    start_at(broker, "orders", 2)

    answer = await ask_one(client, produce_request("orders", bytes(records)))

    assert (code, -1, 2) == (answer.error_code, answer.base_offset, answer.log_start_offset)


async def test_the_records_that_spoil_a_batch_are_named(
    broker: TestBroker, client: WireClient
) -> None:
    await broker.create("compacted", cleanup_policy="compact")
    records = [SimpleRecord(START_MS, key, b"v") for key in (b"k", None, b"k", None)]

    answer = await ask_one(client, produce_request("compacted", bytes(build_batch(records))))
    old = await ask_one(client, produce_request("compacted", bytes(build_batch(records))), 7)

    assert ErrorCode.INVALID_RECORD == answer.error_code == old.error_code
    assert [1, 3] == [error.batch_index for error in answer.record_errors]
    sentence = "Compacted topic cannot accept message without key in topic partition compacted-0"
    assert [sentence] * 2 == [error.batch_index_error_message for error in answer.record_errors]
    assert (
        "One or more records have been rejected due to 2 record errors in total, and only showing "
        f"the first three errors at most: [RecordError(batchIndex=1, message='{sentence}'), "
        f"RecordError(batchIndex=3, message='{sentence}')]"
    ) == answer.error_message
    assert ([], None) == (old.record_errors, old.error_message)


async def test_zstd_needs_version_7(client: WireClient) -> None:
    records = batch("a", compression=CompressionType.ZSTD)

    old = await ask_one(client, produce_request("orders", records), 6)
    new = await ask_one(client, produce_request("orders", records), 7)

    assert ErrorCode.UNSUPPORTED_COMPRESSION_TYPE == old.error_code
    assert 0 == new.error_code


def of_codec(codec: int) -> bytes:
    """
    A batch that says it has that codec.
    """
    records = bytearray(GOOD)
    records[ATTRIBUTES_AT + 1] = codec
    records[CRC_AT:ATTRIBUTES_AT] = crc32c(memoryview(records)[ATTRIBUTES_AT:]).to_bytes(4)
    return bytes(records)


@pytest.mark.parametrize("codec", [5, 6, 7])
@pytest.mark.parametrize("version", [3, 6, 7])
async def test_before_version_7_a_codec_that_does_not_exist_fails_the_request(
    broker: TestBroker, client: WireClient, version: int, codec: int
) -> None:
    """
    All of it, and nothing is appended: Kafka looks there for zstd. Later it fails the batch alone.
    """
    data = {0: GOOD, 1: of_codec(codec)}
    request = produce_all(produce_topic("orders", data))

    answer = await client.ask(request, version)

    codes = [each.error_code for each in answer.responses[0].partition_responses]
    stored = broker.partitions.expect("orders", 0).log.log_end_offset
    expected = ([-1, -1], 0) if version < 7 else ([0, -1], 1)
    assert expected == (codes, stored)


async def test_a_codec_for_a_partition_that_does_not_exist_is_not_looked_at(
    client: WireClient,
) -> None:
    data = {0: GOOD, 2: of_codec(5)}
    request = produce_all(produce_topic("orders", data))

    answer = await client.ask(request, 3)

    codes = [each.error_code for each in answer.responses[0].partition_responses]
    assert [0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] == codes


@pytest.mark.parametrize("acks", [2, -2, 32767])
async def test_acks_are_0_1_or_all(client: WireClient, acks: int) -> None:
    answer = await ask_one(client, produce_request("orders", batch("a"), acks=acks))

    assert (ErrorCode.INVALID_REQUIRED_ACKS, -1) == (answer.error_code, answer.log_start_offset)


async def test_a_retry_is_answered_with_its_first_offset(client: WireClient) -> None:
    def numbered(sequence: int) -> bytes:
        return batch("a", producer_id=7, producer_epoch=0, base_sequence=sequence)

    for sequence in range(3):
        await ask_one(client, produce_request("orders", numbered(sequence)))

    again = await ask_one(client, produce_request("orders", numbered(1)))
    gap = await ask_one(client, produce_request("orders", numbered(5)))

    assert (0, 1, START_MS) == (again.error_code, again.base_offset, again.log_append_time_ms)
    assert (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, 0) == (gap.error_code, gap.log_start_offset)


async def test_the_time_of_the_append_is_told(broker: TestBroker, client: WireClient) -> None:
    await broker.create("timed", message_timestamp_type="LogAppendTime")

    answer = await ask_one(client, produce_request("timed", batch("a", timestamp=5)))

    assert START_MS == answer.log_append_time_ms


async def test_a_transactional_batch_needs_a_transactional_id(client: WireClient) -> None:
    records = batch("a", is_transactional=True, producer_id=7, producer_epoch=0, base_sequence=0)
    request = produce_all(produce_topic("orders", {0: batch("plain"), 1: records}))

    answer = await client.ask(request, BY_NAME)

    assert [(0, 53), (1, 53)] == [
        (each.index, each.error_code) for each in answer.responses[0].partition_responses
    ]


async def test_a_first_batch_that_cannot_be_told_apart_fails_the_whole_request(
    client: WireClient,
) -> None:
    """
    As soon as transactional batches are looked for, with a message, unlike what is found later.
    """
    broken = bytearray(batch("a"))
    broken[16] = 50
    request = produce_all(produce_topic("orders", {0: batch("plain"), 1: bytes(broken)}))

    answer = await client.ask(request, BY_NAME)
    after = await ask_one(client, produce_request("orders", batch("a")))

    assert [
        (0, ErrorCode.CORRUPT_MESSAGE, "Invalid magic found in record: 50"),
        (1, ErrorCode.CORRUPT_MESSAGE, "Invalid magic found in record: 50"),
    ] == [
        (each.index, each.error_code, each.error_message)
        for each in answer.responses[0].partition_responses
    ]
    assert 0 == after.base_offset


async def test_an_error_that_the_code_tells_comes_without_message(client: WireClient) -> None:
    records = batch("a", is_transactional=True, producer_id=7, producer_epoch=0, base_sequence=0)

    answer = await ask_one(client, produce_request("orders", records))

    assert (53, None) == (answer.error_code, answer.error_message)


async def test_without_verification_no_coordinator_is_asked() -> None:
    """
    Up to version 11: from 12 on the append itself adds the partition to the transaction.
    """
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
async def test_without_coordinator_a_transaction_has_to_wait(
    client: WireClient, version: int
) -> None:
    """
    With an error that makes producers of all versions try again.
    """
    records = batch("a", is_transactional=True, producer_id=7, producer_epoch=0, base_sequence=0)

    answer = await ask_one(
        client, produce_request("orders", records, transactional_id="t"), version
    )

    assert (ErrorCode.NOT_ENOUGH_REPLICAS, -1) == (answer.error_code, answer.log_start_offset)
    assert "Underlying error: COORDINATOR_NOT_AVAILABLE" in answer.error_message


async def test_a_plain_batch_may_come_with_a_transactional_id(client: WireClient) -> None:
    answer = await ask_one(client, produce_request("orders", GOOD, transactional_id="t"))

    assert 0 == answer.error_code


async def test_internal_topics_are_for_the_broker(broker: TestBroker) -> None:
    await broker.create("__consumer_offsets", cleanup_policy="compact")
    records = bytes(build_batch([SimpleRecord(START_MS, b"k", b"v")]))

    async with await broker.client() as client, await broker.client("__admin_client") as admin:
        answer = await ask_one(client, produce_request("__consumer_offsets", records))
        allowed = await ask_one(admin, produce_request("__consumer_offsets", records))

    assert (ErrorCode.INVALID_TOPIC_EXCEPTION, -1) == (answer.error_code, answer.log_start_offset)
    assert 0 == allowed.error_code


@pytest.mark.parametrize("version", range(3))
async def test_versions_before_3_end_the_connection(client: WireClient, version: int) -> None:
    client.send_bytes(b"\0\0\0\x12\0\0" + version.to_bytes(2) + b"\0\0\0\0\xff\xff" + bytes(8))

    assert await client.disconnected()


async def test_what_was_appended_can_be_fetched(client: WireClient) -> None:
    records = batch("a", "b")
    await ask_one(client, produce_request("orders", records))

    answer = await client.ask(fetch_request(fetch_topic("orders", {0: 0})), 12)

    stored = bytes(answer.responses[0].partitions[0].records)
    # Only base offset and leader epoch are the broker's.
    assert records[16:] == stored[16:]


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


@pytest.mark.parametrize("acks", [1, -1])
async def test_an_answer_waits_for_the_sync_that_flush_messages_asks_for(
    slow_broker: TestBroker, acks: int
) -> None:
    files: Any = slow_broker.files
    async with await slow_broker.client() as client:
        for _ in range(3):
            client.send(produce_request("durable", GOOD, acks=acks), version=BY_NAME)
        answers = asyncio.create_task(client.receive())
        await turns()
        early = answers.done()
        files.may_sync.set()

        first = await answers
        others = [await client.receive() for _ in range(2)]

    assert not early
    assert [0, 1, 2] == [
        answer.responses[0].partition_responses[0].base_offset for answer in (first, *others)
    ]


@pytest.mark.parametrize("acks", [0, 1, -1])
async def test_the_next_request_sees_what_was_appended(slow_broker: TestBroker, acks: int) -> None:
    """
    Also where an fsync has to come first, as in Kafka, whose append does not return before.
    """
    files: Any = slow_broker.files
    async with await slow_broker.client() as client:
        client.send(produce_request("durable", GOOD, acks=acks), version=BY_NAME)
        if acks == 0:
            client.expect_no_answer()
        client.send(list_offsets_request("durable", {0: -1}), version=7)
        answers = asyncio.create_task(client.receive())
        await turns()
        early = answers.done()
        files.may_sync.set()

        answer = await answers
        if acks:
            assert 0 == answer.responses[0].partition_responses[0].error_code
            answer = await client.receive()

    assert not early
    assert 1 == answer.topics[0].partitions[0].offset


async def test_what_comes_behind_several_appends_sees_them_all(slow_broker: TestBroker) -> None:
    """
    Appends do not wait for each other, and the last of them may owe no fsync.
    """
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


async def test_an_fsync_that_fails_ends_the_connection_with_acks_0() -> None:
    files = FailingFiles()
    async with running(files) as broker:
        await broker.create("durable", flush_messages="1")
        async with await broker.client() as client:
            files.fail(only=frozenset({"sync"}), forever=True)

            client.send(produce_request("durable", GOOD, acks=0), version=BY_NAME)

            assert await client.disconnected()


async def test_an_answer_waits_for_all_of_its_partitions(slow_broker: TestBroker) -> None:
    files: Any = slow_broker.files
    await slow_broker.create("quick")
    request = produce_all(
        produce_topic("quick", {0: GOOD}), produce_topic("durable", {0: GOOD}), acks=-1
    )
    async with await slow_broker.client() as client:
        client.send(request, version=BY_NAME)
        answers = asyncio.create_task(client.receive())
        await turns()
        early = answers.done()
        files.may_sync.set()
        answer = await answers

    assert not early
    assert [("quick", [(0, 0, 0)]), ("durable", [(0, 0, 0)])] == [
        (
            topic.name,
            [(each.index, each.error_code, each.base_offset) for each in topic.partition_responses],
        )
        for topic in answer.responses
    ]


async def test_a_wait_for_all_replicas_ends_after_the_timeout(slow_broker: TestBroker) -> None:
    clock: Any = slow_broker.clock
    async with await slow_broker.client() as client:
        client.send(produce_request("durable", GOOD, acks=-1, timeout_ms=500), version=BY_NAME)
        await turns()

        await clock.pass_time(0.5)
        answer = await client.receive()

    partition = answer.responses[0].partition_responses[0]
    assert ErrorCode.REQUEST_TIMED_OUT == partition.error_code


async def test_a_disk_that_fails_is_told() -> None:
    files = FailingFiles()
    async with running(files) as broker:
        await broker.create("orders")
        async with await broker.client() as client:
            await ask_one(client, produce_request("orders", GOOD))
            files.fail(only=frozenset({"write"}), forever=True)

            answer = await ask_one(client, produce_request("orders", GOOD))

    assert (ErrorCode.KAFKA_STORAGE_ERROR, -1) == (answer.error_code, answer.log_start_offset)
