"""
Fetches that are served without being decoded first: which they are, and that nobody can tell.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import count
from struct import pack
from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID

import pytest

from barnabas.protocol.codec.codec import encode
from barnabas.protocol.errors import ErrorCode, NotLeaderOrFollower
from barnabas.protocol.messages.fetch import FetchPartition, FetchRequest, ForgottenTopic
from barnabas.protocol.records.control import ControlRecordType, EndTransactionMarker
from barnabas.server.fetch.plain_fetches import fetch_plain
from barnabas.server.fetch.stored_records import StoredRecords
from barnabas.server.handlers import fetch as handler
from barnabas.server.manual_clock import ManualClock
from barnabas.server.partitions.partition import Partition
from barnabas.storage.producers.append_origin import AppendOrigin
from tests.support.disk import FailingFiles, MemoryFiles
from tests.support.server import (
    START_MS,
    TestBroker,
    batch,
    fetch_request,
    fetch_topic,
    running,
)
from tests.support.wire_client import WireClient

pytestmark = pytest.mark.broker(topics={"orders": 2}, fetch_max_bytes="5000")


ONE = batch("x" * 80)
SIZE = len(ONE)
VERSIONS = range(13, 19)
OF_PARTITIONS = {"current_leader_epoch", "last_fetched_epoch", "partition_max_bytes"}


@pytest.fixture(autouse=True)
async def _records(broker: TestBroker) -> None:
    for _ in range(3):
        append(broker, 0, ONE)


@pytest.fixture
async def topic(broker: TestBroker) -> UUID:
    return cast(UUID, await broker.topic_id("orders"))


def append(broker: TestBroker, index: int, records: bytes, **options: Any) -> None:
    broker.partitions.expect("orders", index).append(memoryview(bytearray(records)), **options)


def served(broker: TestBroker, request: FetchRequest, version: int = 17) -> list[Any] | None:
    """
    The parts of the answer, if *request* is served without being decoded.
    """
    parts = SimpleNamespace(
        partitions=broker.partitions,
        fetch_sessions=broker.fetch_sessions,
        config=broker.config,
        clock=broker.clock,
    )
    frame = memoryview(encode(request, version))
    return fetch_plain(frame, 0, version, 1, cast(Any, parts), cast(Any, None))


def asking(topic: UUID, offset: int = 0, index: int = 0, **options: Any) -> FetchRequest:
    """
    A request for one partition, where *options* may be of either.
    """
    given: dict[str, Any] = {"max_wait_ms": 500} | options
    own = {name: given.pop(name) for name in OF_PARTITIONS & given.keys()}
    return fetch_request(fetch_topic(topic, {index: offset}, **own), **given)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("isolation_level", [0, 1])
async def test_records_that_are_there_are_served_without_decoding(
    broker: TestBroker, topic: UUID, version: int, isolation_level: int
) -> None:
    parts = served(broker, asking(topic, 1, isolation_level=isolation_level), version)

    assert parts is not None
    _, records, _ = parts
    assert isinstance(records, StoredRecords)
    assert 2 * SIZE == len(records)


async def test_what_is_to_be_waited_for_or_refused_is_decoded(
    broker: TestBroker, topic: UUID
) -> None:
    others = [
        asking(topic, 3),
        asking(topic, 4),
        asking(topic, -1),
        asking(topic, 0, 1),
        asking(topic, 0, 2),
        asking(UUID(int=9)),
        asking(topic, isolation_level=2),
        asking(topic, isolation_level=-1),
        asking(topic, min_bytes=3 * SIZE + 1),
        asking(topic, max_bytes=-1),
        asking(topic, partition_max_bytes=-1),
        asking(topic, current_leader_epoch=1),
        asking(topic, 2, last_fetched_epoch=1),
    ]

    assert served(broker, asking(topic)) is not None
    assert served(broker, asking(topic, min_bytes=3 * SIZE)) is not None
    assert served(broker, asking(topic, 2, current_leader_epoch=0, last_fetched_epoch=0))
    assert served(broker, asking(topic, partition_max_bytes=0)) is not None
    assert [] == [request for request in others if served(broker, request) is not None]


async def test_so_is_what_the_page_cache_lacks_or_a_partition_that_is_not_served(
    broker: TestBroker, topic: UUID
) -> None:
    files = broker.files
    assert isinstance(files, MemoryFiles)

    files.is_cold = True
    assert served(broker, asking(topic, 1)) is None
    files.is_cold = False
    assert served(broker, asking(topic, 1)) is not None
    broker.partitions.expect("orders", 0).close(NotLeaderOrFollower())
    assert served(broker, asking(topic, 1)) is None


async def test_so_is_a_log_that_is_not_the_clients(broker: TestBroker, topic: UUID) -> None:
    broker.partitions.expect("orders", 0).leader_epoch = 2
    append(broker, 0, ONE)
    append(broker, 0, ONE)

    assert served(broker, asking(topic, 4, last_fetched_epoch=0)) is None
    assert served(broker, asking(topic, 4, last_fetched_epoch=2)) is not None


async def test_a_disk_that_fails_meanwhile_is_told() -> None:
    files = FailingFiles()
    async with running(files) as broker:
        await broker.create("orders")
        for _ in range(3):
            append(broker, 0, ONE)
        request = asking(await broker.topic_id("orders"), 1)
        async with await broker.client() as client:
            files.fail(only=frozenset({"read"}), forever=True)
            for _ in range(2):
                (topic,) = (await client.ask(request, 17)).responses
                assert ErrorCode.KAFKA_STORAGE_ERROR == topic.partitions[0].error_code


async def test_no_more_is_served_than_everybody_allows(broker: TestBroker, topic: UUID) -> None:
    for _ in range(100):
        append(broker, 0, ONE)

    def size(**options: Any) -> int:
        parts = served(broker, asking(topic, **options))
        assert parts is not None
        return len(parts[1])

    assert 1000 == size(partition_max_bytes=1000)
    assert 2000 == size(max_bytes=2000)
    assert 5000 == size(min_bytes=6000)  # fetch.max.bytes
    assert SIZE == size(max_bytes=1)


class TestSessions:
    """
    A further request of a session, which is found by its number.
    """

    async def test_the_next_one_of_its_only_partition_is_served(
        self, broker: TestBroker, client: WireClient, topic: UUID
    ) -> None:
        session = await opened(client, topic, {0: 0})

        assert served(broker, asking(topic, 1, session_id=session, session_epoch=1)) is not None
        assert served(broker, asking(topic, 1, session_id=session, session_epoch=1)) is None
        assert served(broker, asking(topic, 2, session_id=session, session_epoch=2)) is not None

    async def test_what_is_served_is_remembered(
        self, broker: TestBroker, client: WireClient, topic: UUID
    ) -> None:
        session = await opened(client, topic, {0: 3})
        for _ in range(2):
            append(broker, 0, ONE)
        assert served(broker, asking(topic, 4, session_id=session, session_epoch=1)) is not None

        # Whoever names no partition asks from the last offset on.
        request = fetch_request(session_id=session, session_epoch=2)
        (told,) = (await client.ask(request, 17)).responses[0].partitions

        assert SIZE == len(told.records)
        at_the_end = asking(topic, 5, session_id=session, session_epoch=3, max_wait_ms=0)
        assert [] == (await client.ask(at_the_end, 17)).responses

    async def test_any_other_state_of_it_is_left_to_the_handler(
        self, broker: TestBroker, client: WireClient, topic: UUID
    ) -> None:
        session = await opened(client, topic, {0: 0})
        two = await opened(client, topic, {0: 0, 1: 0})
        another = await opened(client, topic, {1: 0})
        by_name = await opened(client, "orders", {0: 0})

        for session_id, epoch in [
            (session, 2),
            (session, 0),
            (session, -1),
            (two, 1),
            (another, 1),
            (by_name, 1),
            (12345, 1),
            (0, 1),
            (0, 0),
            (-(2**31), 1),
        ]:
            request = asking(topic, 0, session_id=session_id, session_epoch=epoch)
            assert served(broker, request) is None, (session_id, epoch)
        assert served(broker, asking(topic, 0, session_id=session, session_epoch=1)) is not None

    async def test_one_that_is_used_stays(
        self, broker: TestBroker, client: WireClient, topic: UUID
    ) -> None:
        session = await opened(client, topic, {0: 0})
        clock = broker.clock
        assert isinstance(clock, ManualClock)

        clock.advance(1.0)
        served(broker, asking(topic, 1, session_id=session, session_epoch=1))

        (known,) = broker.fetch_sessions
        assert 1000 == known.last_used_ms - known.created_ms


async def opened(client: WireClient, topic: str | UUID, offsets: dict[int, int]) -> int:
    """
    The number of a new session.
    """
    version = 12 if isinstance(topic, str) else 17
    request = fetch_request(fetch_topic(topic, offsets), session_epoch=0)
    return cast(int, (await client.ask(request, version)).session_id)


class Twins:
    """
    Two sessions of which the same is asked, in one of them with a tagged field that nobody knows:
    such a request is always decoded.
    """

    def __init__(self, client: WireClient) -> None:
        self._client = client
        self._sessions = [0, 0]
        self._epoch = 0

    async def ask(self, version: int, fields: dict[str, Any], *, wrong_epoch: bool) -> None:
        """
        Ask in both, and compare.
        """
        epoch = self._epoch + wrong_epoch if self._sessions[0] else 0
        plain, other = (
            self._client.frame(
                FetchRequest(session_id=session, session_epoch=epoch, **fields), version
            )
            for session in self._sessions
        )
        tagged = other[4:-1] + b"\1\7\1x"
        self._client.send_bytes(plain + pack(">i", len(tagged)) + tagged)
        answers = [await self._client.receive(), await self._client.receive()]
        self._sessions = [answer.session_id for answer in answers]
        self._epoch = epoch + 1
        for answer in answers:
            answer.session_id = bool(answer.session_id)
        assert answers[0] == answers[1], fields


@pytest.mark.parametrize("seed", range(12))
async def test_answers_do_not_depend_on_whether_the_request_is_decoded(
    broker: TestBroker,
    client: WireClient,
    topic: UUID,
    seed: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    decoded = counting(monkeypatch, handler, "context_of")
    chance = random.Random(seed)
    twins = Twins(client)
    version = chance.choice(VERSIONS)
    partition = broker.partitions.expect("orders", 0)
    log, changes = partition.log, Changes(partition, chance)
    for _ in range(250):
        changes.make()
        wanted = FetchPartition(
            partition=chance.choice((0,) * 60 + (1,)),
            current_leader_epoch=chance.choice((-1, 0) * 10 + (1,)),
            fetch_offset=chance.randint(log.log_start_offset - 1, log.high_watermark + 1),
            last_fetched_epoch=chance.choice((-1,) * 9 + (0, 1)),
            partition_max_bytes=chance.choice((1, 500, 1 << 20) * 6 + (0, -1)),
        )
        request = asking(topic)
        request.topics[0].partitions[:] = [wanted] * chance.choice((1,) * 20 + (0, 2))
        fields: dict[str, Any] = {
            "max_wait_ms": 0,
            "min_bytes": chance.choice((0, 1, 1, 300)),
            "max_bytes": chance.choice((1 << 20, 700) * 6 + (0, -1)),
            "isolation_level": chance.choice((0, 1) * 8 + (2,)),
            "topics": request.topics if chance.random() < 0.97 else [],
            "rack_id": chance.choice(("", "r1")),
        }
        if chance.random() < 0.1:
            forgotten = [ForgottenTopic(topic_id=topic, partitions=[1])]
            fields["forgotten_topics_data"] = forgotten
        await twins.ask(version, fields, wrong_epoch=chance.random() < 0.02)

    assert 30 < 500 - len(decoded) < 220, "both ways are taken"


def counting(monkeypatch: pytest.MonkeyPatch, module: Any, name: str) -> list[None]:
    """
    One entry for each call of a function.
    """
    function: Callable[..., Any] = getattr(module, name)
    calls: list[None] = []

    def counted(*args: Any, **options: Any) -> Any:
        calls.append(None)
        return function(*args, **options)

    monkeypatch.setattr(module, name, counted)
    return calls


class Changes:
    """
    What may happen to a partition between two fetches.
    """

    def __init__(self, partition: Partition, chance: random.Random) -> None:
        self._partition = partition
        self._chance = chance
        self._producer_ids = count()
        self._open: int | None = None

    def make(self) -> None:
        """
        One of them, or none.
        """
        log = self._partition.log
        match self._chance.randrange(12):
            case 0 | 1 | 2 | 3:
                self._append(batch("x" * self._chance.randrange(1, 200)))
            case 4:
                log.delete_records(self._chance.randint(log.log_start_offset, log.high_watermark))
            case 5 if self._open is None:
                self._open = next(self._producer_ids)
                self._begin(self._open)
            case 6 if self._open is not None:
                self._end(self._open)
                self._open = None

    def _begin(self, producer_id: int) -> None:
        producer = {"producer_id": producer_id, "producer_epoch": 0, "base_sequence": 0}
        guard = self._partition.log.maybe_start_transaction_verification(
            producer_id, sequence=0, epoch=0, supports_epoch_bump=False
        )
        self._append(batch("t", is_transactional=True, **producer), verification_guard=guard)

    def _end(self, producer_id: int) -> None:
        how = self._chance.choice((ControlRecordType.COMMIT, ControlRecordType.ABORT))
        marker = EndTransactionMarker(how, 0)
        records = marker.batch(START_MS, producer_id=producer_id, producer_epoch=0)
        self._append(records, origin=AppendOrigin.COORDINATOR, transaction_version=0)

    def _append(self, records: bytes | bytearray, **options: Any) -> None:
        self._partition.append(memoryview(bytearray(records)), **options)
