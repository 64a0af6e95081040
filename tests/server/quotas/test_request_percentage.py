from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import count
from typing import Any, Final

import pytest

from barnabas.coordination.steps import checkpoint
from barnabas.protocol.codec.schema import fields
from barnabas.protocol.messages.api_versions import ApiVersionsRequest
from barnabas.protocol.messages.create_topics import CreateTopicsRequest
from barnabas.protocol.messages.fetch import FetchRequest
from barnabas.protocol.messages.heartbeat import HeartbeatRequest
from barnabas.protocol.messages.metadata import MetadataRequest
from barnabas.protocol.messages.write_txn_markers import WriteTxnMarkersRequest
from barnabas.server.requests.registry import HANDLERS
from barnabas.server.requests.timing import timed
from tests.support.quotas import ANYBODY, set_quotas, waits
from tests.support.server import (
    TestBroker,
    batch,
    fetch_request,
    fetch_topic,
    produce_request,
    until,
)

pytestmark = pytest.mark.broker(topics={"t": 1})

HEARTBEAT: Final = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")


async def limit_time(broker: TestBroker, percentage: float, step_s: float = 0.1) -> None:
    """
    Limit the request time of all clients, by a clock that moves by a step with each reading.
    """
    await set_quotas(broker, ANYBODY, request_percentage=percentage)
    assert broker.inside.quotas.current is not None
    broker.inside.quotas.current.now = stepping(step_s)


def stepping(step_s: float) -> Callable[[], float]:
    steps = count()
    return lambda: next(steps) * step_s


async def test_client_is_throttled_for_the_excess_of_its_request_time(broker: TestBroker) -> None:
    """
    0.1 s in windows of 10 s are a rate of 1 %, which exceeds the quota by 0.05 %: 526 ms.
    """
    await limit_time(broker, 0.95)
    async with await broker.client() as client:
        answer = await client.ask(HEARTBEAT, 3)
        assert 526 == answer.throttle_time_ms
        await waits(broker, client.ask(ApiVersionsRequest(), 0), 0.526)


async def test_client_within_its_request_quota_is_not_throttled(broker: TestBroker) -> None:
    await limit_time(broker, 1.0)
    async with await broker.client() as client:
        assert 0 == (await client.ask(HEARTBEAT, 3)).throttle_time_ms


@pytest.mark.parametrize(
    ("request_", "version"),
    [
        (MetadataRequest(topics=None), 12),  # in steps
        (CreateTopicsRequest(topics=[], timeout_ms=1000), 7),  # in a task
        (fetch_request(fetch_topic("t", {0: 0})), 12),
        (produce_request("t", batch("x")), 9),
        (ApiVersionsRequest(client_software_name="a", client_software_version="1"), 3),
    ],
    ids=lambda each: type(each).__name__,
)
async def test_request_time_counts_however_a_request_is_served(
    broker: TestBroker, request_: Any, version: int
) -> None:
    await limit_time(broker, 1e-6)
    async with await broker.client() as client:
        assert 1000 == (await client.ask(request_, version)).throttle_time_ms
    assert 1 == broker.metrics.value("requests_throttled", quota="request")


async def test_fetch_throttled_by_request_time_is_empty_and_counts_no_bytes(
    broker: TestBroker,
) -> None:
    async with await broker.client("producer") as client:
        await client.ask(produce_request("t", batch("x" * 1000)), 9)
    await set_quotas(broker, ANYBODY, consumer_byte_rate=120)
    await limit_time(broker, 1e-6)
    async with await broker.client() as client:
        answer = await client.ask(fetch_request(fetch_topic("t", {0: 0})), 12)
        assert [] == answer.responses
        await set_quotas(broker, ANYBODY, request_percentage=None)

        work = client.ask(fetch_request(fetch_topic("t", {0: 0})), 12)
        answer = await waits(broker, work, 1.0)

        assert 0 == answer.throttle_time_ms
        assert answer.responses[0].partitions[0].records


