from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from barnabas.protocol.compression import CompressionType
from barnabas.protocol.records.batch import build_batch
from barnabas.protocol.records.record import SimpleRecord
from barnabas.server.http.api.rates import SAMPLE_S
from barnabas.server.transactions.coordinator import TransactionCoordinator
from barnabas.testing.disks.memory import MemoryFiles
from barnabas.testing.manual_clock import ManualClock
from tests.support.api_client import HTTP, ask, refused
from tests.support.group_requests import coordinator_request
from tests.support.server import START_MS, TestBroker, batch, produce_request, running, until
from tests.support.transactional_client import FIRST, Client

TOPIC = "/topics/orders"
PARTITION = f"{TOPIC}/partitions/0"


async def produce(broker: TestBroker, topic: str, data: bytes, partition: int = 0) -> None:
    async with await broker.client() as client:
        answer = await client.ask(produce_request(topic, data, partition=partition), 9)
        assert 0 == answer.responses[0].partition_responses[0].error_code


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(START_MS)


@pytest_asyncio.fixture
async def broker(clock: ManualClock) -> AsyncIterator[TestBroker]:
    async with running(MemoryFiles(clock.now_ms), clock, **HTTP) as broker:
        size = len(batch("0" * 100))
        await broker.create("orders", 2, internal_segment_bytes=str(2 * size + 10))
        for number in range(5):
            await produce(broker, "orders", batch(f"{number}" * 100, timestamp=START_MS + number))
        yield broker


async def test_api_summarises_the_cluster(broker: TestBroker) -> None:
    said = await ask(broker, "/cluster")

    assert (1, 2, 4, 0) == (
        said["topics"],
        said["partitions"],
        said["segments"],
        said["offline_partitions"],
    )
    assert (START_MS, "RUNNING", False) == (said["now_ms"], said["state"], said["records_allowed"])
    (directory,) = said["directories"]
    assert ("/data", True, 2, said["size"]) == (
        directory["path"],
        directory["is_online"],
        directory["partitions"],
        directory["size"],
    )
    assert [] == said["attention"]


async def test_rates_are_measured_between_two_requests(
    broker: TestBroker, clock: ManualClock
) -> None:
    first = await ask(broker, "/topics")
    clock.advance(SAMPLE_S)
    for _ in range(10):
        await produce(broker, "orders", batch("x"))
    (topic,) = (await ask(broker, "/topics"))["topics"]
    cluster = await ask(broker, "/cluster")

    assert first["topics"][0]["rates"] is None
    assert (SAMPLE_S, 10 / SAMPLE_S) == (topic["rates"]["over_s"], topic["rates"]["records_in"])
    assert 10 * len(batch("x")) / SAMPLE_S == topic["rates"]["bytes_in"]
    assert topic["rates"] == cluster["rates"]
    assert 15 == topic["records_in"]


async def test_topics_are_sorted_filtered_and_paged(broker: TestBroker) -> None:
    await broker.create("alpha")
    await broker.create("beta", 3)

    by_name = await ask(broker, "/topics", limit=2)
    rest = await ask(broker, "/topics", start=2, limit=2)
    by_size = await ask(broker, "/topics", sort="size", limit=1)
    by_partitions = await ask(broker, "/topics", sort="partitions", limit=1)
    some = await ask(broker, "/topics", contains="et")

    assert ["alpha", "beta"] == [each["name"] for each in by_name["topics"]]
    assert (2, 3) == (by_name["next"], by_name["total"])
    assert (["orders"], None) == ([each["name"] for each in rest["topics"]], rest["next"])
    assert ["orders"] == [each["name"] for each in by_size["topics"]]
    assert ["beta"] == [each["name"] for each in by_partitions["topics"]]
    assert (["beta"], 1) == ([each["name"] for each in some["topics"]], some["total"])


async def test_topic_is_shown_with_partitions_and_settings(broker: TestBroker) -> None:
    said = await ask(broker, TOPIC)

    assert (2, 4) == (said["partitions"], said["segments"])
    first, second = said["partition_list"]
    assert (0, 5, 5, 3) == (
        first["log_start_offset"],
        first["high_watermark"],
        first["log_end_offset"],
        first["segments"],
    )
    assert (1, 0, "/data", None) == (
        second["partition"],
        second["size"],
        second["directory"],
        second["error"],
    )
    assert {"value": "604800000", "source": "default"} == said["settings"]["retention.ms"]


async def test_timeline_has_all_segments_in_columns(broker: TestBroker) -> None:
    said = await ask(broker, PARTITION, set=["retention.ms=1000"], at=START_MS + 1002)

    segments = said["segments"]
    assert [0, 2, 4] == segments["base_offset"]
    assert [2, 4, 5] == segments["end_offset"]
    assert [START_MS + 1, START_MS + 3, START_MS + 4] == segments["largest_timestamp"]
    assert ["rolled", "rolled", "active"] == segments["cause"]
    assert ["size", "size", None] == segments["reason"]
    assert ["retention_ms", None, None] == segments["goes_by"]
    assert ["retention_ms"] * 3 == segments["rule"]
    assert {"value": "1000", "source": "supposed"} == said["settings"]["retention.ms"]
    assert said["cleaning"] is None
    assert "part" not in segments
    assert {len(column) for column in segments.values()} == {3}


