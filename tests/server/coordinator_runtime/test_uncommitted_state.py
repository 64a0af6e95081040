"""
No answer tells state of a coordinator that a crash may take back.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import pytest

from barnabas.protocol.codec.schema import Message
from barnabas.server import handlers
from barnabas.server.clock import EventLoopClock
from barnabas.storage.log.log import Log
from barnabas.testing.disks.memory import MemoryFiles
from tests.support.build import api_request
from tests.support.group_requests import (
    commit_request,
    committed_request,
    coordinator_request,
    heartbeat_request,
)
from tests.support.server import TestBroker, running
from tests.support.wire_client import WireClient

GROUP: Final = "group"
OPTIONS: Final = {
    "log_flush_interval_messages": "1",
    "offsets_topic_num_partitions": "1",
    "transaction_state_log_num_partitions": "1",
    "share_coordinator_state_topic_num_partitions": "1",
}
COORDINATOR_TOPICS: Final = ("__consumer_offsets", "__transaction_state", "__share_group_state")
READ: Final[dict[str, Any]] = {"group_ids": [GROUP], "include_authorized_operations": False}
PATTERN: Final[dict[str, Any]] = {"transactional_id_pattern": ".*"}


class SlowSync:
    """
    Holds the fsyncs of internal topics back until ``end``.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._gate = threading.Event()
        self._gate.set()
        flush = Log.flush

        def held(log: Log, *args: Any, **options: Any) -> None:
            if log.topic_partition.topic in COORDINATOR_TOPICS:
                self._gate.wait(timeout=5)  # a test that fails does not hang
            flush(log, *args, **options)

        monkeypatch.setattr(Log, "flush", held)
        self.begin, self.end = self._gate.clear, self._gate.set


@pytest.fixture
def sync(monkeypatch: pytest.MonkeyPatch) -> Iterator[SlowSync]:
    slow = SlowSync(monkeypatch)
    yield slow
    slow.end()


@asynccontextmanager
async def broker_with_group() -> AsyncIterator[tuple[TestBroker, WireClient, WireClient]]:
    async with (
        running(MemoryFiles(), EventLoopClock(), **OPTIONS) as broker,
        await broker.client() as writer,
        await broker.client() as reader,
    ):
        await broker.create("t")
        for key_type in (0, 1):
            await writer.ask(coordinator_request(GROUP, key_type=key_type), 4)
        answer = await writer.ask(commit_request(GROUP, "t", {0: 10}), 8)
        assert 0 == answer.topics[0].partitions[0].error_code
        yield broker, writer, reader


async def waits(reader: WireClient, request: Message, version: int) -> asyncio.Task[Any]:
    """
    The answer to *request*, which is not there while the fsync takes.
    """
    answer = asyncio.ensure_future(reader.ask(request, version))
    done, _ = await asyncio.wait({answer}, timeout=0.05)
    assert not done, f"{request} is answered with state that a crash may take back"
    return answer


GROUP_READS: Final[list[tuple[Message, int]]] = [
    (committed_request(GROUP, "t", 0), 8),
    (api_request("describe_groups", groups=[GROUP], include_authorized_operations=False), 5),
    (api_request("list_groups", states_filter=[], types_filter=[]), 5),
    (api_request("consumer_group_describe", **READ), 1),
    (api_request("share_group_describe", **READ), 1),
    (api_request("streams_group_describe", **READ), 0),
    (heartbeat_request(GROUP, "m"), 4),
    (
        api_request("describe_share_group_offsets", groups=[{"group_id": GROUP, "topics": None}]),
        1,
    ),
]


@pytest.mark.parametrize(("request_", "version"), GROUP_READS, ids=lambda each: type(each).__name__)
async def test_a_read_of_a_group_waits_for_a_commit_of_offsets(
    sync: SlowSync, request_: Message, version: int
) -> None:
    async with broker_with_group() as (_, writer, reader):
        await reader.ask(request_, version)  # the first one imports its handler
        sync.begin()
        writer.send(commit_request(GROUP, "t", {0: 99}), version=8)
        await asyncio.sleep(0.02)

        answer = await waits(reader, request_, version)

        sync.end()
        assert await answer is not None
        assert await writer.receive()


