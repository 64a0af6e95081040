"""
A worker of Kafka Connect, which tests start, ask and kill.
"""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

from tests.support.apache_kafka import java
from tests.support.broker_process import BrokerProcess, free_port, wait_for

PATIENCE: Final = 60
PACKAGE: Final = "org.apache.kafka.connect"


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

    def run_connector(self, name: str, class_name: str, settings: Mapping[str, str]) -> None:
        """
        Have it run a connector with one task.

        Args:
            class_name: without the package of Connect.
        """
        config = {"connector.class": f"{PACKAGE}.{class_name}", "tasks.max": "1", **settings}

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
