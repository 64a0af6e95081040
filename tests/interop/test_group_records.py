"""
What a broker writes to ``__consumer_offsets``, request by request.

``BARNABAS_INTEROP_BROKER=apache`` asks Apache Kafka, whose answer is the expected one.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from barnabas.coordination.groups.records import GroupRecord, OffsetRecord, decode_record
from barnabas.protocol.records.batch import RecordBatch, batches
from tests.interop.conftest import new_broker
from tests.support.broker_process import BrokerProcess
from tests.support.build import api_request
from tests.support.coordination import subscription
from tests.support.group_requests import (
    coordinator_request,
    join_request,
    leave_request,
    offset_delete_request,
    sync_request,
)
from tests.support.server import fetch_request, fetch_topic
from tests.support.topic_requests import create_request, delete_request
from tests.support.wire_client import WireClient

pytestmark = pytest.mark.prove


@pytest.fixture
def small_broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    with new_broker(
        tmp_path, offsets__topic__num__partitions="1", group__initial__rebalance__delay__ms="0"
    ) as broker:
        yield broker


class Session:
    """
    Requests one after the other, and what they leave in the log.
    """

    def __init__(self, client: WireClient) -> None:
        self.client = client
        self.next_offset = 0
        self.names: dict[str, str] = {}  # member id -> what we call it

    async def set_up(self) -> None:
        await self.client.ask(create_request(t=2, u=2), 7)
        committed = api_request("offset_fetch", groups=[{"group_id": "any", "topics": None}])
        for _ in range(50):
            found = await self.client.ask(coordinator_request("any"), 4)
            asked = await self.client.ask(committed, 8)
            if not (found.coordinators[0].error_code or asked.groups[0].error_code):
                return
            await asyncio.sleep(0.2)  # Kafka is still making the topic, or loading it.
        raise AssertionError("there is no coordinator")

    async def written(self) -> list[list[tuple[Any, ...]]]:
        found: list[list[tuple[Any, ...]]] = []
        for _ in range(50):
            wanted = fetch_topic("__consumer_offsets", {0: self.next_offset})
            answer = await self.client.ask(fetch_request(wanted, min_bytes=0), 12)
            (data,) = answer.responses[0].partitions
            assert 0 == data.error_code
            for batch in batches(bytes(data.records or b"")):
                assert (-1, -1, 0) == (batch.producer_id, batch.producer_epoch, batch.base_sequence)
                self.next_offset = batch.next_offset
                found.append(self.in_words(batch))
            if found:
                break
            await asyncio.sleep(0.1)  # What a deleted topic leaves comes a little later.
        return found

    def in_words(self, batch: RecordBatch) -> list[tuple[Any, ...]]:
        words: list[tuple[Any, ...]] = []
        for stored in batch.records():
            record = decode_record(stored.key, stored.value)
            version = None if stored.value is None else int.from_bytes(stored.value[:2], "big")
            match record:
                case OffsetRecord(group, topic, partition, value):
                    facts: tuple[Any, ...] = ()
                    if value is not None:
                        keeps_ms = value.expire_timestamp - value.commit_timestamp
                        facts = (
                            value.offset,
                            value.leader_epoch,
                            value.metadata,
                            keeps_ms if value.expire_timestamp >= 0 else None,
                            value.topic_id.int != 0,
                        )
                    words.append(("offset", version, group, topic, partition, *facts))
                case GroupRecord(group, state):
                    facts = ()
                    if state is not None:
                        facts = (
                            state.protocol_type,
                            state.generation,
                            state.protocol,
                            self.names.get(state.leader or "", state.leader),
                            [
                                (
                                    self.names.get(m.member_id, m.member_id),
                                    m.group_instance_id,
                                    m.client_id,
                                    m.client_host,
                                    m.rebalance_timeout,
                                    m.session_timeout,
                                    m.assignment,
                                )
                                for m in state.members
                            ],
                        )
                    words.append(("group", version, group, *facts))
        return words

    async def join(self, name: str, group_id: str, member_id: str = "", **changes: Any) -> Any:
        facts: dict[str, Any] = {
            "session_timeout_ms": 30_000,
            "protocols": [{"name": "range", "metadata": subscription("t")}],
        }
        answer = await self.client.ask(join_request(group_id, member_id, **facts | changes), 9)
        if answer.member_id:
            self.names[answer.member_id] = name
        return answer

    async def sync(self, group_id: str, joined: Any) -> None:
        request = sync_request(
            group_id,
            joined.member_id,
            joined.generation_id,
            protocol_type="consumer",
            protocol_name="range",
        )
        assert 0 == (await self.client.ask(request, 5)).error_code

    async def commit(
        self, group_id: str, version: int, *partitions: int, topic: str = "t", **changes: Any
    ) -> None:
        wanted = [
            {
                "partition_index": index,
                "committed_offset": 10 + index,
                "committed_leader_epoch": index,
                "committed_metadata": "m",
            }
            for index in partitions
        ]
        topics = [{"name": topic, "partitions": wanted}]
        facts: dict[str, Any] = {"group_id": group_id, "member_id": "", "topics": topics}
        answer = await self.client.ask(api_request("offset_commit", **facts | changes), version)
        assert {0} == {p.error_code for p in answer.topics[0].partitions}

    async def leave(self, group_id: str, member_id: str) -> None:
        await self.client.ask(leave_request(5, group_id, member_id), 5)

    async def delete(self, group_id: str) -> None:
        await self.client.ask(api_request("delete_groups", groups_names=[group_id]), 2)


@pytest_asyncio.fixture
async def session(small_broker: BrokerProcess) -> AsyncIterator[Session]:
    client = await WireClient.open(small_broker.port, client_id="client")
    made = Session(client)
    await made.set_up()
    yield made
    await client.close()


async def test_records_of_offset_requests_equal_kafkas(session: Session) -> None:
    """
    Commits of every kind, and every way to delete them.
    """
    await session.commit("simple", 9, 0, 1)
    assert [
        [
            ("offset", 4, "simple", "t", 0, 10, 0, "m", None, True),
            ("offset", 4, "simple", "t", 1, 11, 1, "m", None, True),
        ]
    ] == [sorted(batch) for batch in await session.written()]

    await session.commit("simple", 2, 1, retention_time_ms=5000)
    assert [[("offset", 1, "simple", "t", 1, 11, -1, "m", 5000, False)]] == await session.written()

    await session.commit("simple", 9, 0, topic="u")
    assert [[("offset", 4, "simple", "u", 0, 10, 0, "m", None, True)]] == await session.written()

    await session.client.ask(offset_delete_request("simple", {"t": [1]}), 0)
    assert [[("offset", None, "simple", "t", 1)]] == await session.written()

    await session.client.ask(delete_request(6, "u"), 6)
    assert [[("offset", None, "simple", "u", 0)]] == await session.written()

    await session.delete("simple")
    assert [
        [("offset", None, "simple", "t", 0), ("group", None, "simple")]
    ] == await session.written()


async def test_records_of_a_group_life_cycle_equal_kafkas(session: Session) -> None:
    """
    The first join, the assignment, a commit, the last member's departure, the deletion.
    """
    required = await session.join("a", "g")
    assert [[("group", 3, "g", "", 0, None, None, [])]] == await session.written()

    joined = await session.join("a", "g", required.member_id)
    await session.sync("g", joined)
    member = ("a", None, "client", "/127.0.0.1", 60_000, 30_000, b"mine")
    assert [[("group", 3, "g", "consumer", 1, "range", "a", [member])]] == await session.written()

    await session.commit("g", 9, 0, member_id=joined.member_id, generation_id_or_member_epoch=1)
    assert [[("offset", 4, "g", "t", 0, 10, 0, "m", None, True)]] == await session.written()

    await session.leave("g", joined.member_id)
    assert [[("group", 3, "g", "consumer", 2, None, None, [])]] == await session.written()

    await session.delete("g")
    assert [[("offset", None, "g", "t", 0), ("group", None, "g")]] == await session.written()


async def test_records_of_a_static_member_equal_kafkas(session: Session) -> None:
    """
    Its assignment, and its new id when it starts again.
    """
    joined = await session.join("a", "s", group_instance_id="i")
    assert [[("group", 3, "s", "", 0, None, None, [])]] == await session.written()
    await session.sync("s", joined)
    member = ("i", "client", "/127.0.0.1", 60_000, 30_000, b"mine")
    assert [
        [("group", 3, "s", "consumer", 1, "range", "a", [("a", *member)])]
    ] == await session.written()

    again = await session.join("a again", "s", group_instance_id="i")
    assert 1 == again.generation_id
    assert again.skip_assignment
    assert [
        [("group", 3, "s", "consumer", 1, "range", "a again", [("a again", *member)])]
    ] == await session.written()


async def test_records_of_a_refused_join_equal_kafkas(session: Session) -> None:
    """
    The group, if it is the first one.
    """
    refused = await session.join("nobody", "r", protocols=[])
    assert 23 == refused.error_code
    assert [[("group", 3, "r", "", 0, None, None, [])]] == await session.written()
