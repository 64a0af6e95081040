"""
Load through librdkafka: the C program beside this file, or confluent-kafka where nothing compiles.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Protocol

import confluent_kafka

from benchmarks.compiler import compiled

LONGEST = 300.0

Settings = Mapping[str, str | int | float | bool]

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


class Loader(Protocol):
    """
    Produces to and consumes from partition 0 of a topic.
    """

    name: str

    def produce(
        self, bootstrap: str, topic: str, count: int, size: int, settings: Settings
    ) -> float:
        """
        Seconds until *count* records of *size* bytes are acknowledged.
        """

    def consume(self, bootstrap: str, topic: str, count: int, settings: Settings) -> float:
        """
        Seconds until the first *count* records have arrived.
        """


def best_loader(directory: Path) -> Loader:
    """
    The C program, compiled into *directory*, if there is a compiler; else the Python client.
    """
    libraries = Path(confluent_kafka.__file__).parent.parent / "confluent_kafka.libs"
    found = sorted(libraries.glob("librdkafka*.so*"))
    if not found:
        return PythonLoader()
    program = compiled("load", directory, [str(found[0]), f"-Wl,-rpath,{libraries}"])
    return PythonLoader() if program is None else CompiledLoader(program)


class CompiledLoader:
    """
    ``load.c``.
    """

    name = "librdkafka from C"

    def __init__(self, program: Path) -> None:
        self._program = program

    def produce(
        self, bootstrap: str, topic: str, count: int, size: int, settings: Settings
    ) -> float:
        return self._run("produce", bootstrap, topic, str(count), str(size), *_pairs(settings))

    def consume(self, bootstrap: str, topic: str, count: int, settings: Settings) -> float:
        return self._run("consume", bootstrap, topic, str(count), *_pairs(settings))

    def _run(self, *arguments: str) -> float:
        command = [str(self._program), *arguments]
        done = subprocess.run(command, stdout=subprocess.PIPE, check=True, timeout=LONGEST)
        return float(done.stdout)


def _pairs(settings: Settings) -> list[str]:
    return [f"{name}={str(value).lower()}" for name, value in settings.items()]


class PythonLoader:
    """
    confluent-kafka. Python's share in the work shows at small records.
    """

    name = "librdkafka from Python"

    def produce(
        self, bootstrap: str, topic: str, count: int, size: int, settings: Settings
    ) -> float:
        producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap, **settings})
        value = os.urandom(size)
        began = time.monotonic()
        for number in range(count):
            while True:
                try:
                    producer.produce(topic, value, partition=0)
                    break
                except BufferError:
                    producer.poll(0.01)
            if number % 1000 == 0:
                producer.poll(0)
        if producer.flush(LONGEST):
            raise TimeoutError("not all records were acknowledged")
        return time.monotonic() - began

    def consume(self, bootstrap: str, topic: str, count: int, settings: Settings) -> float:
        given = {"bootstrap.servers": bootstrap, "group.id": "load", **settings}
        consumer = confluent_kafka.Consumer(given)
        began = time.monotonic()
        consumer.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
        seen = 0
        while seen < count:
            seen += sum(m.error() is None for m in consumer.consume(10_000, 1))
        took = time.monotonic() - began
        consumer.close()
        return took
