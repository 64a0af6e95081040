"""
From one broker to three nodes of Apache Kafka, with the files and the commands that ``barnabas
graduate`` gives, and a group, transactions and producers under way.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Final

import pytest
from confluent_kafka.admin import AdminClient

from tests.interop.clients.confluent import Confluent
from tests.interop.numbered import (
    PARTITIONS,
    PATIENCE_S,
    Sender,
    read_in_group,
    read_whole,
    send_all,
    transact,
)
from tests.interop.tools.toolbox import TOOLS
from tests.support.apache_kafka import ApacheKafka, class_path, java
from tests.support.broker_process import Barnabas, BrokerProcess, free_port, wait_for
from tests.support.commands import BARNABAS, output_of

pytestmark = [pytest.mark.interop, pytest.mark.prove]

NODES: Final = 3
RECORDS: Final = 1_000_000
"""In the topic, before the cluster is there."""
GROUP: Final = "readers"
TOPIC: Final = "orders"
TRANSACTIONS: Final = "payments"
SETTINGS: Final = {
    "offsets.topic.num.partitions": "2",
    "transaction.state.log.num.partitions": "2",
}


class GrownNode(ApacheKafka):
    """
    A node of Apache Kafka, with the file that ``barnabas graduate`` wrote for it.
    """

    def __init__(self, directory: Path, properties: Path, port: int) -> None:
        super().__init__(directory, port=port, heap="384m")
        self.properties = properties

    def command(self) -> list[str]:
        return java("kafka.Kafka", str(self.properties), heap=self.heap, level="info")

    def prepare(self) -> None: ...


def graduate(directory: Path, data: Path, addresses: Sequence[str]) -> str:
    nodes = [part for address in addresses for part in ("--node", address)]
    given = [part for name, text in SETTINGS.items() for part in ("--set", f"{name}={text}")]
    options = (*nodes, *given, "--data-dir", str(data), "--output", str(directory))
    return output_of(*BARNABAS, "graduate", *options)


def commands_in(report: str) -> list[list[str]]:
    """
    The commands of Apache Kafka that the report tells to run, in their order.
    """
    return [line.split() for line in report.splitlines() if line.startswith("   kafka-")]


def run_tool(words: Sequence[str], directory: Path) -> str:
    """
    Run a command as it is printed, where the files are.
    """
    main_class = TOOLS[words[0].removesuffix(".sh")]
    command = java(main_class, *words[1:], level="error")
    return output_of(*command, seconds=PATIENCE_S, cwd=directory)


def is_done(verify: Sequence[str], directory: Path) -> bool:
    return "in progress" not in run_tool(verify, directory)


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[list[GrownNode]]:
    """
    Nodes that are to be: the first has the directory of the broker.
    """
    class_path()
    output = tmp_path / "plan"
    made = [
        GrownNode(tmp_path / f"node{n}", output / f"node-{n}.properties", free_port())
        for n in range(1, NODES + 1)
    ]
    with ExitStack() as cleanup:
        for node in made:
            cleanup.callback(node.close)
        yield made


def begin_as_one(broker: BrokerProcess) -> set[int]:
    """
    Topics, records, a group that has read a half, transactions.

    Returns:
        The numbers that were committed in transactions.
    """
    for name in (TOPIC, TRANSACTIONS):
        Confluent().create_topic(broker.bootstrap, name, PARTITIONS, {})
    send_all(broker.bootstrap, TOPIC, range(RECORDS))
    return transact(broker.bootstrap, TRANSACTIONS)


def test_one_broker_grows_into_three_nodes(tmp_path: Path, nodes: list[GrownNode]) -> None:
    """
    Every command is run as it is printed. Then the first node is lost for good: nothing is lost,
    and nothing is there twice.
    """
    with Barnabas(tmp_path / "one", settings=SETTINGS) as barnabas:
        committed = begin_as_one(barnabas)
        read = read_in_group(barnabas.bootstrap, TOPIC, RECORDS // 2, GROUP)
        barnabas.stop()
        addresses = [f"127.0.0.1:{node.port}:{free_port()}" for node in nodes]
        report = graduate(tmp_path / "plan", barnabas.data, addresses)
        # It is still a directory of Barnabas.
        barnabas.start()
        barnabas.stop()
    for node in nodes[1:]:  # all on one machine
        with node.properties.open("a") as file:
            file.write(f"log.dirs={tmp_path / node.properties.stem}\n")

    starts = iter(nodes)
    bootstraps = ",".join(node.bootstrap for node in nodes)
    sender: Sender | None = None
    try:
        for words in commands_in(report):
            if words[0] == "kafka-server-start.sh":
                node = next(starts)
                assert words[1] == node.properties.name
                node.start()
                sender = sender or Sender(bootstraps, TOPIC, RECORDS)
            elif words[-1] == "--verify":
                wait_for(partial(is_done, words, tmp_path / "plan"), "all replicas", PATIENCE_S)
            else:
                run_tool(words, tmp_path / "plan")
        nodes[0].kill()
        assert sender is not None
        enough = len(sender.acknowledged) + 500
        acknowledged = sender.acknowledged
        wait_for(lambda: len(acknowledged) > enough, "a new leader", PATIENCE_S)
    finally:
        if sender is not None:
            sender.stop()

    others = ",".join(node.bootstrap for node in nodes[1:])
    everything = read_whole(others, TOPIC)
    assert sorted(set(range(RECORDS)) | sender.acknowledged) == sorted(everything)
    assert sorted(committed) == sorted(read_whole(others, TRANSACTIONS))

    read += read_in_group(others, TOPIC, len(everything) - len(read), GROUP)
    assert sorted(everything) == sorted(read)
    admin = AdminClient({"bootstrap.servers": others})
    described = admin.list_topics(timeout=30).topics
    assert {NODES} == {
        len(partition.replicas)
        for topic in described.values()
        for partition in topic.partitions.values()
    }
