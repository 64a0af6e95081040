from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from barnabas.protocol.compression import CompressionType
from barnabas.protocol.records.batch import build_batch
from barnabas.protocol.records.record import Header, Record, SimpleRecord
from barnabas.server.http.api.app import LIMITS
from barnabas.server.http.api.explaining import MOST_READ_BYTES
from barnabas.server.http.api.records import MOST_CONTENT_BYTES, _control_type
from barnabas.testing.manual_clock import ManualClock
from tests.support.api_client import HTTP, ask, refused
from tests.support.server import START_MS, TestBroker, batch, produce_request, running, until
from tests.support.transactional_client import SECOND, TOPIC, Client, prepare

RECORDS = "/topics/t/partitions/0/records"
ALLOWED = HTTP | {"barnabas_http_records": "true"}


async def produce(broker: TestBroker, data: bytes, partition: int = 0) -> None:
    async with await broker.client() as client:
        answer = await client.ask(produce_request("t", data, partition=partition), 9)
        assert 0 == answer.responses[0].partition_responses[0].error_code


def one(value: bytes | None, key: bytes | None = None, *headers: Header, **options: Any) -> bytes:
    return bytes(build_batch([SimpleRecord(START_MS, key, value, headers)], **options))


def texts(said: Any) -> list[str]:
    return [record["value"]["text"] for record in said["records"]]


@pytest_asyncio.fixture
async def broker() -> AsyncIterator[TestBroker]:
    async with running(**ALLOWED) as broker:
        await broker.create("t", 2)
        yield broker


@pytest.mark.parametrize(
    "path",
    [
        RECORDS,
        f"{RECORDS}?content=true",
        f"{RECORDS}?content=false&contains=a",
        "/topics/t/tail",
        "/topics/t/tail?content=false&contains=a",
    ],
)
async def test_record_contents_are_hidden_unless_allowed(path: str) -> None:
    async with running(**HTTP) as broker:
        await broker.create("t")
        await produce(broker, one(b"secret", b"hidden", Header("name", b"silent")))
        status, sentence = await refused(broker, path)

    assert 403 == status
    assert "unless the broker has barnabas.http.records=true" in sentence


async def test_record_sizes_and_times_are_always_shown() -> None:
    async with running(**HTTP) as broker:
        await broker.create("t")
        await produce(broker, one(b"secret", b"hidden", Header("name", b"silent")))
        said = await ask(broker, RECORDS, content=False)
        followed = await ask(broker, "/topics/t/tail", content=False, positions="0:0")

    (record,) = said["records"]
    assert (0, START_MS, 6, 6, 1) == (
        record["offset"],
        record["timestamp"],
        record["key_size"],
        record["value_size"],
        record["header_count"],
    )
    assert (None, None, None) == (record["key"], record["value"], record["headers"])
    assert said["records"] == followed["records"]
    assert not any(word in str(said) for word in ("secret", "hidden", "name'", "silent"))


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (b"text", ("text", "text", False)),
        (b'{"a": [1, 1e999]}', ("json", '{"a": [1, 1e999]}', False)),
        (b"[" * 5000, ("text", "[" * 1024, True)),
        (b"{not json", ("text", "{not json", False)),
        (b"\xff\x00", ("hex", "ff00", False)),
        (b"nul \x00", ("hex", "6e756c2000", False)),
        (b"", ("text", "", False)),
        ("é".encode() * 600, ("text", "é" * 512, True)),
        (b"x" + "é".encode() * 600, ("text", "x" + "é" * 511, True)),
    ],
)
async def test_record_contents_are_shown_as_text_json_or_hex(
    broker: TestBroker, value: bytes, shown: tuple[str, str, bool]
) -> None:
    await produce(broker, one(value))
    said = await ask(broker, RECORDS)

    content = said["records"][0]["value"]
    assert shown == (content["format"], content["text"], content["is_cut"])
    assert len(value) == said["records"][0]["value_size"]


async def test_keys_nulls_and_headers_are_shown(broker: TestBroker) -> None:
    await produce(broker, one(None, b"k", Header("h", None), Header("h", b"\xfe")))
    (record,) = (await ask(broker, RECORDS))["records"]

    assert {"format": "text", "text": "k", "is_cut": False} == record["key"]
    assert (None, None) == (record["value"], record["value_size"])
    first, second = record["headers"]
    assert ("h", None, None) == (first["name"], first["size"], first["value"])
    assert ("h", 1, "fe") == (second["name"], second["size"], second["value"]["text"])


