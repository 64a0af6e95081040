"""
Groups in a whole broker: over its socket, across restarts, with topics that come and go.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from typing import Any

import pytest

from barnabas.protocol.codec.schema import ZERO_UUID
from barnabas.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from barnabas.protocol.messages.find_coordinator import FindCoordinatorRequest
from barnabas.protocol.messages.heartbeat import HeartbeatRequest
from barnabas.protocol.messages.list_groups import ListGroupsRequest
from barnabas.server.clock import EventLoopClock
from barnabas.server.coordinator_runtime.shards import Shards
from barnabas.server.partitions.partition import Partition
from barnabas.testing.disks.memory import MemoryFiles
from barnabas.testing.manual_clock import ManualClock
from tests.support.group_requests import (
    commit_request,
    committed_request,
    coordinator_request,
    join_request,
    sync_request,
)
from tests.support.server import PATIENCE, START_MS, TestBroker, running
from tests.support.some import some
from tests.support.wire_client import WireClient

GROUP = "group"
SMALL = {"offsets_topic_num_partitions": "3"}
AT_ONCE = {**SMALL, "group_initial_rebalance_delay_ms": "0"}


async def find_coordinator(client: WireClient) -> None:
    answer = await client.ask(coordinator_request(GROUP), 4)
    assert 0 == answer.coordinators[0].error_code


async def committed(client: WireClient, group_id: str = GROUP) -> int:
    answer = await client.ask(committed_request(group_id, "t", 0), 8)
    assert 0 == answer.groups[0].error_code
    offset: int = answer.groups[0].topics[0].partitions[0].committed_offset
    return offset


async def commit(client: WireClient, offset: int = 5, group_id: str = GROUP) -> int:
    answer = await client.ask(commit_request(group_id, "t", {0: offset}), 8)
    code: int = answer.topics[0].partitions[0].error_code
    return code


async def stable_member(client: WireClient) -> str:
    required = await client.ask(join_request(GROUP), 4)
    joined = await client.ask(join_request(GROUP, required.member_id), 4)
    assert (0, 1) == (joined.error_code, joined.generation_id)
    assert 0 == (await client.ask(sync_request(GROUP, joined.member_id), 3)).error_code
    member_id: str = joined.member_id
    return member_id


async def until(client: WireClient, **expected: Any) -> None:
    """
    Ask for the list of groups until it is there, and the one group is as expected.
    """
    wanted, found = {name: {value} for name, value in expected.items()}, None
    try:
        async with asyncio.timeout(PATIENCE):
            while found != wanted:
                answer = await client.ask(ListGroupsRequest(), 4)
                if answer.error_code == 0:
                    found = {name: {getattr(g, name) for g in answer.groups} for name in expected}
    except TimeoutError:
        raise AssertionError(f"there is no such group: {expected}, but {found}") from None


async def loaded(broker: TestBroker) -> WireClient:
    client = await broker.client()
    await until(client)
    return client


async def delete_topic(client: WireClient, name: str) -> None:
    topic = DeleteTopicState(name=name, topic_id=ZERO_UUID)
    answer = await client.ask(DeleteTopicsRequest(topics=[topic], timeout_ms=10_000), 6)
    assert 0 == answer.responses[0].error_code


@pytest.mark.parametrize("kind", [0, 1])
async def test_new_coordinator_topic_is_loaded_once(
    kind: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A new coordinator looks at the topic itself and is not notified as well.
    led: list[int] = []
    lead = Shards.lead

    def counted(self: Shards[Any], partitions: Sequence[Partition], partition_count: int) -> None:
        led.append(len(partitions))
        lead(self, partitions, partition_count)

    monkeypatch.setattr(Shards, "lead", counted)
    sizes = SMALL | {"transaction_state_log_num_partitions": "3"}

    async with running(None, EventLoopClock(), **sizes) as broker, await broker.client() as client:
        await client.ask(FindCoordinatorRequest(key_type=kind, coordinator_keys=["any"]), 4)

        assert [3] == [size for size in led if size]


async def test_group_survives_a_broker_restart() -> None:
    files = MemoryFiles()
    async with running(files, EventLoopClock(), **SMALL) as broker, await broker.client() as client:
        await broker.create("t")
        await find_coordinator(client)
        member_id = await stable_member(client)
        await commit(client, group_id="simple")

    async with running(files, EventLoopClock(), **SMALL) as broker, await loaded(broker) as client:
        heartbeat = HeartbeatRequest(group_id=GROUP, generation_id=1, member_id=member_id)
        assert 0 == (await client.ask(heartbeat, 3)).error_code
        synced = await client.ask(sync_request(GROUP, member_id), 3)
        assert (0, b"mine") == (synced.error_code, synced.assignment)
        assert 5 == await committed(client, group_id="simple")


async def test_first_find_coordinator_requests_wait_for_a_loaded_coordinator() -> None:
    async with (
        running(None, EventLoopClock(), **SMALL) as broker,
        contextlib.AsyncExitStack() as open_,
    ):
        await broker.create("t")
        clients = [await open_.enter_async_context(await broker.client()) for _ in range(8)]

        async def ask(client: WireClient, pauses: int) -> int:
            for _ in range(pauses):
                await asyncio.sleep(0)
            await find_coordinator(client)
            return await committed(client)

        answers = await asyncio.gather(*map(ask, clients, range(0, 80, 10)))

    assert [-1] * 8 == answers


async def test_heartbeats_are_answered_while_a_join_waits() -> None:
    files, clock = MemoryFiles(), ManualClock(START_MS)
    options = SMALL | {"group_initial_rebalance_delay_ms": "1"}
    async with running(files, clock, **options) as broker:
        await broker.create("t")
        async with await broker.client() as client, await broker.client() as other:
            await find_coordinator(client)
            required = await client.ask(join_request(GROUP), 4)
            client.send(join_request(GROUP, required.member_id), version=4)
            await until(other, group_state="PreparingRebalance")
            await clock.pass_time(0.001)
            assert 1 == (await client.receive()).generation_id
            assert 0 == (await client.ask(sync_request(GROUP, required.member_id), 3)).error_code

            second = (await other.ask(join_request(GROUP), 4)).member_id
            other.send(join_request(GROUP, second), version=4)
            await until(client, group_state="PreparingRebalance")
            heartbeat = HeartbeatRequest(
                group_id=GROUP, generation_id=1, member_id=required.member_id
            )
            assert 27 == (await client.ask(heartbeat, 3)).error_code
            await other.close()

            answer = await client.ask(join_request(GROUP, required.member_id), 4)
            assert {required.member_id, second} == {m.member_id for m in answer.members}


async def test_deleting_a_topic_deletes_its_committed_offsets() -> None:
    files, groups = MemoryFiles(), [f"group-{number}" for number in range(10)]
    async with running(files, EventLoopClock(), **SMALL) as broker, await broker.client() as client:
        await broker.create("t")
        await find_coordinator(client)
        for group_id in groups:
            assert 0 == await commit(client, group_id=group_id)

        await delete_topic(client, "t")
        await broker.create("t")

        assert {-1} == {await committed(client, group_id=group_id) for group_id in groups}

    async with running(files, EventLoopClock(), **SMALL) as broker, await loaded(broker) as client:
        assert {-1} == {await committed(client, group_id=group_id) for group_id in groups}


async def test_offsets_deleted_with_a_topic_may_take_several_batches() -> None:
    # The tombstones exceed ``max.message.bytes``; as in Kafka they are not atomic.
    one = {"offsets_topic_num_partitions": "1"}
    groups = [f"{number}{'x' * 8000}" for number in range(180)]
    async with running(None, EventLoopClock(), **one) as broker, await broker.client() as client:
        await broker.create("t")
        await find_coordinator(client)
        for group_id in some(groups):
            assert 0 == await commit(client, group_id=group_id)

        await delete_topic(client, "t")

        assert {-1} == {await committed(client, group_id=group_id) for group_id in groups}


async def test_offsets_topic_is_created_on_demand_and_again_after_deletion() -> None:
    async with running(None, EventLoopClock(), **SMALL) as broker, await broker.client() as client:
        await broker.create("t")
        assert 16 == await commit(client)

        await find_coordinator(client)
        assert 0 == await commit(client)

        await delete_topic(client, "__consumer_offsets")
        assert 16 == await commit(client)

        await find_coordinator(client)
        assert -1 == await committed(client)
        assert 0 == await commit(client)


@pytest.mark.parametrize("partitions", [1, 7])
async def test_existing_offsets_topic_determines_the_number_of_partitions(partitions: int) -> None:
    files = MemoryFiles()
    options = {"offsets_topic_num_partitions": str(partitions)}
    async with (
        running(files, EventLoopClock(), **options) as broker,
        await broker.client() as client,
    ):
        await broker.create("t")
        await find_coordinator(client)
        for number in range(10):
            assert 0 == await commit(client, offset=number, group_id=f"group-{number}")

    async with running(files, EventLoopClock(), **SMALL) as broker, await loaded(broker) as client:
        assert list(range(10)) == [
            await committed(client, group_id=f"group-{number}") for number in range(10)
        ]


async def test_waiting_join_is_answered_when_the_broker_stops() -> None:
    options = SMALL | {"group_initial_rebalance_delay_ms": "60000"}
    async with running(None, EventLoopClock(), **options) as broker:
        await broker.create("t")
        async with await broker.client() as client, await broker.client() as other:
            await find_coordinator(client)
            required = await client.ask(join_request(GROUP), 4)
            client.send(join_request(GROUP, required.member_id), version=4)
            await until(other, group_state="PreparingRebalance")

            await broker.stop()

            assert 16 == (await client.receive()).error_code


class LateClock(EventLoopClock):
    """
    A clock whose alarms ring late: the loop has been busy for so many seconds.
    """

    late = 0.0

    def monotonic(self) -> float:
        return super().monotonic() + self.late


async def test_due_timeouts_run_before_later_requests() -> None:
    # The session ends while the loop is busy, and its alarm has not fired yet.
    clock = LateClock()
    async with running(MemoryFiles(), clock, **AT_ONCE) as broker, await broker.client() as client:
        await find_coordinator(client)
        await stable_member(client)
        before = (await client.ask(ListGroupsRequest(), 4)).groups[0].group_state

        clock.late = 10.1
        after = (await client.ask(ListGroupsRequest(), 4)).groups[0].group_state

        assert ("Stable", "Empty") == (before, after)
