"""
Permissions to write and read records that depend on sessions, waits and transactions.
test_authorization.py compares the other responses with Apache Kafka.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from uuid import UUID

import pytest

from barnabas.coordination.security.acl.permissions import (
    READ_TOPIC,
    WRITE_TOPIC,
    WRITE_TRANSACTIONAL_ID,
)
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.describe_transactions import DescribeTransactionsRequest
from tests.support.acls import (
    AUTHORIZER,
    EVERYTHING,
    allow,
    allow_only,
    create_topics,
    revoke_all,
)
from tests.support.server import (
    TestBroker,
    batch,
    fetch_request,
    fetch_topic,
    produce_request,
)
from tests.support.session_client import SessionClient
from tests.support.transactional_client import ID, SECOND, TOPIC, Client, prepare
from tests.support.wire_client import WireClient

E = ErrorCode
pytestmark = pytest.mark.broker(
    **AUTHORIZER, transaction_state_log_num_partitions="1", offsets_topic_num_partitions="1"
)

FORBIDDEN: Final = E.TOPIC_AUTHORIZATION_FAILED
NOBODYS: Final = UUID(int=7)
BY_NAME: Final = 12


def topic_id(broker: TestBroker, name: str) -> UUID:
    topic = broker.inside.topics.get(name)
    return NOBODYS if topic is None else topic.id


async def put_record(broker: TestBroker, name: str = "t") -> None:
    partition = broker.inside.partitions.expect(name, 0)
    await partition.committed(partition.append(memoryview(bytearray(batch("a")))).last_offset + 1)


def codes_of(answer: Any, names: Mapping[Any, str]) -> dict[str, int]:
    """
    The codes of a Produce response, by the topics whose names or ids are in *names*.
    """
    return {
        names[topic.topic_id if topic.topic_id.int else topic.name]: data.error_code
        for topic in answer.responses
        for data in topic.partition_responses
    }


# Produce


async def test_refused_producer_with_acks_0_is_disconnected(
    broker: TestBroker, client: WireClient
) -> None:
    await create_topics(broker, {"t": 1})

    client.send(produce_request("t", batch("a"), acks=0), version=11)

    assert await client.disconnected()


async def test_unknown_codec_is_checked_only_where_the_client_may_write(
    broker: TestBroker, client: WireClient
) -> None:
    await create_topics(broker, {"t": 1})
    records = bytearray(batch("a"))
    records[22] |= 7
    request = produce_request("t", bytes(records))

    refused = await client.ask(request, 3)
    await allow(broker, WRITE_TOPIC, "t")
    failed = await client.ask(request, 3)

    assert {"t": FORBIDDEN} == codes_of(refused, {"t": "t"})
    assert {"t": E.UNKNOWN_SERVER_ERROR} == codes_of(failed, {"t": "t"})


@pytest.mark.parametrize("may_write", [True, False])
async def test_unauthorized_topic_is_not_added_to_the_transaction(
    broker: TestBroker, client: WireClient, may_write: bool
) -> None:
    await allow_only(broker, EVERYTHING)
    await prepare(broker, 1)
    producer = Client(client, SECOND)
    assert 0 == await producer.init()
    await allow_only(broker, ((WRITE_TRANSACTIONAL_ID, ID),))
    if may_write:
        await allow(broker, WRITE_TOPIC, TOPIC)

    code = await producer.produce("a")

    await allow_only(broker, EVERYTHING)
    answer = await client.ask(DescribeTransactionsRequest(transactional_ids=[ID]), 0)
    topics = [topic.topic for topic in answer.transaction_states[0].topics]
    assert (0 if may_write else FORBIDDEN, [TOPIC] if may_write else []) == (code, topics)


# Fetch


def fetched(answer: Any, names: Mapping[Any, str]) -> list[tuple[str, int, bool]]:
    """
    The codes of a Fetch response, and whether it has records.
    """
    return [
        (
            names[topic.topic_id if topic.topic_id.int else topic.topic],
            data.error_code,
            bool(data.records),
        )
        for topic in answer.responses
        for data in topic.partitions
    ]


async def test_fetch_of_unauthorized_topics_only_does_not_wait(
    broker: TestBroker, client: WireClient
) -> None:
    await create_topics(broker, {"t": 1})
    request = fetch_request(fetch_topic("t", {0: 0}), max_wait_ms=60_000, isolation_level=9)

    answer = await client.ask(request, BY_NAME)

    assert [("t", FORBIDDEN, False)] == fetched(answer, {"t": "t"})


@pytest.mark.parametrize("by_id", [True, False])
async def test_each_fetch_of_a_session_is_authorized_again(
    broker: TestBroker, client: WireClient, by_id: bool
) -> None:
    await create_topics(broker, {"t": 1})
    t = topic_id(broker, "t")
    session = SessionClient(client, t if by_id else "t", 17 if by_id else BY_NAME)
    session.offsets = {0: 0}
    names: dict[Any, str] = {t: "t", "t": "t"}
    refused = [("t", FORBIDDEN, False)]

    assert refused == fetched(await session.fetch(), names)
    assert refused == fetched(await session.fetch(), names)
    await allow(broker, READ_TOPIC, "t")
    assert [("t", 0, False)] == fetched(await session.fetch(), names)
    assert [] == fetched(await session.fetch(), names)
    await put_record(broker)
    await revoke_all(broker)
    assert refused == fetched(await session.fetch(), names)
    assert refused == fetched(await session.fetch(), names)
    await allow(broker, READ_TOPIC, "t")
    assert [("t", 0, True)] == fetched(await session.fetch(), names)
    assert session.session_id


async def test_waiting_fetch_is_authorized_when_it_begins(
    broker: TestBroker, client: WireClient
) -> None:
    await create_topics(broker, {"t": 1})
    await allow(broker, READ_TOPIC, "t")
    client.send(fetch_request(fetch_topic("t", {0: 0}), max_wait_ms=60_000), version=BY_NAME)
    async with await broker.client() as other:
        await other.ask(fetch_request(), BY_NAME)  # by now the first one waits

    await revoke_all(broker)
    await put_record(broker)

    assert [("t", 0, True)] == fetched(await client.receive(), {"t": "t"})
