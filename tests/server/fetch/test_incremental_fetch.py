"""
Fetches of a session, over the wire: what is remembered, what is left out, and what is refused.
"""

from __future__ import annotations

import random
from typing import Any
from uuid import UUID

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.server.fetch.sessions import EVICTION_MS, SHARDS
from barnabas.testing.disks.memory import MemoryFiles
from barnabas.testing.manual_clock import ManualClock
from tests.support.server import (
    START_MS,
    TestBroker,
    batch,
    fetch_request,
    fetch_topic,
    running,
    until,
)
from tests.support.session_client import SessionClient, View
from tests.support.wire_client import WireClient

pytestmark = pytest.mark.broker(topics={"orders": 4})


BY_NAME = 12
LATEST = 18
VERSIONS = (7, BY_NAME, 13, LATEST)

ONE = batch("x" * 80)


def append(broker: TestBroker, partition: int, records: bytes = ONE) -> None:
    broker.partitions.expect("orders", partition).append(memoryview(bytearray(records)))


async def named(broker: TestBroker, topic: str, version: int) -> str | UUID:
    return topic if version <= BY_NAME else await broker.topic_id(topic)


async def opened(
    broker: TestBroker,
    client: WireClient,
    offsets: dict[int, int],
    version: int = LATEST,
    topic: str = "orders",
) -> SessionClient:
    session = SessionClient(client, await named(broker, topic, version), version)
    session.offsets = offsets
    answer = await session.fetch()
    assert list(offsets) == told(answer)
    assert 0 == answer.error_code
    assert 0 < answer.session_id
    return session


def told(answer: Any) -> list[int]:
    return [each.partition_index for topic in answer.responses for each in topic.partitions]


def codes(answer: Any) -> list[int]:
    return [each.error_code for topic in answer.responses for each in topic.partitions]