async def test_records_are_paged_within_batches(broker: TestBroker) -> None:
    await produce(broker, batch("a", "b", "c", compression=CompressionType.ZSTD))
    await produce(broker, batch("d"))

    first = await ask(broker, RECORDS, limit=2)
    rest = await ask(broker, RECORDS, offset=first["next_offset"])
    end = await ask(broker, RECORDS, offset=rest["next_offset"])

    assert (["a", "b"], 2) == (texts(first), first["next_offset"])
    assert (["c", "d"], 4) == (texts(rest), rest["next_offset"])
    assert ([], 4, 4) == (end["records"], end["next_offset"], end["high_watermark"])


async def test_records_are_found_by_time_and_from_the_end(broker: TestBroker) -> None:
    for number in range(4):
        await produce(broker, batch(str(number), timestamp=START_MS + number))

    assert ["2", "3"] == texts(await ask(broker, RECORDS, timestamp=START_MS + 2))
    assert ["3"] == texts(await ask(broker, RECORDS, last=1))
    assert 4 == len((await ask(broker, RECORDS, last=99))["records"])
    assert [] == (await ask(broker, RECORDS, timestamp=START_MS + 9))["records"]


@pytest.mark.parametrize(
    ("query", "status", "sentence"),
    [
        ({"offset": 9}, 404, "t-0 has the offsets 0 to 0, not 9"),
        ({"offset": 0, "last": 1}, 400, "give one of offset, timestamp and last"),
        ({"wait_ms": 30_001}, 400, "wait_ms is from 0 to 30000, not 30001"),
        ({"max_bytes": 10**9}, 400, "max_bytes is from 1 to 1048576"),
        ({"isolation": "none"}, 400, 'isolation is "read_uncommitted" or "read_committed"'),
        ({"content": "maybe"}, 400, "content is true or false"),
    ],
)
async def test_invalid_query_is_reported_by_field(
    broker: TestBroker, query: dict[str, object], status: int, sentence: str
) -> None:
    said = await refused(broker, RECORDS, **query)

    assert status == said[0]
    assert sentence in said[1]


async def test_filter_skips_other_records(broker: TestBroker) -> None:
    await produce(broker, batch("apple", "pear", "apples"))
    await produce(broker, one(b"x", b"apple"))

    said = await ask(broker, RECORDS, contains="apple")

    assert ["apple", "apples", "x"] == texts(said)
    assert 4 == said["next_offset"]


async def test_response_is_bounded_whatever_the_records_are(broker: TestBroker) -> None:
    """
    A control character is six bytes long in JSON.
    """
    for _ in range(5):
        await produce(broker, one(b"\x01" * 900_000))

    said = await ask(broker, RECORDS, max_bytes=1 << 20, content_bytes=1 << 20)
    rest = await ask(
        broker, RECORDS, max_bytes=1 << 20, content_bytes=1 << 20, offset=said["next_offset"]
    )

    shown = sum(len(record["value"]["text"]) for record in said["records"])
    assert 0 < shown <= MOST_CONTENT_BYTES
    assert 6 * MOST_CONTENT_BYTES < LIMITS.most_bytes
    assert said["next_offset"] < rest["next_offset"]


async def test_batch_that_would_take_too_much_memory_is_skipped(broker: TestBroker) -> None:
    await produce(broker, batch("a"))
    await produce(broker, one(bytes(MOST_READ_BYTES), compression=CompressionType.ZSTD))
    await produce(broker, batch("b"))

    said = await ask(broker, RECORDS, max_bytes=1 << 20)
    batches = await ask(broker, "/topics/t/partitions/0/segments/0/batches")

    assert ["a", "b"] == texts(said)
    assert "the batch at offset 1 cannot be read" in said["flaw"]
    assert [True, False, True] == [each["ratio"] is not None for each in batches["batches"]]


async def test_tail_request_waits_for_records(broker: TestBroker) -> None:
    begun = await ask(broker, "/topics/t/tail")
    waiting = asyncio.create_task(
        ask(broker, "/topics/t/tail", positions=begun["positions"], wait_ms=30_000)
    )
    partition = broker.partitions.expect("t", 1)
    await until(lambda: partition._watches)
    await produce(broker, batch("late"), 1)
    said = await waiting

    assert ("0:0,1:0", "0:0,1:1") == (begun["positions"], said["positions"])
    assert (["late"], 1) == (texts(said), said["records"][0]["partition"])
    assert not partition._watches


