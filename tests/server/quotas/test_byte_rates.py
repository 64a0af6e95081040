from __future__ import annotations

import asyncio
from typing import Any, Final

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.api_versions import ApiVersionsRequest
from barnabas.protocol.messages.fetch import FetchRequest, ReplicaState
from barnabas.protocol.messages.heartbeat import HeartbeatRequest
from barnabas.protocol.messages.produce import ProduceRequest
from tests.support.quotas import ANYBODY, set_quotas, waits
from tests.support.server import (
    TestBroker,
    batch,
    fetch_request,
    fetch_topic,
    produce_request,
    until,
)
from tests.support.session_client import SessionClient
from tests.support.wire_client import WireClient, request_frame

pytestmark = pytest.mark.broker(topics={"t": 2})

BURST_S: Final = 10
"""
The seconds of a quota that a quiet client may use at once: (quota.window.num - 1) windows.
"""
KB: Final = batch("x" * 1008)
"""
About a kilobyte. A request with it has a size of which a quota can be a tenth.
"""
LAST_NAMED: Final = 12
"""
The last version of Produce and of Fetch that goes by names.
"""


def size_of(request: ProduceRequest, version: int = LAST_NAMED, client_id: str = "t") -> int:
    """
    The size as Kafka counts it: without the four bytes of the size field.
    """
    return len(request_frame(request, version, 0, client_id)) - 4


