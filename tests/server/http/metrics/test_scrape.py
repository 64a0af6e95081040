from __future__ import annotations

import asyncio

import pytest
from prometheus_client.metrics_core import Metric
from prometheus_client.openmetrics.parser import (
    text_string_to_metric_families as parse_open_metrics,
)
from prometheus_client.parser import text_string_to_metric_families as parse_text

from barnabas.protocol.records.batch import build_batch
from barnabas.protocol.records.record import SimpleRecord
from barnabas.server.http.metrics import endpoint, lag_times
from barnabas.server.http.metrics.families import FAMILIES, OWN
from barnabas.server.http.metrics.groups import MOST_OF_A_NAME
from barnabas.storage.log.log import Log
from barnabas.testing.disks.memory import MemoryFiles
from barnabas.testing.manual_clock import ManualClock
from tests.support.group_requests import commit_request
from tests.support.http_client import Answer, get
from tests.support.limits import stated
from tests.support.server import (
    START_MS,
    TestBroker,
    batch,
    fetch_request,
    fetch_topic,
    produce_request,
    running,
    until,
)
from tests.support.wire_client import WireClient

HTTP = {"barnabas_http_listener": "0", "offsets_topic_num_partitions": "1"}

pytestmark = pytest.mark.broker(**HTTP)
OPEN_METRICS = "application/openmetrics-text; version=1.0.0"


class Shown:
    def __init__(self, answer: Answer, parse=parse_text) -> None:  # type: ignore[no-untyped-def]
        assert 200 == answer.status, answer.body
        self.families: dict[str, Metric] = {}
        for family in parse(answer.text):
            assert family.name not in self.families
            self.families[family.name] = family
        self._samples = {
            (sample.name, frozenset(sample.labels.items())): sample.value
            for family in self.families.values()
            for sample in family.samples
        }
        assert len(self._samples) == sum(len(f.samples) for f in self.families.values())

    def value(self, name: str, **labels: str) -> float:
        return self._samples[name, frozenset(labels.items())]

    def of(self, name: str) -> dict[tuple[str, ...], float]:
        """
        All samples of a name, by the values of their labels in alphabetical order of the labels.
        """
        return {
            tuple(value for _, value in sorted(labels)): number
            for (sample, labels), number in self._samples.items()
            if sample == name
        }


async def scrape(broker: TestBroker, accept: str = "text/plain") -> Shown:
    answer = await get(broker.http_port, "/metrics", accept=accept)
    return Shown(answer, parse_open_metrics if "openmetrics" in accept else parse_text)


async def commit_offsets(
    broker: TestBroker, group_id: str, topic: str, *offsets: tuple[int, int]
) -> None:
    async with await broker.client() as client:
        answer = await client.ask(commit_request(group_id, topic, offsets, metadata=None), 7)
    codes = {each.error_code for topic_ in answer.topics for each in topic_.partitions}
    assert codes == {0}, answer


async def create_offsets_topic(broker: TestBroker) -> None:
    await broker.create("__consumer_offsets", 1, cleanup_policy="compact")


async def append(broker: TestBroker, topic: str, *values: str, partition: int = 0) -> None:
    async with await broker.client() as client:
        await client.ask(produce_request(topic, batch(*values), partition=partition), 9)


@pytest.mark.parametrize("accept", ["text/plain", OPEN_METRICS])
async def test_scrape_contains_exactly_the_documented_families(
    broker: TestBroker, accept: str
) -> None:
    shown = await scrape(broker, accept)
    own = {sample.name for sample in broker.metrics}

    assert {family.name for family in FAMILIES} == set(shown.families)
    assert own <= OWN.keys()


async def test_requests_and_their_errors_are_counted_by_api(broker: TestBroker) -> None:
    await broker.create("t")
    await append(broker, "t", "a")
    await append(broker, "t", "b")
    await append(broker, "nobody", "c")
    shown = await scrape(broker)

    requests = "kafka_network_requestmetrics_requests_total"
    assert 3 == shown.value(requests, request="Produce")
    assert 1 == shown.value(
        "kafka_network_requestmetrics_errors_total",
        request="Produce",
        error="UNKNOWN_TOPIC_OR_PARTITION",
    )
    times = "kafka_network_requestmetrics_totaltimems"
    assert 3 == shown.value(f"{times}_count", request="Produce")
    assert 3 == shown.value(f"{times}_bucket", request="Produce", le="+Inf")