async def test_timeline_may_omit_the_reasons_of_rolls(broker: TestBroker) -> None:
    whole = await ask(broker, PARTITION, at=START_MS)
    quick = await ask(broker, PARTITION, at=START_MS, endings="false")

    assert {"cause", "reason", "certainty"} == whole["segments"].keys() - quick["segments"].keys()
    assert quick["segments"] == {name: whole["segments"][name] for name in quick["segments"]}


async def test_segment_is_shown_with_files_and_reasons(broker: TestBroker) -> None:
    said = await ask(broker, f"{PARTITION}/segments/2")

    assert 2 == said["segment"]["base_offset"]
    assert said["segment"]["words"]["ended"]
    assert said["size"] == said["segment"]["size"]
    assert {"00000000000000000002.log", "00000000000000000002.index"} <= {
        each["name"] for each in said["files"]
    }
    assert 1 == said["indexes"]["time"]["entries"]


async def test_index_entries_are_those_of_the_file(broker: TestBroker) -> None:
    times = await ask(broker, f"{PARTITION}/segments/2/index/time")
    offsets = await ask(broker, f"{PARTITION}/segments/2/index/offset")

    assert [{"timestamp": START_MS + 3, "offset": 3}] == times["entries"]
    assert ([], None, 0) == (offsets["entries"], offsets["next"], offsets["total"])


async def test_index_entries_are_paged(broker: TestBroker) -> None:
    await broker.create("indexed", index_interval_bytes="0")
    for number in range(5):
        await produce(broker, "indexed", batch("x", timestamp=START_MS + number))

    said = await ask(
        broker, "/topics/indexed/partitions/0/segments/0/index/offset", start=1, limit=2
    )

    assert [2, 3] == [each["offset"] for each in said["entries"]]
    assert (3, 4) == (said["next"], said["total"])


async def test_batches_are_described(broker: TestBroker) -> None:
    data = batch("x" * 1000, "y" * 1000, compression=CompressionType.GZIP)
    await produce(broker, "orders", data, 1)

    said = await ask(broker, f"{TOPIC}/partitions/1/segments/0/batches")

    (found,) = said["batches"]
    assert ("gzip", len(data), 2, 0, 1) == (
        found["codec"],
        found["size"],
        found["records"],
        found["base_offset"],
        found["last_offset"],
    )
    assert found["uncompressed_size"] > 2000
    assert found["ratio"] > 10
    assert found["is_valid"]
    assert (None, len(data)) == (said["next_position"], said["segment_size"])


async def test_batches_are_paged_by_position(broker: TestBroker) -> None:
    first = await ask(broker, f"{PARTITION}/segments/0/batches", limit=1)
    second = await ask(broker, f"{PARTITION}/segments/0/batches", position=first["next_position"])
    status, sentence = await refused(broker, f"{PARTITION}/segments/0/batches", position=7)

    assert [0] == [each["base_offset"] for each in first["batches"]]
    assert [1] == [each["base_offset"] for each in second["batches"]]
    assert second["next_position"] is None
    assert (400, "no batch begins at the position 7") == (status, sentence)


async def test_offset_lookup_returns_every_step(broker: TestBroker) -> None:
    said = await ask(broker, f"{PARTITION}/lookup", offset=3)

    assert (3, 2, 2) == (
        said["offset"]["offset"],
        said["offset"]["segment"],
        said["offset"]["scanned_batches"],
    )
    assert said["offset"]["words"]
    assert said["time"] is None
    assert 3 == said["record"]["record"]["offset"]
    assert 2 == said["segment"]["base_offset"]


async def test_time_lookup_begins_in_the_time_index(broker: TestBroker) -> None:
    said = await ask(broker, f"{PARTITION}/lookup", timestamp=START_MS + 3)

    assert (1, 3) == (said["time"]["passed_segments"], said["time"]["found"]["offset"])
    assert 3 == said["offset"]["offset"]


async def test_record_key_is_hidden_like_other_contents(broker: TestBroker) -> None:
    data = bytes(build_batch([SimpleRecord(START_MS, b"secret", b"v")]))
    await produce(broker, "orders", data, 1)

    looked = await ask(broker, f"{TOPIC}/partitions/1/lookup", offset=0)
    explained = await ask(broker, f"{TOPIC}/partitions/1/explain", offset=0)

    assert "secret" not in str(looked)
    assert "secret" not in str(explained)
    assert "a key of 6 bytes" in str(looked["record"]["words"])