async def test_offsets_are_fetched_as_they_are_on_the_disk(sync: SlowSync) -> None:
    async with broker_with_group() as (_, writer, reader):
        sync.begin()
        writer.send(commit_request(GROUP, "t", {0: 99}), version=8)
        await asyncio.sleep(0.02)

        answer = await waits(reader, *GROUP_READS[0])

        sync.end()
        (group,) = (await answer).groups
        assert 99 == group.topics[0].partitions[0].committed_offset


async def test_a_heartbeat_that_changes_nothing_waits_for_what_it_tells(sync: SlowSync) -> None:
    heartbeat = api_request(
        "consumer_group_heartbeat",
        group_id="later",
        member_id="m",
        member_epoch=0,
        rebalance_timeout_ms=1000,
        subscribed_topic_names=["t"],
        topic_partitions=[],
    )
    async with broker_with_group() as (_, writer, reader):
        sync.begin()
        writer.send(heartbeat, version=1)
        await asyncio.sleep(0.02)

        answer = await waits(reader, heartbeat, 1)

        sync.end()
        assert 0 == (await answer).error_code
        assert 0 == (await writer.receive()).error_code


TRANSACTION_READS: Final[list[tuple[Message, int]]] = [
    (api_request("describe_transactions", transactional_ids=["id"]), 0),
    (api_request("list_transactions", state_filters=[], producer_id_filters=[]), 1),
    (api_request("list_transactions", state_filters=[], producer_id_filters=[], **PATTERN), 2),
]


@pytest.mark.parametrize(("request_", "version"), TRANSACTION_READS)
async def test_a_read_of_transactions_waits_for_a_new_producer(
    sync: SlowSync, request_: Message, version: int
) -> None:
    async with broker_with_group() as (_, writer, reader):
        made = api_request("init_producer_id", transactional_id="id", transaction_timeout_ms=60_000)
        sync.begin()
        writer.send(made, version=4)
        await asyncio.sleep(0.05)

        answer = await waits(reader, request_, version)

        sync.end()
        (state,) = (await answer).transaction_states
        assert "Empty" == state.transaction_state
        assert 0 == (await writer.receive()).error_code


async def test_a_read_of_a_share_state_waits_for_its_beginning(sync: SlowSync) -> None:
    async with broker_with_group() as (broker, writer, reader):
        topic_id, facts = await broker.topic_id("t"), {"state_epoch": 1, "start_offset": 0}
        begin = state_request("initialize_share_group_state", topic_id, **facts)
        assert 0 == (await writer.ask(begin, 0)).results[0].partitions[0].error_code
        sync.begin()
        writer.send(begin, version=0)
        await asyncio.sleep(0.02)
        summary = state_request("read_share_group_state_summary", topic_id, leader_epoch=-1)

        answer = await waits(reader, summary, 0)

        sync.end()
        assert 0 == (await answer).results[0].partitions[0].error_code
        assert await writer.receive()


def state_request(api: str, topic_id: UUID, **facts: int) -> Message:
    """
    A request about the state of the first partition of a topic.
    """
    topics = [{"topic_id": topic_id, "partitions": [{"partition": 0} | facts]}]
    return api_request(api, group_id=GROUP, topics=topics)


WAIT_FOR_THEIR_OWN: Final = frozenset(
    (
        *("add_offsets_to_txn", "add_partitions_to_txn", "end_txn", "init_producer_id"),
        *("alter_share_group_offsets", "delete_groups", "delete_share_group_offsets"),
        *("consumer_group_heartbeat", "share_group_heartbeat", "streams_group_heartbeat"),
        *("join_group", "leave_group", "sync_group", "offset_commit", "offset_delete"),
        *("txn_offset_commit", "share_group_state"),
    )
)
"""Handlers whose answers wait in the coordinators, for the records that they write."""
TELL_NOTHING: Final = frozenset({"find_coordinator"})
"""Handlers that ask a coordinator for no state."""


def test_every_handler_that_reads_a_coordinator_waits() -> None:
    # A new handler either writes, or has ``@reads``.
    missing = []
    for path in sorted(Path(handlers.__path__[0]).glob("*.py")):
        source = path.read_text()
        names = ("groups", "transactions", "shares", "coordinators")
        asks = any(f"broker.{name}" in source for name in names)
        if asks and "\n@reads(" not in source:
            missing.append(path.stem)

    assert sorted(WAIT_FOR_THEIR_OWN | TELL_NOTHING) == missing
