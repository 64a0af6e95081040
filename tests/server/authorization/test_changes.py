from __future__ import annotations

import asyncio

import pytest

from barnabas.coordination.security.acl.permissions import READ_TOPIC, WRITE_TOPIC, Permission
from barnabas.protocol.errors import ErrorCode
from barnabas.server.network.registry import CROWD
from barnabas.testing.manual_clock import ManualClock
from tests.support.acls import AUTHORIZER, allow, allow_only, create_topics, revoke_all
from tests.support.server import (
    TestBroker,
    batch,
    fetch_request,
    fetch_topic,
    produce_request,
    until,
)
from tests.support.wire_client import WireClient

pytestmark = pytest.mark.broker(**AUTHORIZER)

ALLOWED, DENIED = ErrorCode.NONE, ErrorCode.TOPIC_AUTHORIZATION_FAILED
CHANGES = 30


async def code_of_produce(client: WireClient, topic: str) -> int:
    answer = await client.ask(produce_request(topic, batch("x")), 12)
    [[partition]] = (each.partition_responses for each in answer.responses)
    return int(partition.error_code)


async def test_changed_acls_apply_to_the_next_request_of_an_open_connection(
    broker: TestBroker, client: WireClient
) -> None:
    await create_topics(broker, {"t": 1})

    for _ in range(CHANGES):
        assert DENIED == await code_of_produce(client, "t")
        await allow(broker, WRITE_TOPIC, "t")
        assert ALLOWED == await code_of_produce(client, "t")
        await allow(broker, WRITE_TOPIC, "t", deny=True)
        assert DENIED == await code_of_produce(client, "t")
        await revoke_all(broker)


async def test_acls_of_others_do_not_affect_clients(broker: TestBroker, client: WireClient) -> None:
    await create_topics(broker, {"t": 1})
    await allow_only(broker, [(WRITE_TOPIC, "t"), (READ_TOPIC, "t")])

    async def change() -> None:
        for number in range(10 * CHANGES):
            permission: Permission = (READ_TOPIC, WRITE_TOPIC)[number % 2]
            await allow(broker, permission, f"other-{number}", principal="User:another")

    changes = asyncio.create_task(change())
    served = 0
    async with await broker.client() as consumer:
        while not changes.done():
            assert ALLOWED == await code_of_produce(client, "t")
            answer = await consumer.ask(fetch_request(fetch_topic("t", {0: served})), 12)
            [[partition]] = (each.partitions for each in answer.responses)
            assert (ALLOWED, True) == (partition.error_code, len(partition.records) > 0)
            served += 1
    await changes

    assert served > CHANGES


async def test_decisions_about_clients_that_have_left_take_no_memory(
    broker: TestBroker, client: WireClient
) -> None:
    """
    Each keeps a page of the memory in which the requests were.
    """
    authorizer = broker.inside.authorizer
    connections, clock = broker.connections, broker.clock
    assert authorizer is not None
    assert connections is not None
    assert isinstance(clock, ManualClock)
    await code_of_produce(client, "t")
    assert authorizer.decisions

    for _ in range(CROWD):
        await (await broker.client()).close()
    await until(lambda: len(connections) == 1)
    clock.advance(1)

    assert not authorizer.decisions
