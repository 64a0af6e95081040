"""
Dashboards and alerts that were made for Apache Kafka find their metrics in a scrape.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from barnabas.protocol.errors import ErrorCode
from tests.support.group_requests import commit_request
from tests.support.http_client import get
from tests.support.server import (
    TestBroker,
    batch,
    fetch_request,
    fetch_topic,
    produce_request,
    running,
)

E = ErrorCode

OPTIONS: Final = {"barnabas_http_listener": "0", "offsets_topic_num_partitions": "1"}
TABLE: Final = Path(__file__).with_name("dashboard_queries.txt")
QUERIES: Final = [
    tuple(line.split("\t")) for line in TABLE.read_text().splitlines() if not line.startswith("#")
]
OF_TARGETS: Final = {
    "container",
    "instance",
    "job",
    "kafka_cluster",
    "kubernetes_pod_name",
    "namespace",
    "pod",
    "strimzi_io_cluster",
    "strimzi_io_name",
}
"""
Labels that Prometheus gives to everything that it scrapes from one broker.
"""
_SELECTOR: Final = re.compile(
    r"\b(?P<name>(?:kafka|process)_[a-z0-9_]+_[a-z0-9_]+|kafka_brokers|kafka_topic_partitions)\b"
    r"(?:\{(?P<matchers>[^}]*)\})?"
)
_MATCHER: Final = re.compile(r'(?P<label>\w+)(?P<how>=~|!~|!=|=)"(?P<value>[^"]*)"')
_COMPARISON: Final = re.compile(r"(?P<left>.*?)(?P<how>>|!=|==)\s*(?P<right>[0-9.]+)")
_HOW: Final[Mapping[str, Callable[[float, float], bool]]] = {
    ">": operator.gt,
    "!=": operator.ne,
    "==": operator.eq,
}


class Selector(NamedTuple):
    name: str
    matchers: str

    def found(self, samples: list[Sample]) -> list[Sample]:
        return [each for each in samples if each.name == self.name and self._matches(each.labels)]

    def _matches(self, labels: Mapping[str, str]) -> bool:
        for label, how, value in _MATCHER.findall(self.matchers):
            if label in OF_TARGETS:
                continue
            # A variable of Grafana stands for everything that was chosen: all.
            pattern = re.sub(r"\$\w+", ".*", value) if "~" in how else re.escape(value)
            is_match = re.fullmatch(pattern, labels.get(label, "")) is not None
            if is_match == how.startswith("!"):
                return False
        return True


def selectors(query: str) -> Iterator[Selector]:
    without_by = re.sub(r"\bby ?\([^)]*\)", "", query)
    for found in _SELECTOR.finditer(without_by):
        yield Selector(found["name"], found["matchers"] or "")


async def in_use(broker: TestBroker) -> None:
    """
    Let the broker have records, a consumer, and a group.
    """
    await broker.create("orders", 2)
    await broker.create("__consumer_offsets", 1, cleanup_policy="compact")
    async with await broker.client() as client:
        await client.ask(produce_request("orders", batch("a", "b")), 9)
        await client.ask(fetch_request(fetch_topic("orders", {0: 0})), 11)
        await client.ask(commit_request("office", "orders", {0: 1}), 8)


async def scraped(broker: TestBroker) -> list[Sample]:
    answer = await get(broker.http_port, "/metrics")
    return [
        sample
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    ]


def value(samples: list[Sample], name: str, **labels: str) -> float:
    (found,) = [each for each in samples if each.name == name and each.labels == labels]
    return found.value


async def test_queries_of_dashboards_and_alerts_find_data() -> None:
    async with running(**OPTIONS) as broker:
        await in_use(broker)
        samples = await scraped(broker)

    without_data = []
    for source, query in QUERIES:
        alternatives = [list(selectors(each)) for each in re.split(r"\bor\b", query)]
        assert any(alternatives), query
        if not any(asked and all(each.found(samples) for each in asked) for asked in alternatives):
            without_data.append((source, query))
    assert not without_data
    assert len(QUERIES) > 100


async def test_alerts_do_not_fire_on_a_sound_broker() -> None:
    async with running(**OPTIONS) as broker:
        await in_use(broker)
        samples = await scraped(broker)

    checked = 0
    for source, query in QUERIES:
        found = _COMPARISON.fullmatch(query)
        if not source.startswith("alerts") or found is None or "[" in query:
            continue
        checked += 1
        values = [
            sample.value
            for selector in selectors(found["left"])
            for sample in selector.found(samples)
        ]
        if found["left"].startswith("count"):
            values = [len(values)]
        elif found["left"].startswith("sum"):
            values = [sum(values)]
        threshold = float(found["right"])
        assert not [each for each in values if _HOW[found["how"]](each, threshold)], query
    assert checked > 8


async def test_requests_for_a_topic_are_counted_like_in_kafka() -> None:
    async with running(**OPTIONS) as broker:
        await in_use(broker)
        broken = bytearray(batch("c"))
        broken[-1] ^= 1
        right, wrong = (
            batch("d", producer_id=1, producer_epoch=0, base_sequence=sequence)
            for sequence in (0, 7)
        )
        errors = []
        async with await broker.client() as client:
            for records in (broken, right, wrong):
                answer = await client.ask(produce_request("orders", bytes(records)), 9)
                errors.append(answer.responses[0].partition_responses[0].error_code)
        samples = await scraped(broker)

    assert [E.CORRUPT_MESSAGE, E.NONE, E.OUT_OF_ORDER_SEQUENCE_NUMBER] == errors
    prefix = "kafka_server_brokertopicmetrics_"
    for labels in ({"topic": "orders"}, {}):
        extra = 0 if labels else 1  # the commit of the group
        assert 4 + extra == value(samples, f"{prefix}totalproducerequests_total", **labels)
        assert 1 == value(samples, f"{prefix}failedproducerequests_total", **labels)
        assert 1 == value(samples, f"{prefix}totalfetchrequests_total", **labels)
        assert 0 == value(samples, f"{prefix}failedfetchrequests_total", **labels)


async def test_fetch_that_fails_unexpectedly_is_counted() -> None:
    async with running(**OPTIONS) as broker:
        await in_use(broker)
        async with await broker.client() as client:
            for limit, offset in ((-1, 0), (100, 99)):
                request = fetch_request(fetch_topic("orders", {0: offset}), max_bytes=limit)
                await client.ask(request, 11)
        samples = await scraped(broker)

    name = "kafka_server_brokertopicmetrics_failedfetchrequests_total"
    assert 1 == value(samples, name, topic="orders")


async def test_cluster_of_one_node_leads_everything() -> None:
    async with running(**OPTIONS) as broker:
        await in_use(broker)
        samples = await scraped(broker)
        partitions = len(broker.partitions)
        log = broker.inside.controller.log

        assert partitions == value(samples, "kafka_server_replicamanager_leadercount")
        assert partitions == value(samples, "kafka_controller_kafkacontroller_globalpartitioncount")
        assert 2 == value(samples, "kafka_controller_kafkacontroller_globaltopiccount")
        assert log.epoch == value(samples, "kafka_server_raftmetrics_current_epoch")
        assert log.end_offset == value(samples, "kafka_server_raftmetrics_log_end_offset")
        assert 2 == value(samples, "kafka_topic_partitions", topic="orders")
        assert 2 == value(
            samples, "kafka_topic_partition_current_offset", topic="orders", partition="0"
        )


async def test_connections_are_counted_by_listener() -> None:
    listeners = {
        "listeners": "A://127.0.0.1:0,B://127.0.0.1:0",
        "listener_security_protocol_map": "A:PLAINTEXT,B:PLAINTEXT",
        "inter_broker_listener_name": "A",
    }
    async with running(**OPTIONS, **listeners) as broker:
        before = await scraped(broker)
        await in_use(broker)
        samples = await scraped(broker)

    prefix = "kafka_server_socket_server_metrics_connection_"
    assert 0 == value(before, f"{prefix}count", listener="A")
    assert 0 < value(samples, f"{prefix}creation_total", listener="A")
    assert 0 == value(samples, f"{prefix}creation_total", listener="B")
    assert 0 == value(samples, f"{prefix}count", listener="B")
    assert 0 < value(samples, f"{prefix}creation_rate", listener="A")