async def test_waiting_fetch_is_measured_including_its_wait(
    broker: TestBroker, client: WireClient
) -> None:
    await broker.create("t")
    fetch = fetch_request(fetch_topic("t", {0: 0}), max_wait_ms=3000, min_bytes=1)
    waiting = asyncio.create_task(client.ask(fetch, 11))
    await until(lambda: broker.fetches.waiting)
    before = await scrape(broker)
    broker.clock.advance(3)  # type: ignore[attr-defined]
    await waiting
    after = await scrape(broker)

    times = "kafka_network_requestmetrics_totaltimems"
    assert 0 == before.value(f"{times}_count", request="Fetch")
    assert 3000 == after.value(f"{times}_sum", request="Fetch")
    assert 0 == after.value(f"{times}_bucket", request="Fetch", le="1000.0")
    assert 1 == after.value(f"{times}_bucket", request="Fetch", le="5000.0")
    purgatory = "kafka_server_delayedoperationpurgatory_purgatorysize"
    assert 1 == before.value(purgatory, delayedOperation="Fetch")


async def test_traffic_is_counted_per_topic_and_in_total(broker: TestBroker) -> None:
    """
    The total includes deleted topics.
    """
    await broker.create("kept", 2)
    await broker.create("gone")
    await append(broker, "kept", "a", "b")
    await append(broker, "kept", "c", partition=1)
    await append(broker, "gone", "d", "e", "f")
    async with await broker.client() as client:
        await client.ask(fetch_request(fetch_topic("kept", {0: 0, 1: 0})), 11)
    before = await scrape(broker)
    await broker.delete("gone")
    after = await scrape(broker)

    size = len(batch("a", "b")) + len(batch("c"))
    name = "kafka_server_brokertopicmetrics_{}_total"
    messages = name.format("messagesin")
    assert {("kept",): 3, ("gone",): 3, (): 6} == before.of(messages)
    assert {("kept",): 3, (): 6} == after.of(messages)
    assert size == after.value(name.format("bytesin"), topic="kept")
    assert size + len(batch("d", "e", "f")) == after.value(name.format("bytesin"))
    assert size == after.value(name.format("bytesout"), topic="kept")
    assert size == after.value(name.format("bytesout"))


async def test_waiting_fetch_counts_its_bytes_once(broker: TestBroker, client: WireClient) -> None:
    await broker.create("t")
    await append(broker, "t", "a")
    fetch = fetch_request(fetch_topic("t", {0: 0}), max_wait_ms=60_000, min_bytes=100)
    waiting = asyncio.create_task(client.ask(fetch, 11))
    await until(lambda: broker.fetches.waiting)
    await append(broker, "t", "b")
    await waiting
    shown = await scrape(broker)

    sent = len(batch("a")) + len(batch("b"))
    assert sent == shown.value("kafka_server_brokertopicmetrics_bytesout_total", topic="t")


async def test_logs_have_metrics_per_partition(broker: TestBroker) -> None:
    await broker.create("t", 2)
    await append(broker, "t", "a", "b", partition=1)
    shown = await scrape(broker)

    # In the order of the names: partition, topic.
    assert {("0", "t"): 0, ("1", "t"): len(batch("a", "b"))} == shown.of("kafka_log_log_size")
    assert {("0", "t"): 0, ("1", "t"): 2} == shown.of("kafka_log_log_logendoffset")
    assert {("0", "t"): 0, ("1", "t"): 0} == shown.of("kafka_log_log_logstartoffset")
    assert {("0", "t"): 1, ("1", "t"): 1} == shown.of("kafka_log_log_numlogsegments")