async def test_incremental_fetch_without_changes_has_no_topics_and_reads_nothing(
    broker: TestBroker, client: WireClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = await opened(broker, client, {0: 0, 1: 0})
    for partition in broker.partitions:
        monkeypatch.setattr(type(partition.log), "read", None)

    answer = await session.fetch()

    assert [] == answer.responses


async def test_session_continues_on_another_connection(
    broker: TestBroker, client: WireClient
) -> None:
    session = await opened(broker, client, {0: 0})

    async with await broker.client("another") as other:
        session.client = other
        answer = await session.fetch()

    assert (0, []) == (answer.error_code, answer.responses)


class TestTheEnd:
    @pytest.mark.parametrize("version", VERSIONS)
    async def test_client_closes_its_session(
        self, broker: TestBroker, client: WireClient, version: int
    ) -> None:
        session = await opened(broker, client, {0: 0, 1: 0}, version)

        closing = fetch_request(session_id=session.session_id, session_epoch=-1)
        answer = await client.ask(closing, version)

        assert (0, 0, []) == (answer.error_code, answer.session_id, answer.responses)
        assert 0 == broker.metrics.value("fetch_sessions")
        assert ErrorCode.FETCH_SESSION_ID_NOT_FOUND == (await session.fetch()).error_code

    async def test_new_session_replaces_the_old_one(
        self, broker: TestBroker, client: WireClient
    ) -> None:
        session = await opened(broker, client, {0: 0, 1: 0})
        old = session.session_id
        session.epoch = 0

        answer = await session.fetch()

        assert [0, 1] == told(answer)
        assert answer.session_id not in (0, old)
        assert 1 == broker.metrics.value("fetch_sessions")

    @pytest.mark.parametrize("offsets", [{}, {0: 0}])
    async def test_session_without_partitions_is_closed(
        self, broker: TestBroker, client: WireClient, offsets: dict[int, int]
    ) -> None:
        session = await opened(broker, client, offsets)
        session.offsets = {}

        answer = await session.fetch()

        assert (0, 0, []) == (answer.error_code, answer.session_id, answer.responses)
        assert 0 == broker.metrics.value("fetch_sessions")

    async def test_evicted_session_is_opened_again(self) -> None:
        clock = ManualClock(START_MS)
        slots = str(SHARDS)
        async with running(
            MemoryFiles(), clock, max_incremental_fetch_session_cache_slots=slots
        ) as broker:
            await broker.create("orders", partitions=2)
            async with await broker.client() as client:
                sessions = [await opened(broker, client, {0: 0, 1: 0}) for _ in range(SHARDS)]
                refused = SessionClient(client, sessions[0].topic, LATEST)
                refused.offsets = {0: 0}
                assert (0, 0) == ((await refused.fetch()).session_id, refused.epoch)
                clock.advance(EVICTION_MS / 1000 + 1)

                late = SessionClient(client, sessions[0].topic, LATEST)
                late.offsets = {0: 0}
                while not late.session_id:
                    await late.fetch()
                append(broker, 1)
                answers = [await each.fetch() for each in sessions]

                lost = [each for each in answers if each.error_code]
                assert [ErrorCode.FETCH_SESSION_ID_NOT_FOUND] == [each.error_code for each in lost]
                assert [0] == [each.session_id for each in lost]
                assert 1 == broker.metrics.value("fetch_session_evictions")
                assert [[1]] * (SHARDS - 1) == [told(each) for each in answers if each not in lost]


class TestRefusals:
    async def test_waiting_fetch_is_refused_once_its_session_has_a_later_epoch(
        self, broker: TestBroker, client: WireClient
    ) -> None:
        session = await opened(broker, client, {0: 0})
        request = fetch_request(session_id=session.session_id, session_epoch=1, max_wait_ms=60_000)
        client.send(request, version=LATEST)
        await until(lambda: broker.fetches.waiting)

        async with await broker.client() as other:
            session.client = other
            session.epoch = 2
            assert 0 == (await session.fetch()).error_code
        append(broker, 0)
        answer = await client.receive()

        assert (ErrorCode.INVALID_FETCH_SESSION_EPOCH, session.session_id, []) == (
            answer.error_code,
            answer.session_id,
            answer.responses,
        )

    @pytest.mark.parametrize("epoch", [-1, 0, 1])
    async def test_fetch_with_an_unknown_session_id_is_refused(
        self, client: WireClient, epoch: int
    ) -> None:
        request = fetch_request(
            fetch_topic("orders", {0: 0}), session_id=2**31 - 1, session_epoch=epoch
        )

        answer = await client.ask(request, BY_NAME)

        code = ErrorCode.UNKNOWN_SERVER_ERROR
        assert (code, 2**31 - 1, [code]) == (answer.error_code, answer.session_id, codes(answer))


class TestTopicsThatChange:
    @pytest.mark.parametrize("version", [BY_NAME, 13, LATEST])
    async def test_deleted_topic_is_unknown_by_its_name(
        self, broker: TestBroker, client: WireClient, version: int
    ) -> None:
        session = await opened(broker, client, {0: 0, 1: 0}, version)
        await broker.delete("orders")

        for _ in range(2):
            answer = await session.fetch()
            assert [0, 1] == told(answer)
            assert [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * 2 == codes(answer)

    @pytest.mark.parametrize("version", [13, LATEST])
    async def test_recreated_topic_has_another_id(
        self, broker: TestBroker, client: WireClient, version: int
    ) -> None:
        session = await opened(broker, client, {0: 0, 1: 0}, version)
        await broker.delete("orders")
        await broker.create("orders")

        answer = await session.fetch()

        assert [ErrorCode.INCONSISTENT_TOPIC_ID, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] == codes(
            answer
        )

    async def test_recreated_topic_continues_by_name_in_a_session(
        self, broker: TestBroker, client: WireClient
    ) -> None:
        append(broker, 0)
        session = await opened(broker, client, {0: 0}, BY_NAME)
        await broker.delete("orders")
        await broker.create("orders")
        session.offsets[0] = 0
        append(broker, 0, batch("other"))

        answer = await session.fetch()

        assert ([0], [0]) == (told(answer), codes(answer))
        assert b"other" in bytes(answer.responses[0].partitions[0].records)

    async def test_unknown_topic_is_returned_once_it_exists(
        self, broker: TestBroker, client: WireClient
    ) -> None:
        session = await opened(broker, client, {0: 0}, BY_NAME, topic="later")
        assert [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] == codes(await session.fetch())
        await broker.create("later")

        answer = await session.fetch()

        assert ([0], [0]) == (told(answer), codes(answer))
        assert [] == told(await session.fetch())

    async def test_unknown_topic_id_is_returned_each_time(
        self, broker: TestBroker, client: WireClient
    ) -> None:
        session = SessionClient(client, UUID(int=9), LATEST)
        session.offsets = {0: 0, 3: 0}

        for _ in range(3):
            answer = await session.fetch()
            assert ([0, 3], [ErrorCode.UNKNOWN_TOPIC_ID] * 2) == (told(answer), codes(answer))
        assert 2 == broker.metrics.value("fetch_session_partitions")


@pytest.mark.parametrize("version", [15, 16, LATEST])
async def test_old_leader_epoch_is_answered_with_the_current_leader(
    broker: TestBroker, client: WireClient, version: int
) -> None:
    broker.partitions.expect("orders", 0).leader_epoch = 5
    topic = fetch_topic(await broker.topic_id("orders"), {0: 0, 1: 0}, current_leader_epoch=0)

    answer = await client.ask(fetch_request(topic), version)

    first, second = answer.responses[0].partitions
    named = [(each.node_id, each.host, each.port) for each in answer.node_endpoints]
    assert [ErrorCode.FENCED_LEADER_EPOCH, 0] == codes(answer)
    assert -1 == second.current_leader.leader_id
    if version < 16:
        assert ([], -1) == (named, first.current_leader.leader_id)
    else:
        assert [(broker.node_id, "127.0.0.1", broker.port)] == named
        assert (broker.node_id, 5) == (
            first.current_leader.leader_id,
            first.current_leader.leader_epoch,
        )


@pytest.mark.parametrize("seed", range(24))
async def test_incremental_fetches_convey_the_same_as_full_fetches(
    broker: TestBroker, client: WireClient, seed: int
) -> None:
    chance = random.Random(seed)
    version = VERSIONS[seed % len(VERSIONS)]
    session = SessionClient(client, await named(broker, "orders", version), version)
    session.offsets = {0: 0, 1: 0}

    for step in range(60):
        await change(broker, session, chance, step)
        limit = chance.choice([1, 200, 1 << 20])
        answer = await session.fetch(max_bytes=limit)
        assert 0 == answer.error_code
        await compare(session, limited=limit < 1 << 20)

    session.offsets = starts(broker)
    session.records.clear()
    while await session_reads(session):
        pass
    assert await everything(session, broker) == session.records


async def change(
    broker: TestBroker, session: SessionClient, chance: random.Random, step: int
) -> None:
    """
    Something that may happen between two fetches.
    """
    for _ in range(chance.randrange(3)):
        index = chance.randrange(4)
        log = broker.partitions.expect("orders", index).log
        match chance.randrange(6):
            case 0 | 1:
                append(broker, index, batch(f"{step}" * chance.randrange(1, 30)))
            case 2:
                log.delete_records(chance.randint(log.log_start_offset, log.high_watermark))
            case 3:
                session.offsets.setdefault(index, log.log_start_offset)
            case 4 if len(session.offsets) > 1:
                session.offsets.pop(index, None)
                session.views.pop(index, None)
            case 5 if index in session.offsets:
                session.offsets[index] = chance.randint(-1, log.high_watermark + 1)


async def compare(session: SessionClient, *, limited: bool) -> None:
    """
    Ask for the same without a session.
    """
    offsets = session.offsets
    request = fetch_request(fetch_topic(session.topic, offsets, partition_max_bytes=1 << 20))
    answer = await session.client.ask(request, session.version)
    views = {
        each.partition_index: View(each.high_watermark, each.log_start_offset, each.error_code)
        for topic in answer.responses
        for each in topic.partitions
    }
    assert views == {index: session.views[index] for index in offsets}
    if not limited:
        for topic in answer.responses:
            assert not any(each.records for each in topic.partitions), "the session had told it"


def starts(broker: TestBroker) -> dict[int, int]:
    return {
        index: broker.partitions.expect("orders", index).log.log_start_offset for index in range(4)
    }


async def session_reads(session: SessionClient) -> bool:
    answer = await session.fetch(max_bytes=500)
    return any(each.records for topic in answer.responses for each in topic.partitions)


async def everything(session: SessionClient, broker: TestBroker) -> dict[int, dict[int, bytes]]:
    """
    All records of all partitions, read in one go without a session.
    """
    other = SessionClient(session.client, session.topic, session.version)
    other.offsets = starts(broker)
    await other.fetch(session_epoch=-1)
    return other.records
