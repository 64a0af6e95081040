"""
What is measured, each as a function of one running broker.

A measure returns how much was done in how long, and what it cost the broker's process; passes and
comparison are the business of ``compare.py``.
"""

from __future__ import annotations

import itertools
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from benchmarks import wire
from benchmarks.loader import Loader, Settings
from tests.support.broker_process import BrokerProcess, cpu_seconds, resident_bytes

LOCAL = "127.0.0.1"
BIG_BATCHES: Final[Settings] = {
    "batch.size": 1_000_000,
    "batch.num.messages": 100_000,
    "linger.ms": 5,
    "queue.buffering.max.messages": 1_000_000,
    "queue.buffering.max.kbytes": 200_000,
    "acks": 1,
}
FAR_AHEAD: Final[Settings] = {
    "queued.min.messages": 1_000_000,
    "queued.max.messages.kbytes": 200_000,
    "fetch.message.max.bytes": 10_000_000,
    "check.crcs": False,
}

_topics = itertools.count(1)


@dataclass(frozen=True, slots=True)
class Sample:
    """
    One run of one measure.

    Attributes:
        seconds: how long it took.
        records: how many records went in or out.
        size: bytes of payload in each.
        cpu: seconds of processor time that the broker used meanwhile.
        resident: bytes of memory that the broker held at the end.
    """

    seconds: float
    records: int = 0
    size: int = 0
    cpu: float = 0.0
    resident: int = 0

    @property
    def megabytes_per_second(self) -> float:
        """
        Payload, in millions of bytes.
        """
        return self.records * self.size / self.seconds / 1e6

    @property
    def records_per_second(self) -> float:
        """
        Records, or requests where each has one.
        """
        return self.records / self.seconds

    @property
    def cpu_per_million(self) -> float:
        """
        Seconds of the broker's processor time for a million records.
        """
        return self.cpu / self.records * 1e6


Run = Callable[[BrokerProcess], Sample]


class Load:
    """
    The measures under load, with one loader and one scale.

    Args:
        scale: a factor on the number of records; 1 takes about a second for each measure.
    """

    def __init__(self, loader: Loader, scale: float) -> None:
        self._loader = loader
        self._scale = scale

    def produce_1k(self, broker: BrokerProcess) -> Sample:
        """
        Records of 1 KB in batches of 1 MB.
        """
        return self._produce(broker, 1_000_000, 1024, BIG_BATCHES)

    def produce_1k_lz4(self, broker: BrokerProcess) -> Sample:
        """
        The same, compressed by the client.
        """
        return self._produce(broker, 1_000_000, 1024, {**BIG_BATCHES, "compression.type": "lz4"})

    def produce_1k_idempotent(self, broker: BrokerProcess) -> Sample:
        """
        The same, with sequence numbers and acks=all.
        """
        settings = {**BIG_BATCHES, "enable.idempotence": True, "acks": "all"}
        return self._produce(broker, 1_000_000, 1024, settings)

    def produce_100(self, broker: BrokerProcess) -> Sample:
        """
        Records of 100 bytes in batches of 1 MB.
        """
        return self._produce(broker, 4_000_000, 100, BIG_BATCHES)

    def consume_1k(self, broker: BrokerProcess) -> Sample:
        """
        Records of 1 KB that the page cache has.
        """
        count = int(1_000_000 * self._scale)
        topic = self._create(broker)
        self._loader.produce(broker.bootstrap, topic, count, 1024, BIG_BATCHES)
        try:
            before = cpu_seconds(broker.pid)
            seconds = self._loader.consume(broker.bootstrap, topic, count, FAR_AHEAD)
            return Sample(seconds, count, 1024, cpu_seconds(broker.pid) - before)
        finally:
            self._delete(broker, topic)

    def pipelined(self, broker: BrokerProcess) -> Sample:
        """
        Requests of one record of 100 bytes, up to 500 of them under way on one connection.
        """
        count, under_way, at_once = int(100_000 * self._scale), 500, 50
        topic = self._create(broker)
        request = wire.produce_request(topic, b"x" * 100, timestamp_ms=_now_ms())
        size = wire.produce_response_size(topic)
        try:
            with socket.create_connection((LOCAL, broker.port), timeout=60) as connection:
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                before, began = cpu_seconds(broker.pid), time.monotonic()
                for number in range(0, count + under_way, at_once):
                    if number < count:
                        connection.sendall(request * at_once)
                    if number >= under_way:
                        answers = wire.exactly(connection, size * at_once)
                        assert wire.produce_error(topic, answers) == 0
                seconds = time.monotonic() - began
            return Sample(seconds, count, 100, cpu_seconds(broker.pid) - before)
        finally:
            self._delete(broker, topic)

    def _produce(self, broker: BrokerProcess, count: int, size: int, settings: Settings) -> Sample:
        count = int(count * self._scale)
        topic = self._create(broker)
        try:
            before = cpu_seconds(broker.pid)
            seconds = self._loader.produce(broker.bootstrap, topic, count, size, settings)
            return Sample(seconds, count, size, cpu_seconds(broker.pid) - before)
        finally:
            self._delete(broker, topic)

    def _create(self, broker: BrokerProcess) -> str:
        topic = f"load-{next(_topics)}"
        admin = AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0})
        admin.create_topics([NewTopic(topic, 1)])[topic].result(60)
        produce_when_possible(broker, topic)
        return topic

    def _delete(self, broker: BrokerProcess, topic: str) -> None:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0})
        admin.delete_topics([topic])[topic].result(60)


def start(broker: BrokerProcess) -> Sample:
    """
    From starting the process on an existing directory to its first acknowledged record.
    """
    if broker.is_running:
        broker.stop()
    began = time.monotonic()
    broker.launch()
    produce_when_possible(broker)
    return Sample(time.monotonic() - began)


def produce_when_possible(broker: BrokerProcess, topic: str = "first") -> None:
    """
    Try until one record is acknowledged.
    """
    deadline = time.monotonic() + broker.start_timeout
    while time.monotonic() < deadline:
        with (
            suppress(OSError),
            socket.create_connection((LOCAL, broker.port), timeout=5) as connection,
        ):
            wire.ask(connection, wire.metadata_request(topic))
            request = wire.produce_request(topic, b"value", timestamp_ms=_now_ms())
            if wire.produce_error(topic, wire.ask(connection, request)) == 0:
                return
        time.sleep(0.002)
    raise TimeoutError(f"{broker.name} acknowledged nothing in {broker.start_timeout:.0f} s")


def idle(broker: BrokerProcess) -> Sample:
    """
    Two seconds of a broker that was started, took one record, and has nothing more to do.
    """
    start(broker)
    before = cpu_seconds(broker.pid)
    time.sleep(2)
    return Sample(2, cpu=cpu_seconds(broker.pid) - before, resident=resident_bytes(broker.pid))


def _now_ms() -> int:
    return int(time.time() * 1000)
