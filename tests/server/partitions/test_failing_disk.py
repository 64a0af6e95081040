"""
One disk of two fails in the middle of a deletion, a fetch, a commit: what is healthy serves on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest

from barnabas.coordination.cluster.topic_names import GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC
from barnabas.coordination.coordinator_runtime.partitioning import partition_of
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.delete_topics import DeleteTopicsRequest
from barnabas.protocol.messages.describe_groups import DescribeGroupsRequest
from barnabas.protocol.messages.join_group import JoinGroupResponse
from barnabas.protocol.messages.metadata import MetadataRequest
from barnabas.server.clock import EventLoopClock
from barnabas.server.coordinators import CoordinatorType
from barnabas.testing.disks.failing import FailingFiles
from barnabas.testing.manual_clock import ManualClock
from tests.support.group_requests import (
    commit_request,
    committed_request,
    coordinator_request,
    join_request,
    sync_request,
)
from tests.support.server import (
    DATA,
    START_MS,
    TestBroker,
    batch,
    fetch_request,
    fetch_topic,
    produce_request,
    running,
    until,
)
from tests.support.some import some
from tests.support.transactional_client import ID, SECOND, TOPIC, Client
from tests.support.wire_client import Disconnected, WireClient

OTHER = Path("/other")
TOPICS = [f"t{number}" for number in range(6)]
ONE = batch("x" * 80)
METADATA = "__cluster_metadata-0"
DELAY_MS = 60_000


async def names(client: WireClient) -> set[str]:
    answer = await client.ask(MetadataRequest(topics=None), 9)
    return {topic.name for topic in answer.topics}


async def serves(client: WireClient, topic: str, index: int = 0) -> bool:
    produced = await client.ask(produce_request(topic, ONE, partition=index), 9)
    if produced.responses[0].partition_responses[0].error_code != ErrorCode.NONE:
        return False
    fetched = await client.ask(fetch_request(fetch_topic(topic, {index: 0})), 11)
    return len(fetched.responses[0].partitions[0].records) >= len(ONE)


async def delete(client: WireClient, topics: list[str]) -> set[int]:
    answer = await client.ask(DeleteTopicsRequest(topic_names=topics, timeout_ms=10_000), 5)
    return {response.error_code for response in answer.responses}


def places(broker: TestBroker, parent: Path) -> set[str]:
    """
    The topics whose logs lie in *parent*.
    """
    manager = broker.log_manager
    assert manager is not None
    return {
        partition.topic for partition, log in manager.logs().items() if log.parent_dir == parent
    }


@pytest.mark.parametrize("forever", [True, False])
@pytest.mark.parametrize("at", [0, 1, 2])
@pytest.mark.parametrize("action", ["rename", "sync directory"])
async def test_log_that_cannot_be_deleted_does_not_affect_the_others(
    action: str, at: int, forever: bool
) -> None:
    files = FailingFiles()
    async with running(files, log_dirs=f"{DATA},{OTHER}") as broker:
        for topic in [*TOPICS, "kept"]:
            await broker.create(topic)
        if "kept" in places(broker, OTHER):
            await broker.create("kept-too")
        healthy = (places(broker, DATA) - set(TOPICS)).pop()
        assert 3 == len(places(broker, OTHER) & set(TOPICS))
        async with await broker.client() as client:
            files.fail(at, only=frozenset({action}), under=OTHER, forever=forever)

            assert {ErrorCode.NONE} == await delete(client, TOPICS)

            await until(lambda: not places(broker, OTHER))
            assert {healthy} == places(broker, DATA)
            assert set(TOPICS).isdisjoint(await names(client))
            assert await serves(client, healthy)
            await broker.create("t0")
            assert await serves(client, "t0")
            assert {ErrorCode.NONE} == await delete(client, ["t0"])


async def test_deleted_log_that_cannot_be_removed_does_not_affect_the_others() -> None:
    # The files are deleted after ``file.delete.delay.ms``.
    files, clock = FailingFiles(), ManualClock(START_MS)
    async with running(
        files, clock, log_dirs=f"{DATA},{OTHER}", log_segment_delete_delay_ms=str(DELAY_MS)
    ) as broker:
        for topic in [*TOPICS, "kept", "kept-too"]:
            await broker.create(topic)
        healthy = (places(broker, DATA) - set(TOPICS)).pop()
        async with await broker.client() as client:
            assert {ErrorCode.NONE} == await delete(client, TOPICS)
            assert 3 == sum(name.endswith("-delete") for name in files.names(DATA))
            files.fail(only=frozenset({"remove"}), under=OTHER, forever=True)

            await clock.pass_time(DELAY_MS / 1000 + 1)

            await until(lambda: not [n for n in files.names(DATA) if n.endswith("-delete")])
            assert await serves(client, healthy)


async def test_broker_that_stops_on_a_failed_disk_closes_the_files_of_the_metadata_log() -> None:
    files = FailingFiles()
    async with running(files) as broker:
        await broker.fail_directories()

    assert [] == [file.path for file in files.in_use if METADATA in file.path.parts]


async def test_fetch_from_two_disks_returns_the_healthy_partitions() -> None:
    # The first response promises the bytes of both disks, so a failed read ends its connection.
    files = FailingFiles()
    async with running(files, log_dirs=f"{DATA},{OTHER}") as broker:
        await broker.create("orders", partitions=4)
        lost = indexes(broker, "orders", OTHER)
        async with await broker.client() as client:
            for index in range(4):
                await client.ask(produce_request("orders", ONE, partition=index), 9)
            files.fail(only=frozenset({"read"}), under=OTHER, forever=True)
            for _ in lost:
                async with await broker.client() as unlucky:
                    with pytest.raises(Disconnected):
                        await fetch_all(unlucky)

            for _ in range(2):
                assert {
                    index: ErrorCode.KAFKA_STORAGE_ERROR if index in lost else len(ONE)
                    for index in range(4)
                } == await fetch_all(client)
            files.heal()
            assert dict.fromkeys(range(4), len(ONE)) == await fetch_all(client)


async def fetch_all(client: WireClient) -> dict[int, int]:
    """
    How many bytes each partition has, or its error.
    """
    request = fetch_request(fetch_topic("orders", dict.fromkeys(range(4), 0)))
    answer = await client.ask(request, 11)
    return {
        partition.partition_index: partition.error_code or len(partition.records or b"")
        for partition in answer.responses[0].partitions
    }


TWO_DISKS = {
    "log_dirs": f"{DATA},{OTHER}",
    "offsets_topic_num_partitions": "4",
    "transaction_state_log_num_partitions": "4",
    "group_initial_rebalance_delay_ms": "0",
}


def indexes(broker: TestBroker, topic: str, parent: Path) -> set[int]:
    """
    The partitions of *topic* whose logs lie in *parent*.
    """
    manager = broker.log_manager
    assert manager is not None
    return {
        partition.partition
        for partition, log in manager.logs().items()
        if partition.topic == topic and log.parent_dir == parent
    }


def names_in(partitions: set[int]) -> Iterator[str]:
    """
    Groups, or transactional ids, that belong to *partitions*, of four.
    """
    return (name for name in map(str, range(99)) if partition_of(name, 4) in partitions)


async def find(client: WireClient, name: str, key_type: int = CoordinatorType.GROUP) -> int:
    answer = await client.ask(coordinator_request(name, key_type=key_type), 4)
    code: int = answer.coordinators[0].error_code
    return code


async def join(client: WireClient, group: str) -> JoinGroupResponse:
    return cast(JoinGroupResponse, await client.ask(join_request(group), 3))


async def commit(client: WireClient, group: str) -> int:
    answer = await client.ask(commit_request(group, "orders", {0: 5}), 8)
    code: int = answer.topics[0].partitions[0].error_code
    return code


async def committed(client: WireClient, group: str) -> tuple[int, int]:
    while True:
        (answer,) = (await client.ask(committed_request(group, "orders", 0), 8)).groups
        if answer.error_code != ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            break
    if answer.error_code:
        return answer.error_code, -1
    return 0, answer.topics[0].partitions[0].committed_offset


async def test_only_groups_on_the_failed_disk_lose_their_coordinator() -> None:
    files = FailingFiles()
    async with running(files, EventLoopClock(), **TWO_DISKS) as broker:
        await broker.create("orders")
        async with await broker.client() as client, await broker.client() as member:
            assert ErrorCode.NONE == await find(client, "g")
            on_lost = indexes(broker, GROUP_METADATA_TOPIC, OTHER)
            assert 0 < len(on_lost) < 4
            lost, waiting, *_ = names_in(on_lost)
            kept = list(names_in({0, 1, 2, 3} - on_lost))[:8]
            for group in (lost, *kept):
                assert ErrorCode.NONE == await commit(client, group)
            first = await join(client, waiting)
            await client.ask(sync_request(waiting, first.member_id, first.generation_id), 3)
            second = asyncio.create_task(join(member, waiting))
            while await state(client, waiting) != "PreparingRebalance":
                pass

            files.fail(only=frozenset({"write"}), under=OTHER, forever=True)

            assert ErrorCode.NOT_COORDINATOR == await commit(client, lost)
            assert ErrorCode.NOT_COORDINATOR == (await second).error_code
            assert ErrorCode.NOT_COORDINATOR == await commit(client, lost)
            while await find(client, lost) == ErrorCode.NONE:
                pass
            assert ErrorCode.COORDINATOR_NOT_AVAILABLE == await find(client, lost)
            for group in some(kept):
                assert ErrorCode.NONE == await find(client, group)
                assert ErrorCode.NONE == await commit(client, group)

    async with (
        running(files, EventLoopClock(), **TWO_DISKS) as broker,
        await broker.client() as client,
    ):
        assert ErrorCode.COORDINATOR_NOT_AVAILABLE == await find(client, lost)
        assert (ErrorCode.NOT_COORDINATOR, -1) == await committed(client, lost)
        for group in some(kept):
            assert (ErrorCode.NONE, 5) == await committed(client, group)

    files.heal()
    async with (
        running(files, EventLoopClock(), **TWO_DISKS) as broker,
        await broker.client() as client,
    ):
        for group in (lost, *kept):
            assert (ErrorCode.NONE, 5) == await committed(client, group)


async def state(client: WireClient, group: str) -> str:
    (found,) = (await client.ask(DescribeGroupsRequest(groups=[group]), 5)).groups
    name: str = found.group_state
    return name


async def test_transaction_over_two_disks_completes_after_the_disk_is_repaired(
    caplog: pytest.LogCaptureFixture,
) -> None:
    # Until then the markers are retried, and the failure is logged once.
    files, clock = FailingFiles(), ManualClock(START_MS)
    options = TWO_DISKS | {"transaction_state_log_num_partitions": "1"}
    async with running(files, clock, **options) as broker:
        await broker.create(TOPIC, partitions=2)
        lost, kept = indexes(broker, TOPIC, OTHER), indexes(broker, TOPIC, DATA)
        assert 1 == len(lost) == len(kept)
        async with await broker.client() as wire:
            assert ErrorCode.NONE == await find(wire, ID, CoordinatorType.TRANSACTION)
            assert {0} == indexes(broker, TRANSACTION_STATE_TOPIC, DATA)
            client = Client(wire, SECOND)
            await client.init()
            for index in (*lost, *kept):
                assert ErrorCode.NONE == await client.produce("x", index)

            files.fail(only=frozenset({"write"}), under=OTHER, forever=True)

            assert ErrorCode.NONE == await client.end(commit=True)
            assert (["x"], []) == await client.read(*kept)
            await clock.pass_time(30)
            assert "PrepareCommit" == await client.state()
            assert await serves(wire, TOPIC, *kept)
    said = [record for record in caplog.records if "marker" in record.getMessage()]
    assert 1 == len(said)

    files.heal()
    async with running(files, clock, **options) as broker, await broker.client() as wire:
        client = Client(wire, SECOND)
        await client.wait_for("CompleteCommit")
        assert (["x"], []) == await client.read(*lost)
