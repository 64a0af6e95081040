"""
Topics that are deleted while a disk fails: what is healthy is deleted, and serves on.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.delete_topics import DeleteTopicsRequest
from barnabas.protocol.messages.metadata import MetadataRequest
from barnabas.server.clock import ManualClock
from tests.support.disk import FailingFiles
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
from tests.support.wire_client import WireClient

OTHER = Path("/other")
TOPICS = [f"t{number}" for number in range(6)]
ONE = batch("x" * 80)
DELAY_MS = 60_000


async def names(client: WireClient) -> set[str]:
    answer = await client.ask(MetadataRequest(topics=None), 9)
    return {topic.name for topic in answer.topics}


async def serves(client: WireClient, topic: str) -> bool:
    """
    Whether a batch can be appended to *topic* and read from it.
    """
    produced = await client.ask(produce_request(topic, ONE), 9)
    if produced.responses[0].partition_responses[0].error_code != ErrorCode.NONE:
        return False
    fetched = await client.ask(fetch_request(fetch_topic(topic, {0: 0})), 11)
    return len(fetched.responses[0].partitions[0].records) >= len(ONE)


async def delete(client: WireClient, topics: list[str]) -> set[int]:
    answer = await client.ask(DeleteTopicsRequest(topic_names=topics, timeout_ms=10_000), 5)
    return {response.error_code for response in answer.responses}


def places(broker: TestBroker, parent: Path) -> set[str]:
    """
    The topics whose logs lie in *parent*.
    """
    manager = broker._log_manager
    assert manager is not None
    return {
        partition.topic for partition, log in manager.logs().items() if log.parent_dir == parent
    }


@pytest.mark.parametrize("forever", [True, False])
@pytest.mark.parametrize("at", [0, 1, 2])
@pytest.mark.parametrize("action", ["rename", "sync directory"])
async def test_a_log_that_cannot_be_deleted_leaves_the_others_alone(
    action: str, at: int, forever: bool
) -> None:
    """
    Of seven topics on two disks six are deleted, and a disk fails meanwhile. All six are gone, no
    log of theirs is left on the healthy disk, and what lies there serves on.
    """
    files = FailingFiles()
    async with running(files, ManualClock(START_MS), log_dirs=f"{DATA},{OTHER}") as broker:
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


async def test_a_deleted_log_that_cannot_be_removed_leaves_the_others_alone() -> None:
    """
    The files go after ``file.delete.delay.ms``. Where that fails, those on the other disk go
    all the same.
    """
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
