from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from barnabas.protocol.messages.api_versions import ApiVersionsRequest
from barnabas.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from barnabas.protocol.messages.describe_groups import DescribeGroupsRequest
from barnabas.protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest
from barnabas.protocol.messages.describe_transactions import DescribeTransactionsRequest
from barnabas.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from barnabas.server.requests import answer_room
from barnabas.server.requests.answer_room import ENTRY_BYTES, MOST_BYTES, AnswerRoom
from barnabas.server.requests.errors import CloseConnection
from barnabas.testing.disks.memory import MemoryFiles
from tests.support.group_requests import commit_request
from tests.support.limits import stated
from tests.support.server import TestBroker, running
from tests.support.wire_client import Disconnected

TOPIC_CONFIG = DescribeConfigsResource(
    resource_type=2, resource_name="orders", configuration_keys=None
)
REQUESTS = {
    "groups": (lambda n: DescribeGroupsRequest(groups=["g"] * n), 5),
    "configs": (lambda n: DescribeConfigsRequest(resources=[TOPIC_CONFIG] * n), 4),
    "offsets": (
        lambda n: OffsetFetchRequest(
            groups=[OffsetFetchRequestGroup(group_id="g", topics=None)] * n
        ),
        8,
    ),
    "producers": (
        lambda n: DescribeProducersRequest(
            topics=[TopicRequest(name="orders", partition_indexes=[0] * n)]
        ),
        0,
    ),
    "transactions": (lambda n: DescribeTransactionsRequest(transactional_ids=["t"] * n), 0),
}


@pytest.fixture
async def broker() -> AsyncIterator[TestBroker]:
    async with running(MemoryFiles()) as broker:
        await broker.create("orders")
        await broker.create("__consumer_offsets", cleanup_policy="compact")
        async with await broker.client() as client:
            answer = await client.ask(commit_request("g", "orders", {0: 1}), 8)
            assert 0 == answer.topics[0].partitions[0].error_code
        yield broker


def test_response_limit_matches_the_documentation() -> None:
    assert stated("answer-memory") == MOST_BYTES


def test_response_size_counts_entries_and_their_strings() -> None:
    room = AnswerRoom(3 * ENTRY_BYTES)

    room.take(1, ENTRY_BYTES)
    room.take(1)
    with pytest.raises(CloseConnection, match="the answer would take more than"):
        room.take(0, 1)


@pytest.mark.parametrize("what", REQUESTS)
async def test_response_beyond_the_limit_closes_the_connection(
    broker: TestBroker, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    make: Any
    make, version = REQUESTS[what]
    monkeypatch.setattr(answer_room, "MOST_BYTES", 250 * ENTRY_BYTES)

    async with await broker.client() as client, await broker.client() as other:
        assert await client.ask(make(1), version)
        with pytest.raises(Disconnected):
            await client.ask(make(251), version)
        assert 0 == (await other.ask(ApiVersionsRequest(), 0)).error_code
