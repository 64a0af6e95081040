"""
Answers of the API have their bounds before anything is built.
"""

from __future__ import annotations

import tracemalloc
from collections.abc import AsyncIterator, Awaitable
from typing import Any, Final

import pytest
import pytest_asyncio

from barnabas.protocol.compression import CompressionType
from barnabas.protocol.records.record import Header
from barnabas.server.http.api import groups
from barnabas.server.http.api.explaining import MOST_READ_BYTES
from barnabas.server.http.api.records import MOST_CONTENT_BYTES, MOST_HEADERS
from tests.server.http.api.test_api_records import one, produce
from tests.support.api_client import HTTP, ask
from tests.support.group_requests import commit_request, coordinator_request
from tests.support.server import TestBroker, batch, running

MIB: Final = 1 << 20
PARTITIONS: Final = 12
RECORDS: Final = "/topics/t/partitions/0/records"
LOOKUP: Final = "/topics/t/partitions/0/lookup"
LARGE: Final = bytes(MOST_READ_BYTES + MIB)
MESSAGES: Final = f"{2 * len(LARGE)}"


async def peak_of(asked: Awaitable[Any]) -> int:
    """
    The most bytes that Python held more meanwhile.
    """
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        await asked
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


@pytest_asyncio.fixture
async def broker() -> AsyncIterator[TestBroker]:
    options = HTTP | {"barnabas_http_records": "true", "message_max_bytes": MESSAGES}
    async with running(**options) as broker:
        await broker.create("t", PARTITIONS)
        yield broker


@pytest.mark.parametrize("codec", [CompressionType.NONE, CompressionType.GZIP])
async def test_look_up_passes_over_a_batch_that_is_too_large(
    broker: TestBroker, codec: CompressionType
) -> None:
    await produce(broker, one(LARGE, compression=codec))
    await ask(broker, LOOKUP, offset=0)

    peak = await peak_of(ask(broker, LOOKUP, offset=0))
    said = await ask(broker, LOOKUP, offset=0)

    assert said["record"]["record"] is None
    assert "bytes" in said["record"]["flaw"]
    assert 1 == said["record"]["batch"]["records"]
    assert peak < 4 * MIB


async def test_later_values_in_batches_that_are_too_large_are_not_read() -> None:
    options = HTTP | {"message_max_bytes": MESSAGES}
    async with running(**options) as broker:
        await broker.create("t", cleanup_policy="compact")
        await produce(broker, one(b"first", b"k"))
        await produce(broker, one(LARGE, b"k"))
        await produce(broker, one(b"last", b"k"))
        await ask(broker, LOOKUP, offset=0)

        peak = await peak_of(ask(broker, LOOKUP, offset=0))
        later = (await ask(broker, LOOKUP, offset=0))["record"]["later_values"]

    assert (1, 2, 1) == (later["count"], later["last_offset"], later["unreadable_batches"])
    assert peak < 4 * MIB


@pytest.mark.parametrize("content", [True, False])
async def test_records_pass_over_a_stored_batch_that_is_too_large(
    broker: TestBroker, *, content: bool
) -> None:
    await produce(broker, one(LARGE))
    await produce(broker, batch("b"))
    await ask(broker, RECORDS, content=content)

    peak = await peak_of(ask(broker, RECORDS, content=content))
    said = await ask(broker, RECORDS, content=content)
    behind = await ask(broker, RECORDS, content=content, offset=said["next_offset"])

    assert "the batch at offset 0 cannot be read" in said["flaw"]
    assert [1] == [record["offset"] for record in said["records"] + behind["records"]]
    assert peak < 4 * MIB


async def test_tail_of_many_partitions_has_the_contents_of_one_answer(broker: TestBroker) -> None:
    for index in range(PARTITIONS):
        await produce(broker, one(b"\x01" * (MIB // 2)), index)
    positions = ",".join(f"{index}:0" for index in range(PARTITIONS))
    seen: list[int] = []

    while len(seen) < PARTITIONS:
        said = await ask(broker, "/topics/t/tail", positions=positions, content_bytes=MIB)
        shown = sum(len(each["value"]["text"]) for each in said["records"])
        assert 0 < shown <= 2 * MOST_CONTENT_BYTES
        seen += [each["partition"] for each in said["records"]]
        positions = said["positions"]

    assert [*range(PARTITIONS)] == sorted(seen)


async def test_only_the_first_headers_of_a_record_are_shown(broker: TestBroker) -> None:
    await produce(broker, one(b"v", None, *[Header("name", b"w")] * (2 * MOST_HEADERS)))

    (record,) = (await ask(broker, RECORDS))["records"]

    assert MOST_HEADERS == len(record["headers"])
    assert 2 * MOST_HEADERS == record["header_count"]


async def test_list_of_groups_makes_views_of_its_page_alone(
    broker: TestBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    await broker.create("__consumer_offsets", 1, cleanup_policy="compact")
    async with await broker.client() as client:
        await client.ask(coordinator_request("g"), 4)
        for number in range(30):
            await client.ask(commit_request(f"g{number:02d}", "t", {0: 1}), 7)
    viewed: list[str] = []
    view = groups._view

    def counted(group: Any) -> Any:
        viewed.append(group.group_id)
        return view(group)

    monkeypatch.setattr(groups, "_view", counted)

    said = await ask(broker, "/groups", start=5, limit=2)

    assert ["g05", "g06"] == [each["id"] for each in said["groups"]] == viewed
    assert (7, 30) == (said["next"], said["total"])
