"""
Transactions of real clients: librdkafka, kafka-python and aiokafka speak the first protocol, Java
the second (KIP-890).
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from tests.interop.clients.confluent import Confluent
from tests.interop.committed import group_offsets, read_committed
from tests.support.broker_process import BrokerProcess
from tests.support.java_programs import run_program

PARTITIONS = 3
PATIENCE = 60
SOURCE = Path(__file__).parent / "java" / "Transactions.java"

Produce: TypeAlias = Callable[[BrokerProcess, str, Sequence[str]], None]
"""
Does the transactions that it is told to: transaction n sends "n-p" to each partition p of the topic
and, for the group of the topic's name, offset n + 1 of partition 0.
"""


def confluent(broker: BrokerProcess, topic: str, ends: Sequence[str]) -> None:
    # Closed by nobody: what it has left open stays open.
    producer = Producer(
        {"bootstrap.servers": broker.bootstrap, "transactional.id": topic, "log_level": 0}
    )
    member = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": topic})
    producer.init_transactions(PATIENCE)
    for number, end in enumerate(ends):
        producer.begin_transaction()
        for partition in range(PARTITIONS):
            producer.produce(topic, f"{number}-{partition}", partition=partition)
        offsets = [TopicPartition(topic, 0, number + 1)]
        producer.send_offsets_to_transaction(offsets, member.consumer_group_metadata(), PATIENCE)
        producer.flush(PATIENCE)
        if end == "commit":
            producer.commit_transaction(PATIENCE)
        elif end == "abort":
            producer.abort_transaction(PATIENCE)
    member.close()


def kafka_python(broker: BrokerProcess, topic: str, ends: Sequence[str]) -> None:
    from kafka import KafkaProducer  # type: ignore[import-untyped]  # noqa: PLC0415  # no hints
    from kafka import TopicPartition as Partition  # noqa: PLC0415  # a name that is taken
    from kafka.structs import OffsetAndMetadata  # type: ignore[import-untyped]  # noqa: PLC0415

    producer = KafkaProducer(bootstrap_servers=broker.bootstrap, transactional_id=topic)
    producer.init_transactions()
    for number, end in enumerate(ends):
        producer.begin_transaction()
        for partition in range(PARTITIONS):
            producer.send(topic, f"{number}-{partition}".encode(), partition=partition)
        offsets = {Partition(topic, 0): OffsetAndMetadata(number + 1, "", -1)}
        producer.send_offsets_to_transaction(offsets, topic)
        producer.flush()
        if end == "commit":
            producer.commit_transaction()
        elif end == "abort":
            producer.abort_transaction()
    producer.close(timeout=0 if ends[-1] == "leave" else None)


def aiokafka(broker: BrokerProcess, topic: str, ends: Sequence[str]) -> None:
    # No type hints, either.
    from aiokafka import AIOKafkaProducer  # type: ignore[import-untyped]  # noqa: PLC0415
    from aiokafka import TopicPartition as Partition  # noqa: PLC0415  # a name that is taken

    async def run() -> None:
        producer = AIOKafkaProducer(bootstrap_servers=broker.bootstrap, transactional_id=topic)
        await producer.start()
        for number, end in enumerate(ends):
            await producer.begin_transaction()
            for partition in range(PARTITIONS):
                await producer.send(topic, f"{number}-{partition}".encode(), partition=partition)
            offsets = {Partition(topic, 0): number + 1}
            await producer.send_offsets_to_transaction(offsets, topic)
            await producer.flush()
            if end == "commit":
                await producer.commit_transaction()
            elif end == "abort":
                await producer.abort_transaction()
        await producer.stop()

    asyncio.run(run())


def java_client(broker: BrokerProcess, topic: str, ends: Sequence[str]) -> None:
    arguments = (broker.bootstrap, topic, topic, str(PARTITIONS), topic, *ends)
    run_program(SOURCE, *arguments, seconds=3 * PATIENCE)


PRODUCERS: dict[str, Produce] = {
    "librdkafka": confluent,
    "kafka-python": kafka_python,
    "aiokafka": aiokafka,
    "Java": java_client,
}


@pytest.fixture(params=PRODUCERS)
def produce(request: pytest.FixtureRequest) -> Produce:
    return PRODUCERS[request.param]


def protocol(broker: BrokerProcess, topic: str) -> int:
    """
    The version of the protocol that the producer of the topic's name used for its last transaction,
    as noted in ``__transaction_state``, where 0 is left out.
    """
    logs = broker.data.glob("__transaction_state-*/*.log")
    files = ",".join(str(path) for path in logs if path.stat().st_size > 0)
    options = ("--transaction-log-decoder", "--format", "json", "--files", files)
    dump = [sys.executable, "-m", "barnabas.server", "dump-log", *options]
    done = subprocess.run(dump, capture_output=True, text=True, check=True)
    lines = map(json.loads, done.stdout.splitlines())
    noted = [
        line["payload"]["data"]
        for line in lines
        if line["type"] == "record" and line["key"]["data"]["transactionalId"] == topic
    ]
    return int(noted[-1].get("clientTransactionVersion", 0))


def group_offset(broker: BrokerProcess, topic: str) -> int:
    """
    What the group of the topic's name has committed for partition 0.
    """
    return group_offsets(broker.bootstrap, topic)[topic, 0]


def committed(broker: BrokerProcess, topic: str) -> list[list[str]]:
    found = read_committed(broker.bootstrap, topic, PARTITIONS)
    return [[value.decode() for value in values] for values in found]


def test_committed_records_are_read_once_and_in_order(
    broker: BrokerProcess, topic: str, produce: Produce
) -> None:
    """
    Records and offsets of committed transactions, and of no others, over a restart of the broker.
    """
    Confluent().create_topic(broker.bootstrap, topic, PARTITIONS, {})

    produce(broker, topic, ["commit", "abort", "commit", "abort"])
    broker.restart()

    assert [[f"{n}-{p}" for n in (0, 2)] for p in range(PARTITIONS)] == committed(broker, topic)
    assert 3 == group_offset(broker, topic)
    produce(broker, topic, ["abort", "commit"])
    expected = [["0-0", "2-0", "1-0"], ["0-1", "2-1", "1-1"], ["0-2", "2-2", "1-2"]]
    assert expected == committed(broker, topic)
    assert 2 == group_offset(broker, topic)


def test_each_client_uses_the_newest_transaction_version_it_supports(
    broker: BrokerProcess, topic: str, produce: Produce, request: pytest.FixtureRequest
) -> None:
    Confluent().create_topic(broker.bootstrap, topic, PARTITIONS, {})

    produce(broker, topic, ["commit"])

    assert (2 if "Java" in request.node.name else 0) == protocol(broker, topic)


def test_next_producer_ends_the_transaction_of_its_predecessor(
    broker: BrokerProcess, topic: str, produce: Produce
) -> None:
    Confluent().create_topic(broker.bootstrap, topic, PARTITIONS, {})

    produce(broker, topic, ["commit", "leave"])
    broker.kill()
    broker.start()
    assert [[f"0-{p}"] for p in range(PARTITIONS)] == committed(broker, topic)
    produce(broker, topic, ["commit"])

    assert [[f"0-{p}", f"0-{p}"] for p in range(PARTITIONS)] == committed(broker, topic)
    assert 1 == group_offset(broker, topic)
