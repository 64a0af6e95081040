"""
``barnabas serve --read-only`` on directories of Apache Kafka: real clients read everything, and no
byte changes.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

import pytest
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from kafka import KafkaConsumer  # type: ignore[import-untyped]  # it has none

from tests.interop.committed import group_offsets
from tests.interop.numbered import (
    PARTITIONS,
    PATIENCE_S,
    read_in_group,
    read_whole,
    send_all,
    transact,
)
from tests.interop.tools.toolbox import TOOLS
from tests.support.apache_kafka import CLUSTER_ID, ApacheKafka, class_path, java
from tests.support.broker_process import Barnabas, BrokerProcess, free_port
from tests.support.commands import run
from tests.support.fingerprint import fingerprint

pytestmark = [pytest.mark.interop, pytest.mark.prove]

RECORDS: Final = 20_000
TOPIC, TRANSACTIONS, GROUP = "orders", "payments", "readers"
READ: Final = 500
"""The records that the group has read."""
NODES: Final = 3


class Shown(Barnabas):
    """
    A read-only broker on a directory of another one.
    """

    def __init__(self, directory: Path, data: Path, **settings: str) -> None:
        super().__init__(directory, settings=settings)
        self.data = data

    def command(self) -> list[str]:
        return [*super().command(), "--read-only"]


@contextmanager
def shown(directory: Path, data: Path, **settings: str) -> Iterator[BrokerProcess]:
    """
    A read-only broker as long as the block: the directory is the same before, while it runs and
    after it.
    """
    before = fingerprint(data)
    with Shown(directory, data, **settings) as broker:
        yield broker
        assert before == fingerprint(data)
        assert 0 == broker.stop()
    assert before == fingerprint(data)


def create(bootstrap: str, *topics: NewTopic) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for future in admin.create_topics([*topics]).values():
        future.result(30)


def committed(bootstrap: str) -> int:
    offsets = group_offsets(bootstrap, GROUP).values()
    return sum(offset for offset in offsets if offset > 0)


@pytest.fixture(scope="module", params=["stopped", "killed"])
def kafka_directory(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, set[int], int]:
    """
    The directory of an Apache Kafka, the numbers that were committed in transactions, and what the
    group has committed.
    """
    settings = {"offsets.topic.num.partitions": "2", "transaction.state.log.num.partitions": "2"}
    with ApacheKafka(tmp_path_factory.mktemp(request.param), settings=settings) as kafka:
        configs = {"retention.ms": "-1", "segment.bytes": "1048576"}
        create(
            kafka.bootstrap,
            NewTopic(TOPIC, PARTITIONS, config=configs),
            NewTopic(TRANSACTIONS, PARTITIONS),
        )
        send_all(kafka.bootstrap, TOPIC, range(RECORDS))
        numbers = transact(kafka.bootstrap, TRANSACTIONS)
        read_in_group(kafka.bootstrap, TOPIC, READ, GROUP)
        read = committed(kafka.bootstrap)
        if request.param == "stopped":
            kafka.stop()
        else:
            kafka.kill()
    return kafka.data, numbers, read


def test_readonly_broker_serves_everything_and_changes_nothing(
    kafka_directory: tuple[Path, set[int], int], tmp_path: Path
) -> None:
    data, numbers, read = kafka_directory
    with shown(tmp_path, data) as broker:
        assert list(range(RECORDS)) == sorted(read_whole(broker.bootstrap, TOPIC))
        assert sorted(numbers) == sorted(read_whole(broker.bootstrap, TRANSACTIONS))
        assert list(range(RECORDS)) == sorted(read_with_kafka_python(broker.bootstrap))

        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        assert CLUSTER_ID == admin.list_topics(timeout=30).cluster_id
        listed = admin.list_consumer_groups().result(30).valid
        assert GROUP in {each.group_id for each in listed}
        assert read == committed(broker.bootstrap)

        # The group goes on in memory, for this broker only.
        left = read_in_group(broker.bootstrap, TOPIC, RECORDS - read, GROUP)
        assert RECORDS - read == len(left)
        assert RECORDS == committed(broker.bootstrap)
    with shown(tmp_path, data) as broker:
        assert read == committed(broker.bootstrap)


def read_with_kafka_python(bootstrap: str) -> list[int]:
    consumer = KafkaConsumer(
        bootstrap_servers=bootstrap,
        group_id="another",
        auto_offset_reset="earliest",
        consumer_timeout_ms=PATIENCE_S * 1000,
    )
    consumer.subscribe([TOPIC])
    found: list[int] = []
    for record in consumer:
        found.append(int(record.value))
        if len(found) == RECORDS:
            break
    consumer.close()
    return found


def tool(name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return run(*java(TOOLS[name], *arguments, level="error"), seconds=PATIENCE_S)


def test_kafka_tools_can_read_and_are_refused_changes(
    kafka_directory: tuple[Path, set[int], int], tmp_path: Path
) -> None:
    data, _, _ = kafka_directory
    with shown(tmp_path, data) as broker:
        server = ("--bootstrap-server", broker.bootstrap)
        read = tool(
            "kafka-console-consumer",
            *server,
            *("--topic", TOPIC, "--from-beginning", "--max-messages", str(RECORDS)),
        )
        assert RECORDS == len(read.stdout.splitlines()), read.stderr

        groups = tool("kafka-consumer-groups", *server, "--describe", "--group", GROUP)
        assert TOPIC in groups.stdout, groups.stderr

        created = tool("kafka-topics", *server, "--create", "--topic", "new")
        assert "read-only" in created.stdout + created.stderr
        assert created.returncode != 0


def error_of(bootstrap: str, options: Mapping[str, object]) -> str:
    """
    The error of a record that is sent, which comes at once.
    """
    errors: list[object] = []
    producer = Producer({"bootstrap.servers": bootstrap, **options})
    producer.produce(TOPIC, b"no", on_delivery=lambda error, _message: errors.append(error))
    try:
        assert 0 == producer.flush(30)
    except (KafkaException, SystemError) as error:  # a fatal one, while others are delivered
        return repr(error.__cause__ or error)
    return repr(errors)


def test_producers_are_refused_permanently(
    kafka_directory: tuple[Path, set[int], int], tmp_path: Path
) -> None:
    """
    Plain, idempotent and transactional: each hears of it at once, and tries no more.
    """
    data, _, _ = kafka_directory
    with shown(tmp_path, data) as broker:
        for options in ({"enable.idempotence": False}, {"enable.idempotence": True}):
            assert "AUTHORIZATION" in error_of(broker.bootstrap, options)
        transactional = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": "t"})
        with pytest.raises(KafkaException, match="AUTHORIZATION"):
            transactional.init_transactions(30)


# A node of a cluster.


def cluster_of_three(directory: Path) -> list[ApacheKafka]:
    ports = [free_port() for _ in range(NODES)]
    nodes = [
        ApacheKafka(directory / f"node{number}", heap="384m") for number in range(1, NODES + 1)
    ]
    voters = ",".join(f"{n}@127.0.0.1:{port}" for n, port in enumerate(ports, 1))
    for number, (node, port) in enumerate(zip(nodes, ports, strict=True), 1):
        node._controller_port = port
        node.settings = {
            "node.id": str(number),
            "controller.quorum.voters": voters,
            "offsets.topic.num.partitions": "2",
            "offsets.topic.replication.factor": "3",
        }
    return nodes


def test_node_of_a_cluster_is_served_readonly_alone(tmp_path: Path) -> None:
    """
    Its partitions have other leaders, and the quorum other voters. What has no replica on this node
    has no leader.
    """
    class_path()
    nodes = cluster_of_three(tmp_path)
    everywhere, elsewhere = NewTopic(TOPIC, PARTITIONS, NODES), NewTopic("single", 3, 1)
    with ExitStack() as cleanup:
        for node in nodes:
            cleanup.callback(node.close)
            node.launch()
        for node in nodes:
            wait_until_ready(node)
        bootstrap = ",".join(node.bootstrap for node in nodes)
        create(bootstrap, everywhere, elsewhere)
        send_all(bootstrap, TOPIC, range(RECORDS))
        read_in_group(bootstrap, TOPIC, READ, GROUP)
        read = committed(bootstrap)
        for node in nodes:
            node.kill()

    for number, node in enumerate(nodes, 1):
        with shown(tmp_path / f"shown{number}", node.data) as broker:
            described = AdminClient({"bootstrap.servers": broker.bootstrap}).list_topics(timeout=30)
            assert [number] == list(described.brokers)
            leaders = {p.leader for p in described.topics[TOPIC].partitions.values()}
            assert {number} == leaders
            single = [p.leader for p in described.topics["single"].partitions.values()]
            assert [-1, -1, number] == sorted(single)
            assert list(range(RECORDS)) == sorted(read_whole(broker.bootstrap, TOPIC))
            assert read == committed(broker.bootstrap)


def wait_until_ready(node: ApacheKafka) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not node.is_ready():
        assert node.is_running, node.log_text()[-3000:]
        assert time.monotonic() < deadline, f"{node.directory} is not ready"
        time.sleep(0.1)
