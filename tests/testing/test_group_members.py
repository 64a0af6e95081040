from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator

import pytest

from barnabas.protocol.codec.codec import encode
from barnabas.protocol.consumer_protocol import ConsumerProtocolAssignment, TopicPartition
from barnabas.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from barnabas.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from barnabas.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from barnabas.server.http.pages import Page
from barnabas.testing import Broker, Group
from barnabas.testing.control import groups as control
from barnabas.testing.control.control import Control
from tests.support.group_requests import coordinator_request, join_request
from tests.support.share_client import ShareClient
from tests.support.streams_programs import first_heartbeat, part, topology
from tests.support.wire_client import WireClient

TOPIC = "orders"
BOTH = ((TOPIC, 0), (TOPIC, 1))
SHARE_MEMBER = "A" * 22


@pytest.fixture
def broker() -> Iterator[Broker]:
    config = {"group.streams.initial.rebalance.delay.ms": 0}
    with Broker(topics={TOPIC: 2, "audit": 1}, config=config) as broker:
        broker.topic(TOPIC).append(["a", "b", "c"])
        yield broker


async def join_classic(client: WireClient) -> None:
    answer = await client.ask(join_request("g"), 3)
    assigned = ConsumerProtocolAssignment(
        assigned_partitions=[TopicPartition(topic=TOPIC, partitions=[0, 1])]
    )
    content = b"\0\0" + bytes(encode(assigned, 0))
    given = SyncGroupRequestAssignment(member_id=answer.member_id, assignment=content)
    sync = SyncGroupRequest(
        group_id="g",
        generation_id=answer.generation_id,
        member_id=answer.member_id,
        assignments=[given],
    )
    assert 0 == (await client.ask(sync, 3)).error_code


async def join_consumer(client: WireClient) -> None:
    request = ConsumerGroupHeartbeatRequest(
        group_id="g",
        member_id="m",
        member_epoch=0,
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=[TOPIC],
        topic_partitions=[],
    )
    await beat(client, request, 1)


async def beat(
    client: WireClient,
    request: ConsumerGroupHeartbeatRequest | ShareGroupHeartbeatRequest,
    version: int,
) -> None:
    """
    Send heartbeats until one of them assigns something.
    """
    for _ in range(100):
        answer = await client.ask(request, version)
        assert 0 == answer.error_code
        if answer.assignment is not None and answer.assignment.topic_partitions:
            return
        await asyncio.sleep(0.05)
    raise AssertionError("nothing is assigned")


async def join_share(client: WireClient) -> None:
    request = ShareGroupHeartbeatRequest(
        group_id="g", member_id=SHARE_MEMBER, member_epoch=0, subscribed_topic_names=[TOPIC]
    )
    await beat(client, request, 1)


async def join_streams(client: WireClient) -> None:
    program = topology(part("0", [TOPIC, "audit"]))
    for _ in range(100):
        answer = await client.ask(first_heartbeat("g", program), 0)
        assert 0 == answer.error_code
        if answer.active_tasks:
            return
        await asyncio.sleep(0.05)
    raise AssertionError("no task is assigned")


def join(broker: Broker, how: Callable[[WireClient], Awaitable[None]]) -> Group:
    """
    Let a client with the id *app* join the group *g*, and look at the group.
    """

    async def joined() -> Group:
        async with await WireClient.open(broker.port, client_id="app") as client:
            assert 0 == (await client.ask(coordinator_request("g"), 6)).coordinators[0].error_code
            await how(client)
            return await asyncio.to_thread(lambda: broker.groups["g"])

    return asyncio.run(joined())


@pytest.mark.parametrize("how", [join_classic, join_consumer, join_share, join_streams])
def test_groups_of_all_types_have_members_with_partitions(
    broker: Broker, how: Callable[[WireClient], Awaitable[None]]
) -> None:
    group = join(broker, how)

    (member,) = group.members
    expected = {*BOTH, ("audit", 0)} if how is join_streams else {*BOTH}
    assert expected == set(member.partitions)
    assert len(expected) == len(member.partitions)
    assert ("app", "127.0.0.1") == (member.client_id, member.host.lstrip("/"))
    assert member.id
    assert "g: Stable, 1 member" in broker.summary()


@pytest.mark.parametrize("how", [join_classic, join_consumer, join_share, join_streams])
def test_control_lists_the_members_of_groups_of_all_types(
    broker: Broker, how: Callable[[WireClient], Awaitable[None]]
) -> None:
    join(broker, how)
    (group,) = control.list_groups(Control(broker, None), Page()).content["groups"]

    (member,) = group["members"]
    partitions = [(each["topic"], each["partition"]) for each in member["partitions"]]
    assert {*BOTH} <= set(partitions)


def test_streams_tasks_have_partitions_after_a_restart_before_any_heartbeat(
    broker: Broker,
) -> None:
    join(broker, join_streams)
    broker.restart()

    (member,) = broker.groups["g"].members
    assert {*BOTH, ("audit", 0)} == set(member.partitions)


def test_share_group_has_the_offsets_of_its_state(broker: Broker) -> None:
    async def initialized() -> None:
        share = await ShareClient.of(broker.port, TOPIC, 2)
        try:
            assert 0 == (await share.find_coordinator("g")).error_code
            await share.client.ask(coordinator_request("g"), 6)
            await join_share(share.client)
            await asyncio.sleep(0.2)
            assert 0 == (await share.initialize("g", 1, state_epoch=9)).error_code
        finally:
            await share.close()

    asyncio.run(initialized())
    group = broker.groups["g"]
    assert 1 == group.committed(TOPIC, 0)
    assert 1 == group.lags[TOPIC, 0]