async def test_partitions_beyond_the_limit_are_aggregated() -> None:
    """
    Topics are counted in order of their names: two partitions of ``b`` fit, none of ``c`` and
    ``d``.
    """
    async with running(**HTTP, barnabas_http_metrics_partitions="3") as broker:
        for topic, partitions in (("d", 1), ("c", 2), ("b", 4), ("a", 1)):
            await broker.create(topic, partitions)
            for index in range(partitions):
                await append(broker, topic, "x", "y", partition=index)
        shown = await scrape(broker)

    assert {
        ("0", "a"): 2,
        ("0", "b"): 2,
        ("1", "b"): 2,
        ("(others)", "b"): 4,
        ("(others)", "(others)"): 6,
    } == shown.of("kafka_log_log_logendoffset")
    assert {("a",): 2, ("b",): 8, ("(others)",): 6, (): 16} == shown.of(
        "kafka_server_brokertopicmetrics_messagesin_total"
    )


async def test_partition_metrics_can_be_disabled() -> None:
    async with running(**HTTP, barnabas_http_metrics_partitions="0") as broker:
        await broker.create("t", 3)
        shown = await scrape(broker)

    assert {("(others)", "(others)"): 3} == shown.of("kafka_log_log_numlogsegments")


async def test_group_lag_is_exported(broker: TestBroker) -> None:
    await create_offsets_topic(broker)
    await broker.create("t", 3)
    await append(broker, "t", "a", "b", "c", "d")
    await append(broker, "t", "a", partition=1)
    await commit_offsets(broker, 'a "group"', "t", (0, 1), (1, 1))
    shown = await scrape(broker)

    group = 'a "group"'
    lag = shown.of("kafka_consumergroup_lag")
    assert {(group, "0", "t"): 3, (group, "1", "t"): 0} == lag
    # Three of four records of one batch.
    size = round(len(batch("a", "b", "c", "d")) * 3 / 4)
    assert {(group, "0", "t"): size, (group, "1", "t"): 0} == shown.of(
        "barnabas_consumergroup_lag_bytes"
    )
    assert 1 == shown.value("kafka_consumergroup_current_offset", **_labels(group, "t", 0))
    numbers = "kafka_coordinator_group_groupmetadatamanager_{}"
    assert 1 == shown.value(numbers.format("numgroups"))
    assert 2 == shown.value(numbers.format("numoffsets"))


async def test_lag_in_seconds_is_the_age_of_the_first_unread_record(broker: TestBroker) -> None:
    """
    The age is that of the batch. A group that has read everything has a lag of 0 seconds.
    """
    clock = broker.clock
    assert isinstance(clock, ManualClock)
    await create_offsets_topic(broker)
    await broker.create("t", 2)
    for seconds in (0, 10, 20):
        async with await broker.client() as client:
            records = batch("a", "b", timestamp=START_MS + 1000 * seconds)
            await client.ask(produce_request("t", records), 9)
    clock.advance(60)
    await commit_offsets(broker, "begins", "t", (0, 0), (1, 0))
    await commit_offsets(broker, "within", "t", (0, 3))
    await commit_offsets(broker, "done", "t", (0, 6))
    first = await scrape(broker)
    clock.advance(5)
    await commit_offsets(broker, "within", "t", (0, 4))
    second = await scrape(broker)

    name = "barnabas_consumergroup_lag_seconds"
    assert {
        ("begins", "0", "t"): 60,
        ("begins", "1", "t"): 0,
        ("within", "0", "t"): 50,
        ("done", "0", "t"): 0,
    } == first.of(name)
    assert 65 == second.value(name, **_labels("begins", "t", 0))
    assert 45 == second.value(name, **_labels("within", "t", 0))


async def test_record_times_for_the_lag_are_cached_and_limited(
    broker: TestBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lag_times, "MOST_LOOKUPS", 2)
    looked_up = []
    look_up = lag_times._time_of

    def time_of(log: Log, offset: int) -> int | None:
        looked_up.append(offset)
        return look_up(log, offset)

    monkeypatch.setattr(lag_times, "_time_of", time_of)
    await create_offsets_topic(broker)
    await broker.create("t")
    await append(broker, "t", "a", "b", "c")
    for number in range(3):
        await commit_offsets(broker, f"g{number}", "t", (0, 0))
    shown = [len((await scrape(broker)).of("barnabas_consumergroup_lag_seconds")) for _ in range(3)]

    assert [2, 3, 3] == shown
    assert [0, 0, 0] == looked_up


