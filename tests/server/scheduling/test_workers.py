"""
The threads for what blocks: what is slow in one pool holds up nothing in another.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.server.clock import EventLoopClock
from barnabas.testing.disks.memory import MemoryFiles
from tests.support.group_requests import commit_request, coordinator_request
from tests.support.limits import stated
from tests.support.server import (
    PATIENCE,
    TestBroker,
    batch,
    fetch_request,
    fetch_topic,
    produce_request,
    running,
    until,
)
from tests.support.some import some
from tests.support.wire_client import WireClient

ONE = batch("x" * 80)
COMMIT = commit_request("readers", "healthy", {0: 1})


class SlowFiles(MemoryFiles):
    """
    A file system where the page cache lacks one topic, whose disk answers no read until it may.
    """

    def __init__(self) -> None:
        super().__init__()
        self.may_read = threading.Event()
        self.waiting = 0
        self._lock = threading.Lock()
        self._loop = threading.current_thread()

    def step(self, action: str, path: Path, position: int = 0, data: bytes = b"") -> None:
        if (
            action == "read"
            and self.is_cold
            and path.parent.name == "cold-0"
            and threading.current_thread() is not self._loop
        ):
            with self._lock:
                self.waiting += 1
            assert self.may_read.wait(PATIENCE)


@pytest.fixture
def files() -> SlowFiles:
    return SlowFiles()


@pytest.fixture
async def broker(files: SlowFiles) -> AsyncIterator[TestBroker]:
    async with running(
        files,
        EventLoopClock(),
        log_flush_interval_messages="1",
        offsets_topic_num_partitions="1",
    ) as broker:
        await broker.create("cold")
        await broker.create("healthy")
        async with await broker.client() as client:
            await client.ask(produce_request("cold", ONE), 9)
            await client.ask(coordinator_request("readers"), 4)
        yield broker
        files.may_read.set()


async def test_slow_disk_reads_do_not_delay_acknowledgements(
    files: SlowFiles, broker: TestBroker
) -> None:
    # More consumers than the pool has threads wait for a disk.
    most = int(stated("threads-of-a-pool"))
    consumers: list[WireClient] = []
    async with AsyncExitStack() as stack, asyncio.timeout(PATIENCE):
        client = await stack.enter_async_context(await broker.client())
        files.is_cold = True
        for _ in range(most + 1):
            consumer = await stack.enter_async_context(await broker.client())
            consumer.send(fetch_request(fetch_topic("cold", {0: 0})), version=11)
            consumers.append(consumer)
        await until(lambda: files.waiting == most)

        produced = await client.ask(produce_request("healthy", ONE), 9)
        await broker.create("new")
        await broker.delete("new")
        committed = await client.ask(COMMIT, 8)

        assert most == files.waiting
        assert ErrorCode.NONE == produced.responses[0].partition_responses[0].error_code
        assert ErrorCode.NONE == committed.topics[0].partitions[0].error_code
        files.may_read.set()
        for consumer in some(consumers):
            answer = await consumer.receive()
            assert len(ONE) == len(answer.responses[0].partitions[0].records)
