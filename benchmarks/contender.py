"""
The brokers as they are measured: Barnabas and Apache Kafka run with their own defaults, and both
with the same options beyond them; further ones as their commands say.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from shutil import rmtree
from typing import Final, Protocol

from benchmarks.further import Further
from benchmarks.topics import produce_when_possible
from tests.support.apache_kafka import ApacheKafka, java
from tests.support.broker_process import Barnabas, BrokerProcess

SAME_OPTIONS: Final = {
    "log.segment.delete.delay.ms": "1000",
    "log.flush.scheduler.interval.ms": "500",
    "log.flush.interval.ms": str(2**63 - 1),
}
"""
What was measured leaves the disk soon, and a topic's ``flush.ms`` is looked at, which by default
nobody does. Nothing else differs from the defaults.
"""


class BusyKafka(ApacheKafka):
    """
    Apache Kafka with time to compile what it does often, and its usual collector of garbage.
    """

    options = ("-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20")


class KafkaAsShipped(ApacheKafka):
    """
    Apache Kafka with the options that its own start script gives to the virtual machine.
    """

    def command(self) -> list[str]:
        options = (
            "-Xms1g",
            "-server",
            "-XX:+UseG1GC",
            "-XX:MaxGCPauseMillis=20",
            "-XX:InitiatingHeapOccupancyPercent=35",
            "-XX:+ExplicitGCInvokesConcurrent",
            "-Djava.awt.headless=true",
        )
        properties = str(self.directory / "server.properties")
        return java("kafka.Kafka", properties, heap="1g", level="info", options=options)


class _Maker(Protocol):
    @property
    def name(self) -> str: ...

    def __call__(
        self, directory: Path, *, settings: Mapping[str, str] | None = None, bounded: bool = True
    ) -> BrokerProcess: ...


class Contender:
    """
    One of them: a broker that runs through most measures, and others for single ones.

    The long-lived one is started when it is first asked for, and again should it have ended.
    ``close`` ends whatever runs.

    Attributes:
        is_further: whether it only stands beside the two that are compared, and may fail.
    """

    def __init__(self, make: _Maker, directory: Path, *, is_further: bool = False) -> None:
        self.name = make.name
        self.is_further = is_further
        self._make = make
        self._directory = directory
        self._main: BrokerProcess | None = None

    @property
    def broker(self) -> BrokerProcess:
        """
        The long-lived broker; it has acknowledged a record.
        """
        if self._main is None:
            self._main = self._new("main", {})
        if not self._main.is_running:
            self._main.launch()
            produce_when_possible(self._main)
        return self._main

    @contextmanager
    def another(
        self, name: str, settings: Mapping[str, str] | None = None
    ) -> Iterator[BrokerProcess]:
        """
        A broker on a directory of its own, not started; both are gone afterwards.
        """
        broker = self._new(name, settings or {})
        try:
            yield broker
        finally:
            broker.close()
            rmtree(broker.directory, ignore_errors=True)

    def close(self) -> None:
        """
        End the long-lived broker.
        """
        if self._main is not None:
            self._main.close()

    def _new(self, name: str, settings: Mapping[str, str]) -> BrokerProcess:
        return self._make(
            self._directory / name, settings={**SAME_OPTIONS, **settings}, bounded=False
        )


def barnabas(directory: Path) -> Contender:
    """
    Barnabas, writing below *directory*.
    """
    return Contender(Barnabas, directory / "barnabas")


def apache_kafka(directory: Path) -> Contender:
    """
    Apache Kafka, writing below *directory*.
    """
    return Contender(KafkaAsShipped, directory / "apache")


def further(kind: Further, directory: Path) -> Contender:
    """
    A further broker, writing below *directory*.
    """
    return Contender(kind, directory, is_further=True)
