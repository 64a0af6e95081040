"""
A broker in the process of the test, on a free port of this machine.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import Executor
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

from barnabas.coordination.clock import ServerClock
from barnabas.protocol.codec.schema import Message
from barnabas.protocol.messages.fetch import FetchRequest, FetchTopic
from barnabas.protocol.messages.list_offsets import ListOffsetsRequest
from barnabas.protocol.messages.produce import ProduceRequest, TopicProduceData
from barnabas.protocol.records.batch import build_batch
from barnabas.protocol.records.record import SimpleRecord
from barnabas.server.broker import Broker
from barnabas.server.config import BrokerConfig
from barnabas.server.requests.broker_parts import BrokerParts
from barnabas.storage.cleaner.pool import LogCleaner
from barnabas.storage.fs.interface import Files
from barnabas.storage.log.log import Log
from barnabas.storage.manager.manager import LogManager
from barnabas.storage.topic_partition import TopicPartition
from barnabas.testing.disks.memory import MemoryFiles
from barnabas.testing.manual_clock import ManualClock
from tests.support.build import api_request, build, named
from tests.support.topic_requests import creatable
from tests.support.wire_client import WireClient

DATA = Path("/data")
START_MS = 1_700_000_000_000
PATIENCE = 60.0
"""
Seconds after which what has not come true will not; a busy machine may need some.
"""


def broker_config(**options: str) -> BrokerConfig:
    given = {
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "log.dirs": str(DATA),
        # Indexes are made as large as they may become; in memory that is no hole in a file.
        "log.index.size.max.bytes": "16384",
    }
    return BrokerConfig.parse(
        given | {name.replace("_", "."): value for name, value in options.items()}
    )


class TestBroker(Broker):
    __test__ = False

    @property
    def port(self) -> int:
        return self.listeners[0].port

    @property
    def inside(self) -> BrokerParts:
        """
        The parts of a started broker.
        """
        assert self.parts is not None
        return self.parts

    @property
    def http_port(self) -> int:
        assert self.http is not None
        return self.http.address.port

    @property
    def logs(self) -> LogManager:
        assert self.log_manager is not None
        return self.log_manager

    @property
    def cleaner(self) -> LogCleaner:
        assert self.logs.cleaner is not None
        return self.logs.cleaner

    def log(self, topic: str, partition: int = 0) -> Log:
        log = self.logs.get_log(TopicPartition(topic, partition))
        assert log is not None
        return log

    @property
    def examiner(self) -> Executor:
        """
        The executor for large batches.
        """
        return self.workers.batches.executor

    @property
    def reads(self) -> Executor:
        """
        The executor for reads beyond the page cache.
        """
        return self.workers.reads

    async def client(self, client_id: str | None = "t") -> WireClient:
        return await WireClient.open(self.port, client_id=client_id)

    async def create(self, topic: str, partitions: int = 1, **configs: str) -> None:
        options = {name.replace("_", "."): value for name, value in configs.items()}
        wanted = creatable(topic, partitions, configs=options)
        request = api_request("create_topics", topics=[wanted], timeout_ms=10_000)
        async with await self.client() as client:
            answer = await client.ask(request, 7)
            assert 0 == answer.topics[0].error_code, answer

    async def delete(self, topic: str) -> None:
        request = api_request("delete_topics", topic_names=[topic], timeout_ms=10_000)
        async with await self.client() as client:
            answer = await client.ask(request, 5)
            assert 0 == answer.responses[0].error_code, answer

    async def fail_directories(self) -> None:
        for directory in list(self.logs.directories.live):
            self.logs.failures.maybe_add_offline_log_dir(directory, "a test", OSError())
        await until(lambda: not self.logs.directories.live)

    async def topic_id(self, topic: str) -> Any:
        async with await self.client() as client:
            answer = await client.ask(metadata_request(topic), 12)
            return answer.topics[0].topic_id


async def until(condition: Callable[[], object]) -> None:
    """
    Wait until *condition* holds.
    """
    async with asyncio.timeout(PATIENCE):
        while not condition():  # noqa: ASYNC110  # whatever makes it true tells nobody
            await asyncio.sleep(0.001)


@asynccontextmanager
async def running(
    files: Files | None = None, clock: ServerClock | None = None, /, **options: str
) -> AsyncIterator[TestBroker]:
    """
    Run a broker for the block, by default in memory and with a clock that stands still.
    """
    broker = TestBroker(
        broker_config(**options), files=files or MemoryFiles(), clock=clock or ManualClock(START_MS)
    )
    try:
        await broker.start()
        yield broker
    finally:
        await broker.stop()


def batch(*values: bytes | str, timestamp: int = START_MS, **options: Any) -> bytes:
    records = [
        SimpleRecord(timestamp, None, value.encode() if isinstance(value, str) else value)
        for value in values
    ]
    return bytes(build_batch(records, **options))


def produce_request(
    topic: str | UUID,
    records: bytes | None,
    *,
    partition: int = 0,
    acks: int = 1,
    timeout_ms: int = 30_000,
    transactional_id: str | None = None,
) -> ProduceRequest:
    return produce_all(
        produce_topic(topic, {partition: records}),
        acks=acks,
        timeout_ms=timeout_ms,
        transactional_id=transactional_id,
    )


def produce_all(
    *topics: TopicProduceData,
    acks: int = 1,
    timeout_ms: int = 1000,
    transactional_id: str | None = None,
) -> ProduceRequest:
    return ProduceRequest(
        transactional_id=transactional_id, acks=acks, timeout_ms=timeout_ms, topic_data=[*topics]
    )


def produce_topic(topic: str | UUID, records: Mapping[int, bytes | None]) -> TopicProduceData:
    """
    The part of a produce request for one topic.
    """
    data = [{"index": index, "records": data} for index, data in records.items()]
    return build(TopicProduceData, **named(topic), partition_data=data)


def fetch_request(*topics: FetchTopic, **options: Any) -> FetchRequest:
    """
    A Fetch request that does not wait by default.
    """
    defaults: dict[str, Any] = {"max_wait_ms": 0, "min_bytes": 1}
    return FetchRequest(topics=list(topics), **(defaults | options))


def fetch_topic(topic: str | UUID, offsets: Mapping[int, int], **options: Any) -> FetchTopic:
    """
    The part of a fetch request for one topic: from which offset to read each partition.
    """
    given = {"partition_max_bytes": 1 << 20, **options}
    partitions = [
        {"partition": partition, "fetch_offset": offset, **given}
        for partition, offset in offsets.items()
    ]
    name = {"topic_id": topic} if isinstance(topic, UUID) else {"topic": topic}
    return build(FetchTopic, **name, partitions=partitions)


def list_offsets_request(
    topic: str, timestamps: Mapping[int, int], **options: Any
) -> ListOffsetsRequest:
    partitions = [
        {"partition_index": index, "timestamp": timestamp}
        for index, timestamp in timestamps.items()
    ]
    topics = [{"name": topic, "partitions": partitions}]
    return build(ListOffsetsRequest, **{"replica_id": -1, "topics": topics, **options})


def metadata_request(*topics: str | UUID, create: bool = False, **options: Any) -> Message:
    wanted = [{"name": None, **named(topic)} for topic in topics]
    return api_request("metadata", topics=wanted, allow_auto_topic_creation=create, **options)
