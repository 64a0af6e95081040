"""
The two brokers, and what a workload sees of each.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from uuid import UUID

from barnabas.protocol.codec.schema import ZERO_UUID, Array, Message, Struct, fields
from barnabas.protocol.errors import DecodeError
from barnabas.protocol.messages.produce import ProduceRequest
from barnabas.storage.uuids import uuid_text
from tests.support.both_brokers import BothBrokers
from tests.support.broker_process import BrokerProcess, wait_for
from tests.support.build import api_request
from tests.support.group_requests import coordinator_request
from tests.support.wire_client import Disconnected, WireClient

NEVER_MS: Final = str(24 * 3600 * 1000)

SETTINGS: Final[Mapping[str, str]] = {
    "node.id": "1",
    "auto.create.topics.enable": "false",
    # Nothing is waited for that does not have to be.
    "log.initial.task.delay.ms": "500",
    "log.retention.check.interval.ms": "400",
    "log.cleaner.backoff.ms": "100",
    "log.cleaner.dedupe.buffer.size": str(4 << 20),
    "group.initial.rebalance.delay.ms": "0",
    # Whether an interval is over is a matter of the machine's pace.
    "group.consumer.assignment.interval.ms": "0",
    "group.share.assignment.interval.ms": "0",
    "group.streams.assignment.interval.ms": "0",
    "group.streams.initial.rebalance.delay.ms": "0",
    # So is whether members of an earlier act are still waited for. They are.
    "group.max.session.timeout.ms": NEVER_MS,
    "group.consumer.max.session.timeout.ms": NEVER_MS,
    "group.consumer.session.timeout.ms": NEVER_MS,
    "group.share.max.session.timeout.ms": NEVER_MS,
    "group.share.session.timeout.ms": NEVER_MS,
    "group.streams.max.session.timeout.ms": NEVER_MS,
    "group.streams.session.timeout.ms": NEVER_MS,
    # It goes by the ids of instances and members, and not by those of topics.
    "group.consumer.assignors": "range,uniform",
    # What is written every so often would be written at different moments: only stops write it.
    "log.flush.offset.checkpoint.interval.ms": NEVER_MS,
    "log.flush.start.offset.checkpoint.interval.ms": NEVER_MS,
    "replica.high.watermark.checkpoint.interval.ms": NEVER_MS,
    # So are files removed: marked ones are compared, too.
    "log.segment.delete.delay.ms": NEVER_MS,
    "log.index.size.max.bytes": str(1 << 18),
    "offsets.topic.num.partitions": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
}
"""
What both brokers are started with.
"""

UNCOORDINATED: Final = {**SETTINGS, "transaction.partition.verification.enable": "false"}
"""
Batches of transactions can be sent without a coordinator that knows of them.
"""

COORDINATED: Final = {
    **SETTINGS,
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "300",
}
"""
Transactions are what their coordinator says.
"""

WRITTEN_AT_START: Final = ("recovery-point-offset-checkpoint", "log-start-offset-checkpoint")
PATIENCE: Final = 90.0
GROUPS: Final = 0
TRANSACTIONS: Final = 1
SHARE: Final = 2
NOT_LOADED: Final = frozenset({14, 15, 16, 51})
PAUSE: Final = 0.02
CLOSED: Final = "connection closed"
SILENT: Final = "no answer"
NEXT_MILLISECOND: Final = 0.0015
"""
Seconds between batches. Of those that arrive in the same millisecond, a topic with LogAppendTime
has one entry in its time index, and which arrive so is a matter of chance.
"""
LONGEST_SILENCE: Final = 60.0
"""Seconds after which an answer is not waited for any longer."""


@dataclass(slots=True)
class Identity:
    """
    Who a producer is, as far as a broker has told it, and the sequence of its next record in each
    partition.
    """

    producer_id: int = -1
    epoch: int = -1
    sequences: Counter[int] = field(default_factory=Counter)

    def become(self, producer_id: int, epoch: int) -> None:
        """
        With each new epoch sequences begin anew.
        """
        if (producer_id, epoch) != (self.producer_id, self.epoch):
            self.producer_id, self.epoch = producer_id, epoch
            self.sequences.clear()


@dataclass(slots=True)
class Membership:
    """
    What a member of a group knows of itself, as far as a broker has told it.

    Args:
        member_id: as it names itself; a broker may have given it.
        ids: how many it has had.
        tasks: those of a streams program, by role and subtopology.
    """

    member_id: str = ""
    ids: int = 0
    epoch: int = 0
    assigned: dict[UUID, list[int]] = field(default_factory=dict)
    tasks: dict[str, dict[str, list[int]]] = field(default_factory=dict)
    endpoint_epoch: int = 0


class Side:
    def __init__(self, broker: BrokerProcess) -> None:
        self.broker = broker
        self.topic_names: dict[UUID, str] = {}
        self.topic_ids: dict[str, UUID] = {}
        self.identities: defaultdict[str, Identity] = defaultdict(Identity)
        self.members: defaultdict[tuple[str, str], Membership] = defaultdict(Membership)
        self.aliases: dict[str, str] = {}
        """What stands for ids that a broker has made."""
        self.never_come: set[tuple[str, ...]] = set()
        """Topics that a streams group needs and that were waited for in vain."""

    @property
    def name(self) -> str:
        return self.broker.name

    @property
    def data(self) -> Path:
        return self.broker.data

    def start(self) -> None:
        """
        Return once the broker is ready and has written its checkpoints for the first time.

        It does so a moment after its start, whatever the intervals. From then on only a stop does,
        and a kill finds them as they are now.
        """
        launched = time.time()
        self.broker.start()
        paths = [self.data / name for name in WRITTEN_AT_START]
        wait_for(
            lambda: all(path.exists() and path.stat().st_mtime > launched for path in paths),
            f"{self.name} to write its checkpoints",
            PATIENCE,
        )

    async def have_coordinators(self) -> None:
        """
        Let the internal topics be made, and wait until the coordinators have loaded them: who asks
        for them first is a matter of chance.

        A broker that has just started leads its partitions by then, too. Apache Kafka answers
        NOT_LEADER_OR_FOLLOWER for a moment after it is ready.
        """
        async with await WireClient.open(self.broker.port) as client:
            for key_type in (GROUPS, TRANSACTIONS):
                await _ask_until_loaded(client, coordinator_request("first", key_type=key_type), 4)
            await _ask_until_loaded(client, api_request("describe_groups", groups=["first"]), 5)
            topic_id = UUID(int=1)
            key = f"first:{uuid_text(topic_id)}:0"
            await _ask_until_loaded(client, coordinator_request(key, key_type=SHARE), 6)
            partitions = [{"partition": 0, "leader_epoch": -1}]
            topics = [{"topic_id": topic_id, "partitions": partitions}]
            read = api_request("read_share_group_state_summary", group_id="first", topics=topics)
            await _ask_until_loaded(client, read, 1)
            for name in (None, "first"):
                facts = {"transactional_id": name, "transaction_timeout_ms": 60_000}
                await _ask_until_loaded(client, api_request("init_producer_id", **facts), 4)

    async def learn_topics(self) -> None:
        async with await WireClient.open(self.broker.port) as client:
            request = api_request("metadata", topics=None, allow_auto_topic_creation=False)
            answer = await client.ask(request, 12)
        for topic in answer.topics:
            if topic.name is not None:
                self.topic_ids[topic.name] = topic.topic_id
                self.topic_names[topic.topic_id] = topic.name


async def _ask_until_loaded(client: WireClient, request: Message, version: int) -> None:
    for _ in range(round(PATIENCE / PAUSE)):
        if NOT_LOADED.isdisjoint(error_codes(await client.ask(request, version))):
            return
        await asyncio.sleep(PAUSE)
    raise TimeoutError(f"no coordinator answers {request}")


def error_codes(message: Any) -> Iterator[int]:
    for each in fields(type(message)):
        value = getattr(message, each.name)
        if each.name.endswith("error_code"):
            yield value
        elif isinstance(each.type, Array) and isinstance(each.type.element, Struct):
            for element in value or ():
                yield from error_codes(element)
        elif isinstance(each.type, Struct) and value is not None:
            yield from error_codes(value)


class Session:
    """
    The connection of one workload to one side, opened again whenever it was closed.
    """

    def __init__(self, side: Side) -> None:
        self.side = side
        self._client: WireClient | None = None

    def topic_id(self, topic: str) -> UUID:
        """
        The id of a topic on this side; zeros for one that it does not have.
        """
        return self.side.topic_ids.get(topic, ZERO_UUID)

    def named(self, topic: str, field: str = "name", *, by_id: bool) -> dict[str, Any]:
        """
        The field of a request that names a topic or has its id.
        """
        return {"topic_id": self.topic_id(topic)} if by_id else {field: topic}

    async def ask(self, request: Message, version: int, *, seconds: float = LONGEST_SILENCE) -> Any:
        """
        The answer, or ``CLOSED`` or ``SILENT``.
        """
        async with self._talking(seconds) as said:
            client = await self._ready_for(request)
            said.append(await client.ask(request, version))
        return said[0]

    async def tell(self, request: Message, version: int) -> None:
        client = await self._ready_for(request)
        client.send(request, version=version)
        client.expect_no_answer()

    async def ask_frame(self, frame: bytes, *, seconds: float) -> bytes | str:
        """
        The answer to bytes that may be no request, without its size, or ``CLOSED`` or ``SILENT``.

        A broker that answers nobody meanwhile is busy, and not silent.
        """
        said: list[bytes | str]
        async with self._talking(LONGEST_SILENCE) as said:
            client = await self._connected()
            client.send_bytes(frame)
            answer = asyncio.create_task(client.receive_frame())
            if not (await asyncio.wait({answer}, timeout=seconds))[0]:
                async with await WireClient.open(self.side.broker.port) as other:
                    await other.ask(api_request("metadata", topics=[]), 12)
            if not answer.done():
                answer.cancel()
                raise TimeoutError
            said.append(await answer)
        return said[0]

    async def close(self) -> None:
        if self._client is not None:
            client, self._client = self._client, None
            await client.close()

    async def _ready_for(self, request: Message) -> WireClient:
        if isinstance(request, ProduceRequest):
            await asyncio.sleep(NEXT_MILLISECOND)
        return await self._connected()

    async def _connected(self) -> WireClient:
        if self._client is None:
            self._client = await WireClient.open(self.side.broker.port)
        return self._client

    @contextlib.asynccontextmanager
    async def _talking(self, seconds: float) -> AsyncIterator[list[Any]]:
        said: list[Any] = []
        try:
            async with asyncio.timeout(seconds):
                yield said
        except TimeoutError:
            said.append(SILENT)
            await self.close()
        except (Disconnected, ConnectionError):
            said.append(CLOSED)
            await self.close()
        except DecodeError as error:
            said.append(f"unreadable: {error}")
            await self.close()


class Pair:
    """
    Apache Kafka and Barnabas, started and stopped together.
    """

    def __init__(self, directory: Path, settings: Mapping[str, str] = SETTINGS) -> None:
        self.brokers = BothBrokers.side_by_side(directory, settings)
        self.kafka, self.barnabas = map(Side, self.brokers)

    @property
    def sides(self) -> tuple[Side, Side]:
        return self.kafka, self.barnabas

    async def start(self) -> None:
        await self.each(Side.start)
        for side in self.sides:
            await side.have_coordinators()
            await side.learn_topics()

    async def stop(self) -> None:
        await self.each(lambda side: side.broker.stop())

    def kill(self) -> None:
        for broker in self.brokers:
            broker.kill()

    def close(self) -> None:
        self.brokers.close()

    async def each(self, work: Callable[[Side], Any]) -> None:
        """
        Let both do the same at once.
        """
        await asyncio.gather(*(asyncio.to_thread(work, side) for side in self.sides))