@pytest.mark.parametrize(
    ("path", "status", "sentence"),
    [
        ("/topics/none", 404, "there is no topic none: GET /api/v1/topics lists all"),
        (f"{TOPIC}/partitions/2", 404, "the topic orders has no partition 2, but 2"),
        (f"{TOPIC}/partitions/-1", 404, "the topic orders has no partition -1, but 2"),
        (f"{TOPIC}/partitions/{'9' * 5000}", 404, "the topic orders has no partition 999"),
        (f"{TOPIC}/partitions/%D9%A1", 404, "the topic orders has no partition \u0661, but 2"),
        (
            f"{PARTITION}/segments/1",
            404,
            "orders-0 has no segment with the base offset 1",
        ),
        (f"{PARTITION}/segments/x/batches", 404, "orders-0 has no segment with the base offset x"),
        (f"{PARTITION}/segments/{2**63}/batches", 404, "orders-0 has no segment"),
        (f"{PARTITION}/segments/..%2F..%2Fx/batches", 404, "there is no /api/v1/topics/orders"),
        (f"{PARTITION}/segments/0/index/other", 404, "there is no index other, but offset, time"),
        (f"{PARTITION}/lookup?offset=99", 404, "Offset 99 is out of range"),
        (f"{PARTITION}/lookup", 400, "a look-up needs an offset or a timestamp, and not both"),
        (f"{PARTITION}/lookup?offset=-1", 400, "offset is from 0 to 92"),
        (f"{PARTITION}/lookup?offset=0&timestamp=1", 400, "a look-up needs an offset or"),
        (f"{PARTITION}/lookup?timestamp=yesterday", 400, "'yesterday' is not a time"),
        (f"{PARTITION}?set=retention.ms", 400, "set=retention.ms: it must look like set=name="),
        (f"{PARTITION}?set=retention.ms=x", 400, "Invalid value x for configuration retention.ms"),
        (f"{PARTITION}?set=no.option=1", 400, "Unknown"),
        (f"{PARTITION}/explain?segment=0&offset=0", 400, "there are several questions"),
        ("/topics?limit=0", 400, "limit is from 1 to 10000, not 0"),
        ("/topics?start=-1", 400, "start is at least 0, not -1"),
        ("/topics?start=99999999999999999999999", 400, "start is a whole number, not"),
        ("/topics?start=1&start=2", 400, "the field start is there twice"),
        ("/topics?sort=colour", 400, 'sort is "name" or "size" or'),
        ("/topics?colour=red", 400, "there is no field colour"),
        ("/cluster?x=1", 400, "there is no field x (there are none)"),
        ("/nothing", 404, "there is no /api/v1/nothing"),
        ("/transaction", 400, "the field id is missing: a text"),
        ("/group?id=none", 404, "there is no group 'none': GET /api/v1/groups lists all"),
    ],
)
async def test_missing_or_invalid_resource_is_reported(
    broker: TestBroker, path: str, status: int, sentence: str
) -> None:
    said = await refused(broker, path)

    assert status == said[0]
    assert sentence in said[1]


async def test_times_outside_the_datetime_range_are_returned(broker: TestBroker) -> None:
    for at in (253_402_300_800_000, -1, 2**63 - 1, 10**30):
        said = await ask(broker, PARTITION, at=at)
        assert at == said["now_ms"]


async def test_offline_partitions_are_listed(broker: TestBroker) -> None:
    await broker.fail_directories()
    await until(lambda: broker.partitions.expect("orders", 0).error)

    cluster = await ask(broker, "/cluster")
    topic = await ask(broker, TOPIC)
    kinds = {each["kind"] for each in cluster["attention"]}
    status, _ = await refused(broker, f"{PARTITION}/segments/0/batches")

    assert {"offline_directory", "offline_partition"} == kinds
    assert (2, 2) == (cluster["offline_partitions"], topic["offline_partitions"])
    assert {"path": "/data", "is_online": False}.items() <= cluster["directories"][0].items()
    assert all(each["error"] for each in topic["partition_list"])
    assert 503 == status


async def test_transaction_that_stays_open_is_listed(
    broker: TestBroker, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    The coordinator aborts late transactions unless something is wrong.
    """

    async def not_now(_: object) -> None: ...

    monkeypatch.setattr(TransactionCoordinator, "abort_timed_out", not_now)
    await broker.create("tx-topic")
    async with await broker.client() as wire:
        answer = await wire.ask(coordinator_request("any", key_type=1), 6)
        assert 0 == answer.coordinators[0].error_code
        client = Client(wire, FIRST)
        await client.init(timeout_ms=60_000)
        await client.add(0, topic="tx-topic")
        early = await ask(broker, "/cluster")
        clock.advance(120)
        late = await ask(broker, "/cluster")

    (found,) = late["attention"]
    assert [] == early["attention"]
    assert ("stuck_transaction", "tx") == (found["kind"], found["transactional_id"])
    assert "is open for 120000 ms; its timeout is 60000 ms" in found["says"]
