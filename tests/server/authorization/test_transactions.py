from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Final

import pytest

from barnabas.coordination.coordinator_runtime.producer import ProducerIdAndEpoch
from barnabas.coordination.security.acl.permissions import (
    DESCRIBE_TOPIC,
    DESCRIBE_TRANSACTIONAL_ID,
    READ_TOPIC,
    WRITE_TRANSACTIONAL_ID,
)
from barnabas.protocol.messages.describe_transactions import DescribeTransactionsRequest
from barnabas.protocol.messages.init_producer_id import InitProducerIdRequest
from tests.support.acls import AUTHORIZER, EVERYTHING, Right, allow_only
from tests.support.group_requests import coordinator_request
from tests.support.refusals import codes
from tests.support.server import TestBroker, running
from tests.support.transaction_requests import (
    add_partitions_request,
)
from tests.support.wire_client import WireClient

NO_TRANSACTION, NOT_FOUND = 53, 105

WRITE_ID: Final = (WRITE_TRANSACTIONAL_ID, "a")
DESCRIBE_ID: Final = (DESCRIBE_TRANSACTIONAL_ID, "a")
READ_T: Final = (READ_TOPIC, "t")


@pytest.fixture
async def broker() -> AsyncIterator[TestBroker]:
    small = {"offsets_topic_num_partitions": "1", "transaction_state_log_num_partitions": "1"}
    async with running(**AUTHORIZER, **small) as broker:
        await allow_only(broker, EVERYTHING)
        for topic in ("t", "u"):
            await broker.create(topic)
        async with await broker.client() as client:
            for key_type in (0, 1):
                await client.ask(coordinator_request("any", key_type=key_type), 4)
        await allow_only(broker, ())
        yield broker


async def begin(
    client: WireClient, transactional_id: str, partitions: Mapping[str, Sequence[int]]
) -> ProducerIdAndEpoch:
    request = InitProducerIdRequest(
        transactional_id=transactional_id, transaction_timeout_ms=60_000
    )
    answer = await client.ask(request, 4)
    producer = ProducerIdAndEpoch(answer.producer_id, answer.producer_epoch)
    added = await client.ask(add_partitions_request(transactional_id, producer, partitions), 3)
    assert {0} == set(codes(added, 3)) or not partitions
    return producer


@pytest.fixture
async def producer(broker: TestBroker, client: WireClient) -> ProducerIdAndEpoch:
    await allow_only(broker, EVERYTHING)
    producer = await begin(client, "a", {"t": [0], "u": [0]})
    await allow_only(broker, ())
    return producer


@pytest.mark.parametrize(
    ("rights", "expected"),
    [
        ((), [("a", NO_TRANSACTION, "", []), ("b", NO_TRANSACTION, "", [])]),
        ((DESCRIBE_ID, READ_T), [("a", 0, "Ongoing", ["t"]), ("b", NO_TRANSACTION, "", [])]),
        (
            (WRITE_ID, (DESCRIBE_TRANSACTIONAL_ID, "b"), (DESCRIBE_TOPIC, "*")),
            [("a", 0, "Ongoing", ["t", "u"]), ("b", NOT_FOUND, "", [])],
        ),
        ((DESCRIBE_ID,), [("a", 0, "Ongoing", []), ("b", NO_TRANSACTION, "", [])]),
    ],
)
async def test_describe_transactions_returns_only_topics_with_describe(
    broker: TestBroker,
    client: WireClient,
    producer: ProducerIdAndEpoch,
    rights: Sequence[Right],
    expected: Sequence[tuple[Any, ...]],
) -> None:
    await allow_only(broker, rights)

    answer = await client.ask(DescribeTransactionsRequest(transactional_ids=["a", "b"]), 0)

    assert expected == [
        (
            each.transactional_id,
            each.error_code,
            each.transaction_state,
            [topic.topic for topic in each.topics],
        )
        for each in answer.transaction_states
    ]
    assert [producer.producer_id if each[1] == 0 else 0 for each in expected] == [
        each.producer_id for each in answer.transaction_states
    ]
