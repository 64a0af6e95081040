from __future__ import annotations

from typing import Any, Final

import pytest

from barnabas.protocol.codec.schema import Message
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.api_versions import ApiVersionsRequest
from barnabas.protocol.messages.create_topics import CreateTopicsRequest
from barnabas.protocol.messages.delete_topics import DeleteTopicsRequest
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.support.quotas import ANYBODY, set_quotas, waits
from tests.support.server import TestBroker
from tests.support.topic_requests import create_request, delete_request, grow_request
from tests.support.wire_client import WireClient

BURST: Final = 11
"""
What a quota of 1 lets a client do after it was quiet.
"""
OVER: Final = ErrorCode.THROTTLING_QUOTA_EXCEEDED


def codes(answer: Any) -> dict[str, int]:
    results = getattr(answer, "topics", None) or getattr(answer, "results", None)
    results = results or answer.responses
    return {result.name: result.error_code for result in results}


async def spent(broker: TestBroker, client: WireClient, partitions: int) -> None:
    await set_quotas(broker, ANYBODY, controller_mutation_rate=1)
    answer = await client.ask(create_request(used=partitions), 7)
    assert {"used": 0} == codes(answer)
    assert 0 == answer.throttle_time_ms


async def test_topics_are_created_while_mutation_tokens_are_left(broker: TestBroker) -> None:
    async with await broker.client() as client:
        await set_quotas(broker, ANYBODY, controller_mutation_rate=1)

        answer = await client.ask(create_request(a=BURST - 1, b=3, c=1), 7)

        assert {"a": 0, "b": 0, "c": OVER} == codes(answer)
        assert 2000 == answer.throttle_time_ms
        assert broker.partitions.knows("b", 2)
        assert not broker.partitions.knows("c", 0)
        answer = await waits(broker, client.ask(create_request(c=1), 7), 2.0)
        assert {"c": 0} == codes(answer)


CREATE: Final = create_request(a=4, b=1)
GROW: Final = grow_request(t=8, u=2)


@pytest.mark.parametrize(
    ("request_", "version", "second", "throttle_ms"),
    [
        *((CREATE, version, 0, 5000) for version in range(2, 6)),
        *((GROW, version, 0, 5000) for version in range(3)),
        (GROW, 3, OVER, 4000),
        *((delete_request(version, "t", "u"), version, 0, 5000) for version in range(1, 5)),
        *((delete_request(version, "t", "u"), version, OVER, 4000) for version in (5, 6)),
    ],
)
async def test_old_versions_are_served_without_tokens_and_newer_ones_refused(
    broker: TestBroker, request_: Message, version: int, second: int, throttle_ms: int
) -> None:
    """
    The first topic takes four tokens, one for each partition, and the second topic takes one.
    """
    await broker.create("t", 4)
    await broker.create("u")
    async with await broker.client() as client:
        await spent(broker, client, BURST)

        answer = await client.ask(request_, version)

        assert [0, second] == list(codes(answer).values())
        assert throttle_ms == answer.throttle_time_ms
        is_deleted = isinstance(request_, DeleteTopicsRequest) and second == 0
        assert is_deleted != broker.partitions.knows("u", 0)
        await waits(broker, client.ask(ApiVersionsRequest(), 0), throttle_ms / 1000)


async def test_refused_mutations_cost_no_tokens(broker: TestBroker) -> None:
    await broker.create("t")
    async with await broker.client() as client:
        await spent(broker, client, BURST)

        answer = await client.ask(create_request(t=5), 7)
        assert {"t": ErrorCode.TOPIC_ALREADY_EXISTS} == codes(answer)
        answer = await client.ask(grow_request(t=1), 3)
        assert {"t": ErrorCode.INVALID_PARTITIONS} == codes(answer)
        answer = await client.ask(delete_request(6, "x"), 6)
        assert {"x": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION} == codes(answer)

        assert {"a": 0} == codes(await client.ask(create_request(a=1), 7))


async def test_validated_mutations_cost_tokens_too(broker: TestBroker) -> None:
    async with await broker.client() as client:
        await set_quotas(broker, ANYBODY, controller_mutation_rate=1)
        request = create_request(a=BURST + 1)
        tried = CreateTopicsRequest(topics=request.topics, timeout_ms=1000, validate_only=True)
        assert {"a": 0} == codes(await client.ask(tried, 7))

        assert {"b": OVER} == codes(await client.ask(create_request(b=1), 7))


async def test_topics_created_by_metadata_requests_cost_tokens(broker: TestBroker) -> None:
    """
    A client over its quota is answered that the topic does not exist, without a throttle time.
    """
    async with await broker.client() as client:
        await spent(broker, client, BURST + 1)

        wanted = [MetadataRequestTopic(name="new")]
        request = MetadataRequest(topics=wanted, allow_auto_topic_creation=True)
        answer = await client.ask(request, 12)

        assert ErrorCode.UNKNOWN_TOPIC_OR_PARTITION == answer.topics[0].error_code
        assert 0 == answer.throttle_time_ms


async def test_mutation_quota_does_not_affect_other_clients(broker: TestBroker) -> None:
    async with await broker.client() as client:
        await spent(broker, client, BURST + 100)
    async with await broker.client("other") as other:
        assert {"a": 0} == codes(await other.ask(create_request(a=1), 7))


@pytest.mark.broker(controller_quota_window_num="2", controller_quota_window_size_seconds="3")
async def test_quota_window_options_determine_the_tokens(broker: TestBroker) -> None:
    async with await broker.client() as client:
        await spent(broker, client, 2 * 3 + 1)
        answer = await client.ask(create_request(a=1), 7)

        assert {"a": OVER} == codes(answer)
        assert 1000 == answer.throttle_time_ms
        assert 1 == broker.metrics.value("requests_throttled", quota="controller_mutation")
