"""
Fetch, over the wire.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.fetch import FetchRequest
from barnabas.testing.disks.failing import FailingFiles
from barnabas.testing.disks.memory import MemoryFiles
from barnabas.testing.manual_clock import ManualClock
from tests.support.server import (
    START_MS,
    TestBroker,
    batch,
    fetch_request,
    fetch_topic,
    list_offsets_request,
    produce_request,
    running,
    until,
)
from tests.support.wire_client import WireClient

pytestmark = pytest.mark.broker(topics={"orders": 3})


BY_NAME = 12

ONE = batch("x" * 80)
SIZE = len(ONE)


def append(broker: TestBroker, *records: bytes, topic: str = "orders", partition: int = 0) -> None:
    for each in records:
        broker.partitions.expect(topic, partition).append(memoryview(bytearray(each)))


async def fetch(client: WireClient, request: FetchRequest, version: int = BY_NAME) -> list[Any]:
    """
    The partitions of the answer, in order.
    """
    answer = await client.ask(request, version)
    assert (0, 0) == (answer.error_code, answer.session_id)
    return [partition for topic in answer.responses for partition in topic.partitions]


def sizes(partitions: list[Any]) -> list[int]:
    return [len(partition.records) for partition in partitions]


async def settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0.001)


async def waiting(broker: TestBroker, count: int = 1) -> None:
    """
    Return when so many fetches wait.
    """
    await until(lambda: len(broker.fetches.waiting) == count)


async def begin(
    broker: TestBroker, client: WireClient, offsets: dict[int, int] | None = None, **facts: int
) -> None:
    """
    Send a fetch of *orders* that waits for up to a second by default.
    """
    topic = fetch_topic("orders", offsets or {0: 0})
    client.send(fetch_request(topic, **{"max_wait_ms": 1000} | facts), version=BY_NAME)
    await waiting(broker)


async def test_partitions_are_answered_in_order_with_unknown_ones_last(
    broker: TestBroker, client: WireClient
) -> None:
    await broker.create("others")
    append(broker, ONE, partition=1)

    answer = await client.ask(
        fetch_request(
            fetch_topic("others", {0: 0}),
            fetch_topic("nowhere", {5: 0}),
            fetch_topic("orders", {2: 0, 1: 0, 9: 0, 0: 7}),
        ),
        BY_NAME,
    )

    assert [
        ("others", [(0, 0)]),
        ("orders", [(2, 0), (1, 0), (0, 1)]),
        ("nowhere", [(5, 3)]),
        ("orders", [(9, 3)]),
    ] == [
        (topic.topic, [(each.partition_index, each.error_code) for each in topic.partitions])
        for topic in answer.responses
    ]
    assert 2 == broker.metrics.value("errors", api="Fetch", code="UNKNOWN_TOPIC_OR_PARTITION")
    assert 1 == broker.metrics.value("errors", api="Fetch", code="OFFSET_OUT_OF_RANGE")


async def test_broker_limit_of_fetch_bytes_applies() -> None:
    async with running(fetch_max_bytes="1024") as broker:
        await broker.create("orders")
        append(broker, *[ONE] * 20)
        async with await broker.client() as client:
            answer = await fetch(client, fetch_request(fetch_topic("orders", {0: 0})))

    assert [1024] == sizes(answer)


class TestWaiting:
    async def test_fetch_waits_until_records_arrive(
        self, broker: TestBroker, client: WireClient
    ) -> None:
        await begin(broker, client, {0: 0, 1: 0})

        append(broker, ONE, partition=1)

        answer = await client.receive()
        assert [0, SIZE] == sizes(answer.responses[0].partitions)
        assert not broker.fetches.waiting

    async def test_fetch_waits_until_min_bytes_have_arrived(
        self, broker: TestBroker, client: WireClient
    ) -> None:
        append(broker, ONE)
        await begin(broker, client, {0: 0, 1: 0}, min_bytes=3 * SIZE)
        append(broker, ONE, partition=1)
        await settle()
        still = len(broker.fetches.waiting)

        append(broker, ONE)

        answer = await client.receive()
        assert 1 == still
        assert [2 * SIZE, SIZE] == sizes(answer.responses[0].partitions)

    async def test_fetch_waits_at_most_max_wait_ms(
        self, broker: TestBroker, client: WireClient
    ) -> None:
        clock: Any = broker.clock
        append(broker, ONE)
        await begin(broker, client, max_wait_ms=500, min_bytes=1000)

        await clock.pass_time(0.499)
        early = len(broker.fetches.waiting)
        await clock.pass_time(0.001)

        answer = await client.receive()
        assert 1 == early
        assert [SIZE] == sizes(answer.responses[0].partitions)

    async def test_fetch_does_not_wait_for_more_than_max_bytes(
        self, broker: TestBroker, client: WireClient
    ) -> None:
        append(broker, ONE)
        request = fetch_request(
            fetch_topic("orders", {0: 0}), max_wait_ms=1000, min_bytes=10_000, max_bytes=SIZE
        )

        assert [SIZE] == sizes(await fetch(client, request))

    async def test_unknown_partition_beside_others_does_not_end_the_wait(
        self, broker: TestBroker, client: WireClient
    ) -> None:
        await begin(broker, client, {0: 0, 9: 0})

        append(broker, ONE)

        answer = await client.receive()
        assert [0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] == [
            each.error_code for each in answer.responses[0].partitions
        ]

    async def test_remaining_bytes_of_an_older_segment_are_returned_at_once(
        self, broker: TestBroker, client: WireClient
    ) -> None:
        append(broker, ONE)
        broker.partitions.expect("orders", 0).log.roll()
        append(broker, ONE, ONE)
        topic = fetch_topic("orders", {0: 0})

        answer = await fetch(client, fetch_request(topic, max_wait_ms=1000, min_bytes=2 * SIZE))

        assert [SIZE] == sizes(answer)

    async def test_error_ends_a_waiting_fetch_at_once(self, client: WireClient) -> None:
        request = fetch_request(fetch_topic("orders", {0: 0, 1: 99}), max_wait_ms=1000)

        assert [0, 1] == [each.error_code for each in await fetch(client, request)]

    async def test_deletion_of_the_topic_ends_a_waiting_fetch(
        self, broker: TestBroker, client: WireClient
    ) -> None:
        await begin(broker, client)

        await broker.delete("orders")

        answer = await client.receive()
        partition = answer.responses[0].partitions[0]
        assert ErrorCode.UNKNOWN_TOPIC_OR_PARTITION == partition.error_code

    async def test_next_request_of_the_connection_ends_a_waiting_fetch(
        self, broker: TestBroker, client: WireClient
    ) -> None:
        await begin(broker, client)

        client.send(list_offsets_request("orders", {0: -1}), version=7)

        assert [0] == sizes((await client.receive()).responses[0].partitions)
        assert 0 == (await client.receive()).topics[0].partitions[0].offset

    async def test_closed_connection_ends_a_waiting_fetch(self, broker: TestBroker) -> None:
        client = await broker.client()
        await begin(broker, client)

        await client.close()

        await waiting(broker, 0)

    async def test_many_waiting_fetches_return_what_was_appended_together(
        self, broker: TestBroker
    ) -> None:
        clients = [await broker.client() for _ in range(50)]
        for client in clients:
            client.send(
                fetch_request(fetch_topic("orders", {0: 0}), max_wait_ms=1000), version=BY_NAME
            )
        await waiting(broker, len(clients))

        append(broker, ONE, ONE, ONE)

        for client in clients:
            answer = await client.receive()
            assert [3 * SIZE] == sizes(answer.responses[0].partitions)
            await client.close()


async def test_diverging_log_is_told_the_end_of_its_last_common_epoch(
    broker: TestBroker, client: WireClient
) -> None:
    """
    KIP-595; ``test_partition.py`` has the other comparisons of leader epochs.
    """
    append(broker, ONE, ONE)
    broker.partitions.expect("orders", 0).leader_epoch = 2
    append(broker, ONE, ONE)
    topic = fetch_topic("orders", {0: 3}, last_fetched_epoch=0)

    (partition,) = await fetch(client, fetch_request(topic, max_wait_ms=1000))

    assert 0 == partition.error_code
    assert (0, 2) == (partition.diverging_epoch.epoch, partition.diverging_epoch.end_offset)
    assert b"" == bytes(partition.records)


@pytest.mark.parametrize(
    ("version", "code"),
    [(5, ErrorCode.NOT_LEADER_OR_FOLLOWER), (6, ErrorCode.KAFKA_STORAGE_ERROR)],
)
async def test_failed_disk_is_reported(version: int, code: ErrorCode) -> None:
    files = FailingFiles()
    async with running(files) as broker:
        await broker.create("orders")
        append(broker, ONE)
        async with await broker.client() as client:
            files.fail(only=frozenset({"write"}), forever=True)
            await client.ask(produce_request("orders", ONE), 9)
            (answer,) = await fetch(client, fetch_request(fetch_topic("orders", {0: 0})), version)

    assert code == answer.error_code


class TestColdReads:
    @pytest.fixture
    def cold(self, broker: TestBroker, monkeypatch: pytest.MonkeyPatch) -> list[str]:
        """
        Let nothing be in the page cache; what is done in the executor is noted.
        """
        assert isinstance(broker.files, MemoryFiles)
        broker.files.is_cold = True
        done: list[str] = []
        reads = broker.reads
        submit = reads.submit

        def noted(work: Any, /, *args: Any, **options: Any) -> Any:
            done.append("read")
            return submit(work, *args, **options)

        monkeypatch.setattr(reads, "submit", noted)
        return done

    async def test_fetch_of_cold_pages_is_answered(
        self, broker: TestBroker, client: WireClient, cold: list[str]
    ) -> None:
        append(broker, ONE, ONE)

        (partition,) = await fetch(client, fetch_request(fetch_topic("orders", {0: 0})))

        assert 2 * SIZE == len(partition.records)
        assert cold

    async def test_waiting_fetch_reads_cold_pages_when_records_arrive(
        self, broker: TestBroker, client: WireClient, cold: list[str]
    ) -> None:
        await begin(broker, client)

        append(broker, ONE)

        assert [SIZE] == sizes((await client.receive()).responses[0].partitions)
        assert cold

    async def test_fetch_of_cold_pages_does_not_delay_the_next_request(
        self, broker: TestBroker, client: WireClient, cold: list[str]
    ) -> None:
        client.send(fetch_request(fetch_topic("orders", {0: 0}), max_wait_ms=1000), version=BY_NAME)
        client.send(list_offsets_request("orders", {0: -1}), version=7)

        assert [0] == sizes((await client.receive()).responses[0].partitions)
        assert 0 == (await client.receive()).topics[0].partitions[0].offset


async def test_disk_failure_during_a_read_is_a_storage_error() -> None:
    files = FailingFiles()
    async with running(files, ManualClock(START_MS)) as broker:
        await broker.create("orders")
        partition = broker.partitions.expect("orders", 0)
        for _ in range(3):
            partition.append(memoryview(bytearray(ONE)))
        request = fetch_request(fetch_topic(await broker.topic_id("orders"), {0: 1}))
        async with await broker.client() as client:
            files.fail(only=frozenset({"read"}), forever=True)
            for _ in range(2):
                (topic,) = (await client.ask(request, 17)).responses
                assert ErrorCode.KAFKA_STORAGE_ERROR == topic.partitions[0].error_code
