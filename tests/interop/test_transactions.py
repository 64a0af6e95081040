"""
Transactions of real clients: librdkafka, kafka-python and aiokafka speak the first protocol, Java
the second (KIP-890).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias

import pytest

from tests.interop.clients.confluent import Confluent
from tests.interop.clients.sessions import SESSIONS
from tests.interop.committed import group_offsets, read_committed
from tests.support.broker_process import BrokerProcess
from tests.support.commands import BARNABAS, output_of
from tests.support.java_programs import run_program

PARTITIONS = 3
PATIENCE = 60
SOURCE = Path(__file__).parent / "java" / "Transactions.java"
LIBRARIES = (*SESSIONS, "Java")

Produce: TypeAlias = Callable[[BrokerProcess, str, Sequence[str]], None]
"""
Ends one transaction with each word. Transaction n sends "n-p" to each partition p of the topic and,
for the group of the topic's name, offset n + 1 of partition 0.
"""


@pytest.fixture(params=LIBRARIES)
def produce(request: pytest.FixtureRequest) -> Produce:
    def transact(broker: BrokerProcess, topic: str, ends: Sequence[str]) -> None:
        with SESSIONS[request.param](broker.bootstrap) as session:
            writer = session.writer(transactional_id=topic)
            member = session.reader(topic, 0, group_id=topic)
            for number, end in enumerate(ends):
                writer.begin()
                for partition in range(PARTITIONS):
                    value = f"{number}-{partition}".encode()
                    writer.send(topic, [value], partition=partition)
                writer.send_offsets(member, {0: number + 1})
                if end != "leave":
                    (writer.commit if end == "commit" else writer.abort)()

    def run_java(broker: BrokerProcess, topic: str, ends: Sequence[str]) -> None:
        arguments = (broker.bootstrap, topic, topic, str(PARTITIONS), topic, *ends)
        run_program(SOURCE, *arguments, seconds=3 * PATIENCE)

    return run_java if request.param == "Java" else transact


def protocol(broker: BrokerProcess, topic: str) -> int:
    """
    The version of the protocol that the producer of the topic's name used for its last transaction,
    as noted in ``__transaction_state``, where 0 is left out.
    """
    logs = broker.data.glob("__transaction_state-*/*.log")
    files = ",".join(str(path) for path in logs if path.stat().st_size > 0)
    options = ("--transaction-log-decoder", "--format", "json", "--files", files)
    lines = map(json.loads, output_of(*BARNABAS, "dump-log", *options).splitlines())
    noted = [
        line["payload"]["data"]
        for line in lines
        if line["type"] == "record" and line["key"]["data"]["transactionalId"] == topic
    ]
    return int(noted[-1].get("clientTransactionVersion", 0))


def group_offset(broker: BrokerProcess, topic: str) -> int:
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