async def test_groups_beyond_the_limit_are_aggregated() -> None:
    async with running(**HTTP, barnabas_http_metrics_partitions="2") as broker:
        await create_offsets_topic(broker)
        await broker.create("t")
        await append(broker, "t", "a", "b", "c")
        await commit_offsets(broker, "x" * (MOST_OF_A_NAME + 1), "t", (0, 0))
        for number in range(4):
            await commit_offsets(broker, f"g{number}", "t", (0, 2))
        shown = await scrape(broker)

    others = ("(others)", "(others)", "(others)")
    assert {("g0", "0", "t"): 1, ("g1", "0", "t"): 1, others: 5} == shown.of(
        "kafka_consumergroup_lag"
    )


FORECAST = "barnabas_consumergroup_forecast_unread_{}"


async def foresee(broker: TestBroker, clock: ManualClock) -> None:
    """
    Run two forecasts more than an hour after all commits, so the groups have stopped.
    """
    assert broker.forecasts is not None
    await clock.pass_time(61 * 60)
    await broker.forecasts.check()


async def test_forecast_losses_are_exported() -> None:
    """
    A group without a loss has 0 bytes and records, and no seconds.
    """
    clock = ManualClock(START_MS)
    async with running(None, clock, **HTTP) as broker:
        await create_offsets_topic(broker)
        await broker.create("t", 2, retention_ms=str(7400_000))
        await append(broker, "t", "a", "b", "c", "d")
        await append(broker, "t", "a", partition=1)
        await commit_offsets(broker, 'a "group"', "t", (0, 1), (1, 0))
        await foresee(broker, clock)
        await commit_offsets(broker, 'a "group"', "t", (1, 1))
        await foresee(broker, clock)
        shown = await scrape(broker)

    group = 'a "group"'
    size = round(len(batch("a", "b", "c", "d")) * 3 / 4)
    lost = {(group, "0", "t"): size, (group, "1", "t"): 0}
    assert lost == shown.of(FORECAST.format("bytes"))
    assert {(group, "0", "t"): 3, (group, "1", "t"): 0} == shown.of(FORECAST.format("records"))
    seconds = shown.of(FORECAST.format("seconds"))
    assert [(group, "0", "t")] == list(seconds)
    assert 7400 - 2 * 61 * 60 <= seconds[group, "0", "t"] <= 7400 - 2 * 61 * 60 + 300


async def test_forecast_losses_of_groups_beyond_the_limit_are_aggregated() -> None:
    clock = ManualClock(START_MS)
    options = {**HTTP, "barnabas_http_metrics_partitions": "1"}
    async with running(None, clock, **options) as broker:
        await create_offsets_topic(broker)
        await broker.create("t", 1, retention_ms=str(7200_000))
        await append(broker, "t", "a", "b", "c", "d")
        await commit_offsets(broker, "x" * (MOST_OF_A_NAME + 1), "t", (0, 0))
        for number in range(3):
            await commit_offsets(broker, f"g{number}", "t", (0, number))
        await foresee(broker, clock)
        shown = await scrape(broker)

    others = ("(others)", "(others)", "(others)")
    assert {("g0", "0", "t"): 4, others: 4 + 3 + 2} == shown.of(FORECAST.format("records"))
    assert others in shown.of(FORECAST.format("seconds"))


async def test_scrape_creates_no_coordinator(broker: TestBroker) -> None:
    await scrape(broker)
    assert broker.inside.coordinators.group_coordinator is None


async def test_metric_series_limits_match_the_documentation() -> None:
    assert stated("lag-lookups") == lag_times.MOST_LOOKUPS
    async with running() as broker:
        assert stated("metrics-partitions") == broker.config.barnabas_http_metrics_partitions


async def test_metrics_of_a_failed_directory_are_still_exported(broker: TestBroker) -> None:
    await broker.create("t", 2)
    await broker.fail_directories()
    shown = await scrape(broker)

    assert 1 == shown.value("kafka_log_logmanager_offlinelogdirectorycount")


