"""
MirrorMaker 2 copies the topics of a broker that serves to Apache Kafka, and back.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Final

import pytest
from confluent_kafka.admin import AdminClient

from tests.interop.clients.confluent import ConfluentSession
from tests.interop.connect_worker import PATIENCE, Worker
from tests.interop.numbered import PARTITIONS, Sender, read_whole, send_all, transact
from tests.support.apache_kafka import library
from tests.support.both_brokers import BothBrokers
from tests.support.broker_process import BrokerProcess, wait_for

pytestmark = [pytest.mark.interop, pytest.mark.prove]

RECORDS: Final = 1_000_000
TOPIC: Final = "orders"
TRANSACTIONS: Final = "payments"
CONVERTER: Final = "org.apache.kafka.connect.converters.ByteArrayConverter"


@pytest.fixture
def both(tmp_path: Path) -> Iterator[BothBrokers]:
    # The worker's timeouts are short.
    settings = {"group.min.session.timeout.ms": "1000", "offsets.topic.num.partitions": "2"}
    with BothBrokers.side_by_side(tmp_path, settings) as running:
        yield running.start()


def end_of(broker: BrokerProcess, topic: str) -> int:
    """
    How many committed records are there.
    """
    metadata = AdminClient({"bootstrap.servers": broker.bootstrap}).list_topics(timeout=PATIENCE)
    if topic not in metadata.topics or len(metadata.topics[topic].partitions) < PARTITIONS:
        return 0
    return len(read_whole(broker.bootstrap, topic))


@pytest.mark.parametrize("direction", ["to Apache Kafka", "from Apache Kafka"])
def test_mirror_maker_copies_topics_exactly_once(
    both: BothBrokers, tmp_path: Path, direction: str
) -> None:
    """
    While records come in, Barnabas is killed and so is the worker.
    """
    jars = library("connect-mirror")
    source, target = both.barnabas, both.kafka
    if direction == "from Apache Kafka":
        source, target = target, source
    with ConfluentSession(source.bootstrap) as session:
        session.create(TOPIC, PARTITIONS, configs={"retention.ms": "86400000"})
        session.create(TRANSACTIONS, PARTITIONS)
    send_all(source.bootstrap, TOPIC, range(RECORDS))
    committed = transact(source.bootstrap, TRANSACTIONS)
    worker = Worker(tmp_path / "worker", target, jars)
    sender = None
    try:
        worker.start()
        settings = {
            "source.cluster.alias": "one",
            "target.cluster.alias": "two",
            "source.cluster.bootstrap.servers": source.bootstrap,
            "target.cluster.bootstrap.servers": target.bootstrap,
            "topics": f"{TOPIC},{TRANSACTIONS}",
            "replication.factor": "1",
            "offset-syncs.topic.replication.factor": "1",
            "source.consumer.isolation.level": "read_committed",
            "key.converter": CONVERTER,
            "value.converter": CONVERTER,
        }
        worker.run_connector("mirror", "mirror.MirrorSourceConnector", settings)
        sender = Sender(source.bootstrap, TOPIC, RECORDS)
        wait_for(lambda: end_of(target, f"one.{TOPIC}") > RECORDS // 2, "a half", 2 * PATIENCE)
        both.barnabas.kill()
        both.barnabas.start()
        worker.kill()
        worker.start()
        wait_for(partial(worker.runs_task_of, "mirror"), "the task to run", PATIENCE)
        sender.stop()
        everything = sorted(set(range(RECORDS)) | sender.acknowledged)
        wait_for(
            lambda: end_of(target, f"one.{TOPIC}") >= len(everything), "all records", 2 * PATIENCE
        )
        wait_for(
            lambda: end_of(target, f"one.{TRANSACTIONS}") >= len(committed), "payments", PATIENCE
        )
    finally:
        if sender is not None:
            sender.stop()
        worker.close()
        print(worker.log_text()[-6000:])

    assert everything == sorted(read_whole(target.bootstrap, f"one.{TOPIC}"))
    assert sorted(committed) == sorted(read_whole(target.bootstrap, f"one.{TRANSACTIONS}"))
    with ConfluentSession(target.bootstrap) as session:
        assert "86400000" == session.configs(f"one.{TOPIC}")["retention.ms"]
