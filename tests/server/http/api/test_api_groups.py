from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest_asyncio

from barnabas.protocol.codec.codec import encode
from barnabas.protocol.consumer_protocol import ConsumerProtocolAssignment, TopicPartition
from barnabas.protocol.messages import (
    consumer_group_heartbeat,
    share_group_heartbeat,
)
from barnabas.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from tests.support.api_client import HTTP, ask
from tests.support.group_requests import commit_request, coordinator_request, join_request
from tests.support.server import TestBroker, batch, produce_request, running, until
from tests.support.share_client import ShareClient
from tests.support.streams_programs import first_heartbeat, part, topology
from tests.support.wire_client import WireClient

TOPIC = "orders"


@pytest_asyncio.fixture
async def broker() -> AsyncIterator[TestBroker]:
    options = {
        "group_initial_rebalance_delay_ms": "0",
        "group_streams_initial_rebalance_delay_ms": "0",
    }
    async with running(**HTTP, **options) as broker:
        await broker.create(TOPIC, 2)
        async with await broker.client() as client:
            for values, partition in ((("a", "b", "c"), 0), (("d",), 1)):
                data = produce_request(TOPIC, batch(*values), partition=partition)
                await client.ask(data, 9)
            answer = await client.ask(coordinator_request("any"), 6)
            assert 0 == answer.coordinators[0].error_code
        yield broker


async def commit(broker: TestBroker, group: str, **facts: Any) -> None:
    async with await broker.client() as client:
        answer = await client.ask(commit_request(group, TOPIC, {0: 1, 1: 1}, **facts), 7)
        assert [0, 0] == [each.error_code for each in answer.topics[0].partitions]


async def test_simple_group_is_shown_with_its_lag(broker: TestBroker) -> None:
    for name in ("plain", "..", "a/b?c=d&e", "\u00e9\u2603", ""):
        await commit(broker, name, metadata="noted")
        said = await ask(broker, "/group", id=name)

        assert (name, "classic", "Empty", 2, 0) == (
            said["id"],
            said["type"],
            said["state"],
            said["lag"],
            said["member_count"],
        )
        first, second = said["offsets"]
        assert (TOPIC, 0, 1, 2, 3, None) == (
            first["topic"],
            first["partition"],
            first["offset"],
            first["lag"],
            first["high_watermark"],
            first["metadata"],
        )
        assert (1, 0, 0) == (second["partition"], second["lag"], second["lag_bytes"])
        assert 0 < first["lag_bytes"] == said["lag_bytes"]

    listed = await ask(broker, "/groups", limit=2)
    assert ["", ".."] == [each["id"] for each in listed["groups"]]
    assert [(2, 2)] * 2 == [(each["lag"], each["partitions"]) for each in listed["groups"]]
    assert (2, 5) == (listed["next"], listed["total"])
    assert 1 == (await ask(broker, "/groups", contains="/b"))["total"]


async def test_offsets_are_paged_while_the_lag_is_that_of_all(broker: TestBroker) -> None:
    await commit(broker, "g")
    said = await ask(broker, "/group", id="g", start=1)

    assert [1] == [each["partition"] for each in said["offsets"]]
    assert (2, 2, None) == (said["total"], said["lag"], said["next"])


async def test_group_positions_are_shown_at_the_partition(broker: TestBroker) -> None:
    await commit(broker, "g")
    said = await ask(broker, f"/topics/{TOPIC}/partitions/0")

    (position,) = said["groups"]
    assert ("g", "classic", 1, 2, None) == (
        position["group"],
        position["type"],
        position["offset"],
        position["lag"],
        position["forecast"],
    )


async def test_classic_group_is_shown_with_its_members(broker: TestBroker) -> None:
    async with await broker.client("app") as client:
        await join(client, "g")
        said = await ask(broker, "/group", id="g")

    (member,) = said["members"]
    assert ("Stable", "range", 1) == (said["state"], said["protocol"], said["epoch"])
    assert ("app", [{"topic": TOPIC, "partitions": [0, 1]}]) == (
        member["client_id"],
        member["partitions"],
    )


async def join(client: WireClient, group: str) -> None:
    answer = await client.ask(join_request(group), 3)
    assigned = ConsumerProtocolAssignment(
        assigned_partitions=[TopicPartition(topic=TOPIC, partitions=[0, 1])]
    )
    content = b"\0\0" + bytes(encode(assigned, 0))
    sync = SyncGroupRequest(
        group_id=group,
        generation_id=answer.generation_id,
        member_id=answer.member_id,
        assignments=[SyncGroupRequestAssignment(member_id=answer.member_id, assignment=content)],
    )
    assert 0 == (await client.ask(sync, 3)).error_code


async def test_consumer_group_is_shown_with_members_and_targets(broker: TestBroker) -> None:
    request = consumer_group_heartbeat.ConsumerGroupHeartbeatRequest(
        group_id="g",
        member_id="m",
        member_epoch=0,
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=[TOPIC],
        topic_partitions=[],
        rack_id="r",
    )
    async with await broker.client("app") as client:
        assert 0 == (await client.ask(request, 1)).error_code
        said = await ask(broker, "/group", id="g")

    (member,) = said["members"]
    assert ("consumer", "consumer", "uniform") == (
        said["type"],
        said["protocol_type"],
        said["protocol"] or "uniform",
    )
    assert ("m", "r", [TOPIC]) == (member["id"], member["rack"], member["topics"])
    assert [{"topic": TOPIC, "partitions": [0, 1]}] == member["target"]


async def test_share_group_is_shown_with_the_offsets_of_its_coordinator(broker: TestBroker) -> None:
    client = await ShareClient.of(broker.port, TOPIC)
    request = share_group_heartbeat.ShareGroupHeartbeatRequest(
        group_id="g", member_id="A" * 22, member_epoch=0, subscribed_topic_names=[TOPIC]
    )
    try:
        assert 0 == (await client.find_coordinator("g")).error_code
        assert 0 == (await client.client.ask(request, 1)).error_code
        await until(lambda: broker.inside and broker.inside.share_groups.initialized("g"))
        assert 0 == (await client.initialize("g", 1, state_epoch=9)).error_code
        said = await ask(broker, "/group", id="g")
        listed = await ask(broker, "/groups")
        timeline = await ask(broker, f"/topics/{TOPIC}/partitions/0")
    finally:
        await client.close()

    assert ("share", "Stable", 1) == (said["type"], said["state"], said["member_count"])
    assert [(0, 1, 2, None)] == [
        (each["partition"], each["offset"], each["lag"], each["committed_ms"])
        for each in said["offsets"]
    ]
    assert 2 == said["lag"] == listed["groups"][0]["lag"]
    assert [("g", "share")] == [(each["group"], each["type"]) for each in timeline["groups"]]


async def test_streams_group_is_shown_with_its_tasks(broker: TestBroker) -> None:
    request = first_heartbeat("program", topology(part("0", [TOPIC])))
    async with await broker.client("app") as client:
        assert 0 == (await client.ask(request, 0)).error_code
        said = await ask(broker, "/group", id="program")

    (member,) = said["members"]
    assert ("streams", [TOPIC]) == (said["type"], member["topics"])
    assert [{"subtopology": "0", "partitions": [0, 1]}] == member["tasks"]["active"]


async def test_viewing_groups_creates_no_coordinator() -> None:
    async with running(**HTTP) as broker:
        said = await ask(broker, "/groups")
        await ask(broker, "/transactions")
        await ask(broker, "/cluster")

        assert ([], 0) == (said["groups"], said["total"])
        assert not {"groups", "shares", "transactions"} & vars(broker.inside.coordinators).keys()