async def test_simultaneous_scrapes_share_one_text_and_are_limited(
    broker: TestBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    The metrics are read once for simultaneous requests. One request more than ``http-scrapes`` is
    answered with 503, and the health check is served meanwhile.
    """
    read = 0
    may_go_on = asyncio.Event()

    port = broker.http_port
    finish = broker.turns.finish

    async def slowly(*work):  # type: ignore[no-untyped-def]
        nonlocal read
        read += 1
        await may_go_on.wait()
        return await finish(*work)

    monkeypatch.setattr(broker.turns, "finish", slowly)
    scrapes = [asyncio.create_task(get(port, "/metrics")) for _ in range(endpoint.MOST_SCRAPES)]
    while not read:  # noqa: ASYNC110  # it tells nobody
        await asyncio.sleep(0.001)
    await asyncio.sleep(0.05)
    busy = await get(port, "/metrics")
    health = await get(port, "/healthz")
    may_go_on.set()
    answers = await asyncio.gather(*scrapes)
    later = await get(port, "/metrics")
    assert 2 == read

    assert stated("http-scrapes") == endpoint.MOST_SCRAPES
    assert (503, "1") == (busy.status, busy.headers["retry-after"])
    assert 200 == health.status
    assert [200] * endpoint.MOST_SCRAPES == [answer.status for answer in answers]
    assert 200 == later.status


@pytest.mark.parametrize(
    ("accept", "content_type"),
    [
        ("", "text/plain; version=0.0.4; charset=utf-8"),
        ("*/*", "text/plain; version=0.0.4; charset=utf-8"),
        ("application/openmetrics-text", "application/openmetrics-text; version=1.0.0"),
        (
            "application/openmetrics-text;version=1.0.0;q=0.6,text/plain;version=0.0.4;q=0.5",
            "application/openmetrics-text; version=1.0.0",
        ),
        ("application/openmetrics-text;version=x.y", "text/plain; version=0.0.4; charset=utf-8"),
        ("\x01\xff;;=,,", "text/plain; version=0.0.4; charset=utf-8"),
    ],
)
async def test_metrics_format_is_negotiated(
    broker: TestBroker, accept: str, content_type: str
) -> None:
    answer = await get(broker.http_port, "/metrics", accept=accept)

    assert answer.headers["content-type"].startswith(content_type)
    assert content_type.startswith("text") != answer.text.endswith("# EOF\n")


async def test_metrics_are_compressed_if_the_scraper_accepts_it(broker: TestBroker) -> None:
    port = broker.http_port
    await broker.create("t", 20)
    plain = await get(port, "/metrics")
    packed = await get(port, "/metrics", accept_encoding="deflate, gzip")

    assert "gzip" == packed.headers["content-encoding"]
    assert len(packed.body) < len(plain.body) / 4
    assert Shown(packed).of("kafka_log_log_size") == Shown(plain).of("kafka_log_log_size")
    assert str(len(packed.body)) == packed.headers["content-length"]


async def test_retention_and_cleaner_have_metrics() -> None:
    async with running(MemoryFiles(), **HTTP) as broker:
        await broker.create("t", 1, internal_segment_bytes="200", retention_bytes="0")
        for _ in range(4):
            await append(broker, "t", "x" * 100)
        broker.logs.maintenance.check_retention()
        shown = await scrape(broker)

    assert 4 == shown.value("barnabas_retention_deleted_segments_total")
    assert 0 == shown.value("barnabas_log_cleaner_cleanings_total")


async def test_cleanings_have_metrics() -> None:
    async with running(MemoryFiles(), **HTTP, log_cleaner_backoff_ms="1000000") as broker:
        await broker.create(
            "t",
            1,
            cleanup_policy="compact",
            internal_segment_bytes="300",
            min_cleanable_dirty_ratio="0.0",
        )
        async with await broker.client() as client:
            for _ in range(6):
                records = [SimpleRecord(START_MS, b"key", b"x" * 100)]
                await client.ask(produce_request("t", bytes(build_batch(records))), 9)
        while broker.cleaner.round():
            pass
        shown = await scrape(broker)

    assert 1 == shown.value("barnabas_log_cleaner_cleanings_total")
    read = shown.value("barnabas_log_cleaner_read_bytes_total")
    assert read > shown.value("barnabas_log_cleaner_written_bytes_total") > 0


def _labels(group: str, topic: str, partition: int) -> dict[str, str]:
    return {"consumergroup": group, "topic": topic, "partition": str(partition)}