def at_once(size: int) -> int:
    """
    The smallest whole quota with which a quiet client may use *size* bytes at once.
    """
    return -(-size // BURST_S)


# Produce


async def test_producer_over_its_quota_is_throttled_and_muted(broker: TestBroker) -> None:
    request = produce_request("t", KB)
    size = size_of(request)
    await set_quotas(broker, ANYBODY, producer_byte_rate=size)
    async with await broker.client() as client:
        for _ in range(BURST_S):
            assert 0 == (await client.ask(request, LAST_NAMED)).throttle_time_ms

        answer = await client.ask(request, LAST_NAMED)

        assert 1000 == answer.throttle_time_ms
        assert 0 == answer.responses[0].partition_responses[0].error_code
        await waits(broker, client.ask(ApiVersionsRequest(), 0), 1.0)


async def test_producer_with_acks_0_is_muted_too(broker: TestBroker) -> None:
    request = produce_request("t", KB, acks=0)
    await set_quotas(broker, ANYBODY, producer_byte_rate=at_once(size_of(request)))
    async with await broker.client() as client:
        for _ in range(2):
            client.send(request, version=LAST_NAMED)
            client.expect_no_answer()
        log = broker.partitions.expect("t", 0).log
        # Its wait begins when the broker has read it, and the clock is moved by hand.
        await until(lambda: log.log_end_offset == 2)

        await waits(broker, client.ask(ApiVersionsRequest(), 0), 10.0)

    assert 2 == log.log_end_offset


async def test_no_counters_are_kept_without_quotas(broker: TestBroker) -> None:
    assert None is broker.inside.quotas.current
    await set_quotas(broker, ANYBODY, producer_byte_rate=1)
    assert None is not broker.inside.quotas.current

    await set_quotas(broker, ANYBODY, producer_byte_rate=None)

    assert None is broker.inside.quotas.current


async def test_new_quota_applies_to_open_connections(broker: TestBroker) -> None:
    request = produce_request("t", KB)
    async with await broker.client() as client:
        assert 0 == (await client.ask(request, LAST_NAMED)).throttle_time_ms
        await set_quotas(broker, ANYBODY, producer_byte_rate=10)
        told = (await client.ask(request, LAST_NAMED)).throttle_time_ms
        assert told

        await set_quotas(broker, ANYBODY, producer_byte_rate=10**6)

        answer = await waits(broker, client.ask(request, LAST_NAMED), told / 1000)
        assert 0 == answer.throttle_time_ms


async def test_user_quota_is_shared_and_client_quotas_are_separate(broker: TestBroker) -> None:
    request = produce_request("t", KB)
    await set_quotas(broker, {"user": "ANONYMOUS"}, producer_byte_rate=at_once(size_of(request)))
    async with await broker.client() as one, await broker.client("u") as other:
        assert 0 == (await one.ask(request, LAST_NAMED)).throttle_time_ms
        assert 0 < (await other.ask(request, LAST_NAMED)).throttle_time_ms

    await set_quotas(broker, {"user": "ANONYMOUS"}, producer_byte_rate=None)
    await set_quotas(broker, ANYBODY, producer_byte_rate=at_once(size_of(request)))
    async with await broker.client("v") as one, await broker.client("w") as other:
        assert 0 == (await one.ask(request, LAST_NAMED)).throttle_time_ms
        assert 0 == (await other.ask(request, LAST_NAMED)).throttle_time_ms


@pytest.mark.broker(topics={"t": 1}, quota_window_num="3", quota_window_size_seconds="5")
async def test_quota_window_options_determine_the_rate(broker: TestBroker) -> None:
    request = produce_request("t", KB)
    await set_quotas(broker, ANYBODY, producer_byte_rate=at_once(size_of(request)))
    async with await broker.client() as client:
        assert 0 == (await client.ask(request, LAST_NAMED)).throttle_time_ms
        assert 10_000 == (await client.ask(request, LAST_NAMED)).throttle_time_ms


async def test_throttling_has_metrics(broker: TestBroker) -> None:
    await set_quotas(broker, ANYBODY, producer_byte_rate=10, consumer_byte_rate=10)
    async with await broker.client() as client, await broker.client("c") as consumer:
        produced = await client.ask(produce_request("t", KB), LAST_NAMED)
        fetched = await consumer.ask(fetch_request(fetch_topic("t", {0: 0})), LAST_NAMED)

    for quota, answer in (("produce", produced), ("fetch", fetched)):
        assert 1 == broker.metrics.value("requests_throttled", quota=quota)
        told = broker.metrics.value("throttle_time_ms", quota=quota)
        assert answer.throttle_time_ms == told > 0


async def test_failed_request_counts_no_bytes(broker: TestBroker) -> None:
    """
    As in Kafka, which counts the bytes with a response that has partitions.
    """
    await set_quotas(broker, ANYBODY, producer_byte_rate=1)
    async with await broker.client() as client:
        request = produce_request(
            "t", batch("x", is_transactional=True, producer_id=5, base_sequence=0)
        )
        assert 0 == (await client.ask(request, LAST_NAMED)).throttle_time_ms


# Fetch


async def fill(broker: TestBroker, batches: int, partition: int = 0) -> None:
    async with await broker.client("filler") as client:
        for _ in range(batches):
            await client.ask(produce_request("t", KB, partition=partition), LAST_NAMED)


def everything(offset: int = 0, most: int = 1 << 20, **options: Any) -> FetchRequest:
    return fetch_request(fetch_topic("t", {0: offset}, partition_max_bytes=most), **options)


def one(offset: int) -> FetchRequest:
    return everything(offset, len(KB))


def records_in(answer: Any) -> int:
    return sum(len(p.records or b"") for topic in answer.responses for p in topic.partitions)


async def test_consumer_over_its_quota_gets_no_records_while_throttled(
    broker: TestBroker,
) -> None:
    await fill(broker, 2)
    await set_quotas(broker, ANYBODY, consumer_byte_rate=150)
    async with await broker.client() as client:
        assert len(KB) == records_in(await client.ask(one(0), LAST_NAMED))

        answer = await client.ask(one(1), LAST_NAMED)

        assert answer.throttle_time_ms > 0
        assert [] == answer.responses
        assert 0 == answer.error_code
        while answer.throttle_time_ms:  # what went out before has to leave the windows first
            seconds = answer.throttle_time_ms / 1000
            answer = await waits(broker, client.ask(one(1), LAST_NAMED), seconds)
        assert len(KB) == records_in(answer)


async def test_unsent_bytes_do_not_count(broker: TestBroker) -> None:
    await fill(broker, 1)
    await set_quotas(broker, ANYBODY, consumer_byte_rate=10)
    async with await broker.client() as client:
        told = [(await client.ask(everything(), LAST_NAMED)).throttle_time_ms]
        for _ in range(2):
            work = client.ask(everything(), LAST_NAMED)
            told.append((await waits(broker, work, told[-1] / 1000)).throttle_time_ms)

    assert 1 == len(set(told))


async def test_fetch_response_is_limited_to_the_quota_of_a_quiet_client(broker: TestBroker) -> None:
    """
    As in Kafka, only records are limited; the bytes around them cause a short throttle time.
    """
    await fill(broker, 10)
    most = 3 * len(KB) + 100
    await set_quotas(broker, ANYBODY, consumer_byte_rate=at_once(most))
    async with await broker.client() as client:
        answer = await client.ask(everything(), LAST_NAMED)
        assert 0 < answer.throttle_time_ms < 300

        seconds = answer.throttle_time_ms / 1000
        answer = await waits(broker, client.ask(everything(), LAST_NAMED), seconds)

        assert 0 == answer.throttle_time_ms
        assert most <= records_in(answer) < most + BURST_S


async def test_waiting_fetch_is_counted_when_it_is_answered(broker: TestBroker) -> None:
    await set_quotas(broker, {"client-id": "t"}, consumer_byte_rate=10)
    async with await broker.client() as client:
        waiting = asyncio.ensure_future(
            client.ask(everything(max_wait_ms=10_000, min_bytes=500), LAST_NAMED)
        )
        await until(lambda: broker.fetches.waiting)

        await fill(broker, 1)

        answer = await waiting
        assert answer.throttle_time_ms
        assert [] == answer.responses


async def test_fetch_waits_for_no_more_bytes_than_its_quota_allows(broker: TestBroker) -> None:
    await fill(broker, 2)
    await set_quotas(broker, ANYBODY, consumer_byte_rate=at_once(len(KB) + 100))
    async with await broker.client() as client, asyncio.timeout(10):
        answer = await client.ask(everything(max_wait_ms=10_000, min_bytes=1 << 20), LAST_NAMED)

        assert answer.throttle_time_ms < 1000


async def test_fetch_session_returns_later_what_throttling_left_out(broker: TestBroker) -> None:
    await set_quotas(broker, {"client-id": "t"}, consumer_byte_rate=150)
    async with await broker.client() as wire:
        client = SessionClient(wire, "t", LAST_NAMED)
        client.offsets = {0: 0, 1: 0}
        session_id = (await client.fetch()).session_id
        assert session_id
        await fill(broker, 1, 0)
        assert 0 == (await client.fetch()).throttle_time_ms
        await fill(broker, 1, 1)

        answer = await client.fetch()

        assert answer.throttle_time_ms
        assert session_id == answer.session_id
        assert [] == answer.responses
        while answer.throttle_time_ms:
            answer = await waits(broker, client.fetch(), answer.throttle_time_ms / 1000)
    assert {0: [0], 1: [0]} == {index: list(found) for index, found in client.records.items()}


async def test_throttled_fetch_opens_no_session(broker: TestBroker) -> None:
    await fill(broker, 1)
    await set_quotas(broker, ANYBODY, consumer_byte_rate=1)
    async with await broker.client() as client:
        answer = await client.ask(everything(session_epoch=0), LAST_NAMED)

        assert 0 == answer.session_id
        assert 0 == len(broker.fetch_sessions)


async def test_follower_is_not_throttled(broker: TestBroker) -> None:
    await fill(broker, 1)
    await set_quotas(broker, ANYBODY, consumer_byte_rate=1)
    async with await broker.client() as client:
        answer = await client.ask(everything(replica_id=7), LAST_NAMED)
        assert 0 == answer.throttle_time_ms

        by_id = fetch_request(
            fetch_topic(await broker.topic_id("t"), {0: 0}),
            replica_state=ReplicaState(replica_id=7, replica_epoch=0),
        )
        assert 0 == (await client.ask(by_id, 17)).throttle_time_ms


@pytest.mark.parametrize(
    ("api", "version"),
    [(api, version) for api in (ProduceRequest, FetchRequest) for version in api.api.versions],
    ids=lambda each: getattr(each, "__name__", each),
)
async def test_every_version_reports_the_throttle_time(
    broker: TestBroker, api: type[ProduceRequest | FetchRequest], version: int
) -> None:
    await fill(broker, 1)
    topic = await broker.topic_id("t") if version > LAST_NAMED else "t"
    request = (
        produce_request(topic, KB)
        if api is ProduceRequest
        else fetch_request(fetch_topic(topic, {0: 0}))
    )
    await set_quotas(broker, ANYBODY, producer_byte_rate=10, consumer_byte_rate=10)
    async with await broker.client() as client:
        answer = await client.ask(request, version)

        assert answer.throttle_time_ms > 0
        assert api is ProduceRequest or [] == answer.responses


async def test_response_size_for_quotas_excludes_the_header(broker: TestBroker) -> None:
    """
    As in Kafka: without the header, and with the four bytes of the size field.
    """
    await fill(broker, 1)
    async with await broker.client() as client:
        client.send(everything(), version=LAST_NAMED)
        frame = await client.receive_frame()
    size = 4 + len(frame) - 5
    await set_quotas(broker, ANYBODY, consumer_byte_rate=1)
    async with await broker.client() as client:
        answer = await client.ask(everything(), LAST_NAMED)

    assert (size - BURST_S) * 1000 == answer.throttle_time_ms


async def test_other_requests_count_no_bytes(broker: TestBroker) -> None:
    await set_quotas(broker, ANYBODY, consumer_byte_rate=1, producer_byte_rate=1)
    async with await broker.client() as client:
        for _ in range(5):
            beat = HeartbeatRequest(group_id="g", generation_id=1, member_id="m" * 1000)
            answer = await client.ask(beat, 3)
            assert ErrorCode.NONE != answer.error_code
            assert 0 == answer.throttle_time_ms


async def test_client_without_a_client_id_has_the_quota_of_its_user(broker: TestBroker) -> None:
    request = produce_request("t", KB)
    await set_quotas(broker, ANYBODY, producer_byte_rate=1)
    async with await WireClient.open(broker.port, client_id=None) as client:
        assert 0 == (await client.ask(request, LAST_NAMED)).throttle_time_ms
        await set_quotas(broker, {"user": None}, producer_byte_rate=1)
        assert 0 < (await client.ask(request, LAST_NAMED)).throttle_time_ms
