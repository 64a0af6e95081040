"""
A worker of Kafka Connect copies lines from a file to a topic and on to a file, whatever is killed.
"""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition

from tests.support.apache_kafka import class_path, java, library
from tests.support.broker_process import BrokerProcess, free_port, wait_for
from tests.support.some import some

PATIENCE = 60
PACKAGE = "org.apache.kafka.connect"
TOPIC = "lines"

ALL_AT_ONCE = 1_000_000
"""
What of a file is left over when Kafka's connector has filled a batch waits until the file grows
again, even if it waits forever; hence batches that nothing can fill.
"""


class Worker(BrokerProcess):
    """
    A worker of a distributed Connect cluster; its port is that of its REST interface.
    """

    name = "Kafka Connect"

    def __init__(self, directory: Path, broker: BrokerProcess, jars: str) -> None:
        super().__init__(directory, port=free_port())
        self._broker = broker
        self._jars = jars

    def command(self) -> list[str]:
        properties = str(self.directory / "worker.properties")
        main = f"{PACKAGE}.cli.ConnectDistributed"
        return java(main, properties, extra_class_path=self._jars)

    def prepare(self) -> None:
        settings = {
            "bootstrap.servers": self._broker.bootstrap,
            "listeners": f"http://127.0.0.1:{self.port}",
            "group.id": "connect",
            "key.converter": f"{PACKAGE}.storage.StringConverter",
            "value.converter": f"{PACKAGE}.storage.StringConverter",
            "exactly.once.source.support": "enabled",
            "offset.storage.partitions": "3",
            "status.storage.partitions": "3",
            "offset.flush.interval.ms": "500",
            "consumer.isolation.level": "read_committed",
            "consumer.session.timeout.ms": "2000",
            "consumer.heartbeat.interval.ms": "500",
            "producer.transaction.timeout.ms": "4000",
            "transaction.timeout.ms": "4000",
            "session.timeout.ms": "2000",
            "heartbeat.interval.ms": "500",
            "scheduled.rebalance.max.delay.ms": "0",
        }
        for kind in ("config", "offset", "status"):
            settings[f"{kind}.storage.topic"] = f"connect-{kind}"
            settings[f"{kind}.storage.replication.factor"] = "1"
        lines = "".join(f"{name}={value}\n" for name, value in settings.items())
        (self.directory / "worker.properties").write_text(lines)

    def is_ready(self) -> bool:
        try:
            return bool("healthy" == self.ask("GET", "/health")["status"])
        except OSError:
            return False

    def run_connector(self, name: str, kind: str, file: Path, settings: Mapping[str, str]) -> None:
        """
        Have it run one of Kafka's connectors for files, with one task.
        """
        config = {
            "connector.class": f"{PACKAGE}.file.FileStream{kind}Connector",
            "tasks.max": "1",
            "file": str(file),
            **settings,
        }

        def accepted() -> bool:
            try:
                self.ask("PUT", f"/connectors/{name}/config", config)
            except urllib.error.HTTPError as error:
                if error.code != HTTPStatus.CONFLICT:
                    raise
                return False
            return True

        wait_for(accepted, "Kafka Connect to have rebalanced", PATIENCE)

    def runs_task_of(self, name: str) -> bool:
        """
        Whether the one task of that connector runs.
        """
        tasks = self.ask("GET", f"/connectors/{name}/status")["tasks"]
        return ["RUNNING"] == [task["state"] for task in tasks]

    def ask(self, method: str, path: str, body: object = None) -> Any:
        """
        What its REST interface answers.

        Raises:
            OSError: it does not answer, or with an error.
        """
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return json.load(answer)


@pytest.fixture
def worker(impatient_broker: BrokerProcess, tmp_path: Path) -> Iterator[Worker]:
    """
    A worker with its connectors for files.
    """
    class_path()
    jars = library("connect-file")
    running = Worker(tmp_path / "worker", impatient_broker, jars)
    running.start()
    yield running
    running.close()
    print(running.log_text()[-8000:])


class Lines:
    """
    Numbered lines, written to one file and awaited in another.
    """

    def __init__(self, source: Path, sink: Path) -> None:
        self.source = source
        self.sink = sink
        self.written = 0

    def write(self, count: int) -> None:
        with self.source.open("a") as file:
            for number in range(self.written, self.written + count):
                file.write(f"{number}\n")
        self.written += count

    def arrived(self) -> list[int]:
        """
        All whole lines of the sink.
        """
        text = self.sink.read_text() if self.sink.exists() else ""
        return [int(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]

    def write_until_arrived(self, more: int) -> None:
        """
        Write without a pause until *more* lines have arrived.
        """
        goal = len(self.arrived()) + more

        def reached() -> bool:
            self.write(10)
            return len(self.arrived()) >= goal

        wait_for(reached, f"{more} more lines", PATIENCE)

    def wait_for_the_last(self) -> None:
        """
        Wait until the line that was written last has arrived.
        """
        last = self.written - 1
        wait_for(lambda: last in self.arrived()[-1:], f"line {last}", PATIENCE)


def test_lines_arrive_in_order(
    impatient_broker: BrokerProcess, worker: Worker, tmp_path: Path
) -> None:
    """
    The broker is restarted, killed, and killed together with the worker, always amid the copying.
    Nothing is left out in the end, and nothing is in the topic twice (KIP-618).
    """
    lines = Lines(tmp_path / "source.txt", tmp_path / "sink.txt")
    source = {"topic": TOPIC, "batch.size": str(ALL_AT_ONCE)}
    worker.run_connector("source", "Source", lines.source, source)
    worker.run_connector("sink", "Sink", lines.sink, {"topics": TOPIC})

    lines.write_until_arrived(1000)
    impatient_broker.restart()
    lines.write_until_arrived(1000)
    impatient_broker.kill()
    impatient_broker.start()
    lines.write_until_arrived(1000)
    impatient_broker.kill()
    worker.kill()
    impatient_broker.start()
    worker.start()
    lines.write_until_arrived(1000)
    lines.wait_for_the_last()

    for name in ("source", "sink"):
        wait_for(partial(worker.runs_task_of, name), f"the task of the {name} to run", PATIENCE)
    _assert_in_order_at_least_once(lines.arrived(), lines.written)
    assert list(range(lines.written)) == _committed(impatient_broker)


def _assert_in_order_at_least_once(arrived: list[int], written: int) -> None:
    """
    Each line comes after the one before it; what is repeated is repeated in order as well.
    """
    expected = 0
    for line in some(arrived):
        assert line <= expected, f"{line} arrived before {expected}"
        expected = max(expected, line + 1)
    assert written == expected


def _committed(broker: BrokerProcess) -> list[int]:
    """
    The lines in the topic that a reader of committed records sees.
    """
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": "reader",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "enable.auto.commit": False,
        }
    )
    consumer.assign([TopicPartition(TOPIC, 0, 0)])
    lines: list[int] = []
    while True:
        message = consumer.poll(PATIENCE)
        assert message is not None, "neither a record nor an end"
        if message.error():
            consumer.close()
            return lines
        lines.append(int(message.value() or b""))