async def test_waiting_time_of_a_fetch_does_not_count(broker: TestBroker) -> None:
    """
    The fetch uses 0.1 s at first, and no time during the minute of waiting.
    """
    await limit_time(broker, 100.0, 0.0)
    assert broker.inside.quotas.current is not None
    quotas = broker.inside.quotas.current
    now = [0.0]
    quotas.now = lambda: now[0]
    async with await broker.client() as client:
        request = FetchRequest(
            topics=[fetch_topic("t", {0: 0})], max_wait_ms=10_000_000, min_bytes=1
        )
        work = asyncio.ensure_future(client.ask(request, 12))
        await until(lambda: broker.fetches.waiting)
        now[0] = 60.0
        async with await broker.client("producer") as producer:
            await producer.ask(produce_request("t", batch("x")), 9)

        assert 0 == (await work).throttle_time_ms


async def test_longer_throttle_time_counts(broker: TestBroker) -> None:
    await set_quotas(broker, ANYBODY, producer_byte_rate=1)
    await limit_time(broker, 1e-6)
    async with await broker.client() as client:
        answer = await client.ask(produce_request("t", batch("x" * 1000)), 9)

    assert 1000 < answer.throttle_time_ms
    assert 1 == broker.metrics.value("requests_throttled", quota="produce")
    assert 0 == broker.metrics.value("requests_throttled", quota="request")


async def test_request_without_a_response_costs_no_time(broker: TestBroker) -> None:
    await limit_time(broker, 1e-6)
    async with await broker.client() as client:
        client.send(produce_request("t", batch("x"), acks=0), version=9)
        client.expect_no_answer()
        assert 1000 == (await client.ask(HEARTBEAT, 3)).throttle_time_ms


async def test_requests_of_brokers_are_exempt(broker: TestBroker) -> None:
    await limit_time(broker, 1e-6)
    async with await broker.client() as client:
        await client.ask(WriteTxnMarkersRequest(markers=[]), 1)
        follower = fetch_request(fetch_topic("t", {0: 0}), replica_id=5)
        assert 0 == (await client.ask(follower, 12)).throttle_time_ms
    assert 0 == broker.metrics.value("requests_throttled")


async def test_error_response_has_the_throttle_time_too(broker: TestBroker) -> None:
    await limit_time(broker, 1e-6)
    async with await broker.client() as client:
        answer = await client.ask(fetch_request(fetch_topic("t", {0: 0}), isolation_level=9), 12)
        assert 1000 == answer.throttle_time_ms


def test_every_response_has_a_throttle_time_except_where_kafkas_has_none() -> None:
    without = {
        handler.name
        for handler in HANDLERS.values()
        if "throttle_time_ms" not in {field.name for field in fields(handler.response)}
    }

    assert {
        "DeleteShareGroupState",
        "DescribeQuorum",
        "InitializeShareGroupState",
        "ReadShareGroupState",
        "ReadShareGroupStateSummary",
        "SaslAuthenticate",
        "SaslHandshake",
        "WriteShareGroupState",
        "WriteTxnMarkers",
    } == without


# Timing


class Watch:
    def __init__(self) -> None:
        self.log: list[str] = []

    def resume(self) -> bool:
        self.log.append("resume")
        return True

    def pause(self) -> None:
        self.log.append("pause")


def test_each_step_of_a_request_is_timed() -> None:
    watch: Any = Watch()

    async def work() -> int:
        await checkpoint()
        await checkpoint()
        return 7

    for _ in timed(work(), watch).__await__():
        watch.log.append("others")

    assert ["resume", "pause", "others"] * 2 + ["resume", "pause"] == watch.log


async def test_awaitable_is_timed_only_while_it_runs() -> None:
    watch: Any = Watch()
    event = asyncio.Event()

    async def work() -> int:
        await event.wait()
        await asyncio.sleep(0)
        return 7

    task = asyncio.ensure_future(timed(work(), watch))
    await asyncio.sleep(0)
    watch.log.append("others")
    event.set()

    assert 7 == await task
    assert ["resume", "pause", "others", *["resume", "pause"] * 2] == watch.log


async def test_a_timed_task_can_be_cancelled() -> None:
    watch: Any = Watch()
    ended = []

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(True)

    task = asyncio.ensure_future(timed(work(), watch))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert [True] == ended


async def test_error_of_a_timed_task_is_raised() -> None:
    async def work() -> None:
        await asyncio.sleep(0)
        raise KeyError(1)

    watch: Any = Watch()
    with pytest.raises(KeyError):
        await timed(work(), watch)