async def test_tail_of_one_partition_waits_and_may_end_empty(broker: TestBroker) -> None:
    clock = broker.clock
    assert isinstance(clock, ManualClock)
    waiting = asyncio.create_task(ask(broker, RECORDS, last=0, wait_ms=1000))
    await until(lambda: broker.partitions.expect("t", 0)._watches)
    clock.advance(1.001)
    said = await waiting

    assert ([], 0) == (said["records"], said["next_offset"])


async def test_disconnected_client_releases_its_waiting_request(broker: TestBroker) -> None:
    """
    Otherwise a page that is reloaded repeatedly would use up all places.
    """
    _, writer = await asyncio.open_connection("127.0.0.1", broker.http_port)
    writer.write(b"GET /api/v1/topics/t/tail?wait_ms=30000 HTTP/1.1\r\nhost: localhost\r\n\r\n")
    partition = broker.partitions.expect("t", 0)
    await until(lambda: partition._watches)

    writer.close()

    await until(lambda: not partition._watches)


async def test_number_of_waiting_requests_is_limited(broker: TestBroker) -> None:
    partition = broker.partitions.expect("t", 0)
    waiting = [
        asyncio.create_task(ask(broker, RECORDS, last=0, wait_ms=30_000))
        for _ in range(LIMITS.most_waiting)
    ]
    await until(lambda: len(partition._watches) == LIMITS.most_waiting)

    status, sentence = await refused(broker, RECORDS)
    others = await ask(broker, "/topics")
    await produce(broker, batch("x"))

    assert (503, "16 requests wait already") == (status, sentence)
    assert 1 == others["total"]
    assert [["x"]] * LIMITS.most_waiting == [texts(await each) for each in waiting]


async def test_invalid_positions_are_reported(broker: TestBroker) -> None:
    status, sentence = await refused(broker, "/topics/t/tail", positions="0:x")

    assert (400, "positions are partition:offset,partition:offset, not '0:x'") == (status, sentence)


async def test_tail_positions_are_adjusted_to_the_log(broker: TestBroker) -> None:
    """
    A missing partition starts at its beginning, and an offset behind the end becomes the end.
    """
    await produce(broker, batch("a"))
    said = await ask(broker, "/topics/t/tail", positions="1:99,7:3")

    assert ["a"] == texts(said)
    assert "0:1,1:0" == said["positions"]


@pytest.mark.parametrize(
    ("key", "name"),
    [(b"\0\0\0\1", "commit"), (b"\0\0\0\x63", "unknown"), (b"\0", "unknown"), (None, "unknown")],
)
def test_control_record_with_a_malformed_key_has_an_unknown_type(
    key: bytes | None, name: str
) -> None:
    assert name == _control_type(Record(0, 0, key, b""))


async def test_read_committed_queries_return_only_committed_records() -> None:
    async with running(**ALLOWED) as broker:
        await prepare(broker, 1)
        path = f"/topics/{TOPIC}/partitions/0"
        async with await broker.client() as wire:
            client = Client(wire, SECOND)
            await client.init()
            for value, commit in (("gone", False), ("kept", True)):
                await client.produce(value)
                await client.end(commit=commit)
            await client.produce("open")
            committed = await ask(broker, f"{path}/records", isolation="read_committed")
            everything = await ask(broker, f"{path}/records")
            producers = await ask(broker, f"{path}/producers")
            transactions = await ask(broker, "/transactions")
            transaction = await ask(broker, "/transaction", id="tx")

    data = [record for record in committed["records"] if record["control_type"] is None]
    assert ["kept"] == texts({"records": data})
    assert ["abort", "commit"] == [
        record["control_type"] for record in everything["records"] if record["control_type"]
    ]
    assert 5 == len(everything["records"])
    assert committed["last_stable_offset"] == 4
    (producer,) = producers["producers"]
    assert 4 == producer["current_txn_start_offset"]
    assert [("tx", "Ongoing", 1)] == [
        (each["id"], each["state"], each["partitions"]) for each in transactions["transactions"]
    ]
    assert [{"topic": TOPIC, "partition": 0}] == transaction["partition_list"]
