"""
Apache Kafka itself: a broker made of its jars.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any, Final

from barnabas.protocol.messages.metadata import MetadataRequest
from tests.support.broker_process import BrokerProcess, free_port
from tests.support.class_archive import archive_options
from tests.support.kafka_jars import (
    BROKER_VERSION,
    QUICK,
    VERSION,
    cache_directory,
    class_path,
    library,
    require_java,
)
from tests.support.maven import PrerequisiteMissing, alone
from tests.support.wire_client import BlockingClient, Disconnected

__all__ = [
    "CLUSTER_ID",
    "QUICK",
    "VERSION",
    "ApacheKafka",
    "PrerequisiteMissing",
    "cache_directory",
    "class_path",
    "java",
    "library",
    "require_java",
]

CLUSTER_ID = "AAAAAAAAAAAAAAAAAAAAAQ"

METADATA_VERSION: Final = 8

AFTER_A_KILL: Final = {"broker.session.timeout.ms": "3000", "broker.heartbeat.interval.ms": "500"}
"""
A broker that was killed registers again only when the session of its former life is over.
"""

_LOGGING = """<Configuration status="ERROR">
  <Appenders><Console name="out" target="SYSTEM_ERR">
    <PatternLayout pattern="[%d] %p %m (%c)%n"/>
  </Console></Appenders>
  <Loggers><Root level="{level}"><AppenderRef ref="out"/></Root></Loggers>
</Configuration>
"""


def java(
    main_class: str,
    *arguments: str,
    heap: str = "256m",
    level: str = "warn",
    options: tuple[str, ...] | None = None,
    extra_class_path: str = "",
    version: str = VERSION,
) -> list[str]:
    """
    The command that runs a class of Apache Kafka, or one of ours beside its jars.

    Args:
        heap: the most memory for objects, as ``-Xmx`` takes it.
        level: from which level on it logs, to standard error.
        options: further options of the virtual machine; by default those with which it starts
            soonest.
        extra_class_path: what the class needs beside the jars.
    """
    if options is None:
        options = (*QUICK, *archive_options())
    path = os.pathsep.join(filter(None, (class_path(version), extra_class_path)))
    logging = f"-Dlog4j2.configurationFile={_logging_file(level)}"
    return ["java", f"-Xmx{heap}", *options, logging, "-cp", path, main_class, *arguments]


class ApacheKafka(BrokerProcess):
    """
    One node of Apache Kafka, broker and controller in one process.
    """

    name = "Apache Kafka"
    start_timeout = 120.0
    version = BROKER_VERSION
    options: tuple[str, ...] = QUICK
    """
    Without the archive of classes: what some tests compare depends on which part of a broker is up
    first, and that changes with it.
    """

    def __init__(self, directory: Path, *, heap: str = "512m", **options: Any) -> None:
        super().__init__(directory, **options)
        self.heap = heap
        self._controller_port = free_port()

    def command(self) -> list[str]:
        properties = self.directory / "server.properties"
        return java(
            "kafka.Kafka",
            str(properties),
            heap=self.heap,
            level="info",
            options=self.options,
            version=self.version,
        )

    def prepare(self) -> None:
        properties = self.directory / "server.properties"
        properties.write_text("".join(f"{k}={v}\n" for k, v in self._properties().items()))
        if not (self.data / "meta.properties").exists():
            format_it = ("format", "-t", CLUSTER_ID, "-c", str(properties))
            subprocess.run(
                java("kafka.tools.StorageTool", *format_it, version=self.version),
                check=True,
                stdout=subprocess.DEVNULL,
            )

    def is_ready(self) -> bool:
        """
        Whether it answers, and has itself among the brokers of its cluster.

        It is told that it may serve before it hears so from the metadata log. Whoever asks it in
        between for brokers gets none, and librdkafka then does not ask again for minutes.
        """
        return (
            "Kafka Server started" in self.log_since_start()
            and super().is_ready()
            and has_brokers(self.port)
        )

    def _properties(self) -> dict[str, str]:
        node_id = self.settings.get("node.id", "1")
        return {
            "process.roles": "broker,controller",
            "node.id": node_id,
            "listeners": f"{self.listeners},CONTROLLER://127.0.0.1:{self._controller_port}",
            "advertised.listeners": self.listeners,
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": ",".join(
                f"{name}:{name}" for name in ("PLAINTEXT", *self.ports)
            )
            + ",CONTROLLER:PLAINTEXT",
            "controller.quorum.voters": f"{node_id}@127.0.0.1:{self._controller_port}",
            "log.dirs": str(self.data),
            "offsets.topic.replication.factor": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "share.coordinator.state.topic.replication.factor": "1",
            "share.coordinator.state.topic.min.isr": "1",
            **(AFTER_A_KILL if self.was_killed else {}),
            **self.settings,
        }


def has_brokers(port: int, seconds: float = 2.0) -> bool:
    """
    Whether the broker on *port* of the loopback interface knows of brokers that serve.
    """
    try:
        with BlockingClient(port, seconds=seconds) as client:
            return len(client.ask(MetadataRequest(topics=[]), METADATA_VERSION).brokers) > 0
    except (OSError, Disconnected):
        return False


def _logging_file(level: str) -> Path:
    path = cache_directory() / f"{level}.xml"
    with alone(cache_directory()):
        if not path.exists():
            path.write_text(_LOGGING.format(level=level.upper()))
    return path
