"""
Backups of a broker that serves a group, an idempotent producer and a transactional one, in the
middle of retention and compaction: a broker starts on each, and nothing in it contradicts the rest.
"""

from __future__ import annotations

import itertools
import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from confluent_kafka import Consumer, KafkaError, Producer

from tests.interop.clients.confluent import Confluent
from tests.interop.committed import group_offsets, read_committed
from tests.support.both_brokers import BothBrokers
from tests.support.broker_process import Barnabas
from tests.support.commands import BARNABAS, output_of

pytestmark = [pytest.mark.interop, pytest.mark.prove]

BACKUPS: Final = 3
PAUSE_S: Final = 0.7
PATIENCE_S: Final = 120
GROUP: Final = "readers"
SETTINGS: Final = {
    "offsets.topic.num.partitions": "2",
    "transaction.state.log.num.partitions": "2",
    "log.initial.task.delay.ms": "200",
    "log.retention.check.interval.ms": "500",
    "log.cleaner.backoff.ms": "200",
    "log.segment.delete.delay.ms": "100",
    "log.flush.interval.messages": "50",
}
TOPICS: Final = {
    "plain": {},
    "first": {},
    "second": {},
    "compacted": {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01"},
    "short": {"retention.bytes": "20000"},
}


class Load:
    """
    Clients that number their records, and what the broker has acknowledged of them.
    """

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self.acknowledged = dict.fromkeys(("plain", "compacted", "short", "transactions"), -1)
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=target)
            for target in (self._produce, self._transact, self._consume)
        ]

    def __enter__(self) -> Load:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(PATIENCE_S)
            assert not thread.is_alive()

    def wait_for(self, **numbers: int) -> None:
        """
        Return once the broker has acknowledged these *numbers*.

        Raises:
            TimeoutError: it has not, or a client has ended.
        """
        deadline = time.monotonic() + PATIENCE_S
        while any(self.acknowledged[name] < number for name, number in numbers.items()):
            if time.monotonic() > deadline or not all(each.is_alive() for each in self._threads):
                raise TimeoutError(f"acknowledged: {self.acknowledged}")
            time.sleep(0.05)

    def _produce(self) -> None:
        producer = Producer(
            {
                "bootstrap.servers": self.bootstrap,
                "enable.idempotence": True,
                "linger.ms": 1,
                "batch.size": 8000,  # a segment has 16 KiB
            }
        )

        def note(error: KafkaError | None, message: Any) -> None:
            assert error is None, error
            self.acknowledged[message.topic()] = int(message.value())

        for number in itertools.count():
            if self._stop.is_set():
                break
            for topic in ("plain", "compacted", "short"):
                producer.produce(topic, f"{number:0100}", str(number % 10), on_delivery=note)
            producer.poll(0)
            self._stop.wait(0.001)
        assert producer.flush(30) == 0

    def _transact(self) -> None:
        producer = transactional(self.bootstrap)
        for number in itertools.count():
            if self._stop.is_set():
                return
            producer.begin_transaction()
            for topic in ("first", "second"):
                producer.produce(topic, str(number))
            producer.commit_transaction()
            self.acknowledged["transactions"] = number

    def _consume(self) -> None:
        consumer = Consumer(
            {
                "bootstrap.servers": self.bootstrap,
                "group.id": GROUP,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
            }
        )
        consumer.subscribe(["plain"])
        while not self._stop.is_set():
            message = consumer.poll(0.1)
            if message is not None and message.error() is None:
                consumer.commit(message=message)
        consumer.close()


def transactional(bootstrap: str) -> Producer:
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "transactional.id": "counter",
            "transaction.timeout.ms": 10_000,
        }
    )
    producer.init_transactions(30)
    return producer


def back_up(data: Path, target: Path) -> None:
    output_of(*BARNABAS, "backup", data, "--to", target)


def read(bootstrap: str, topic: str) -> list[int]:
    """
    The numbers of the committed records up to the end.
    """
    [values] = read_committed(bootstrap, topic)
    return [int(value) for value in values]


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Barnabas]:
    with Barnabas(tmp_path / "serving", settings=SETTINGS) as broker:
        yield broker


def check(broker: Barnabas, before: dict[str, int]) -> None:
    """
    The broker has all that was acknowledged *before*, in order, and goes on with it.
    """
    bootstrap = broker.bootstrap
    plain = read(bootstrap, "plain")
    assert plain == [*range(len(plain))]
    assert len(plain) > before["plain"]
    assert 0 <= group_offsets(bootstrap, GROUP)["plain", 0] <= len(plain)
    short = read(bootstrap, "short")
    assert short == [*range(short[0], short[0] + len(short))]
    assert short[-1] >= before["short"]
    assert short[0] > 0, "retention has deleted nothing"
    compacted = read(bootstrap, "compacted")
    assert compacted == sorted(compacted)
    assert {number % 10 for number in compacted} == {*range(10)}
    assert compacted[-1] >= before["compacted"]
    assert len(compacted) < compacted[-1], "nothing was compacted"

    producer = transactional(bootstrap)  # it ends the transaction that was open
    producer.begin_transaction()
    for topic in ("first", "second"):
        producer.produce(topic, "-1")
    producer.commit_transaction()
    for topic in ("first", "second"):
        *numbers, last = read(bootstrap, topic)
        assert numbers == [*range(len(numbers))]
        assert len(numbers) > before["transactions"]
        assert -1 == last


def test_broker_starts_on_each_backup_of_a_running_broker(broker: Barnabas, tmp_path: Path) -> None:
    target = tmp_path / "backups"
    acknowledged = []
    for name, configs in TOPICS.items():
        small = {"internal.segment.bytes": "16384", **configs}
        Confluent().create_topic(broker.bootstrap, name, 1, small)
    with Load(broker.bootstrap) as load:
        load.wait_for(short=2000, transactions=100)
        for _ in range(BACKUPS):
            acknowledged.append(dict(load.acknowledged))
            back_up(broker.data, target)
            time.sleep(PAUSE_S)
    assert broker.stop() == 0

    for path, before in zip(sorted(target.glob("2*")), acknowledged, strict=True):
        place = tmp_path / path.name
        shutil.copytree(path / "data", place / "data")
        restored = Barnabas(place, settings=SETTINGS)
        restored.start()
        try:
            check(restored, before)
        finally:
            restored.stop()
        output_of(*BARNABAS, "verify", place / "data")


def test_apache_kafka_starts_on_a_backup(tmp_path: Path) -> None:
    """
    On that of a broker that serves, and the other way round.
    """
    with BothBrokers.in_turn(tmp_path / "both") as both:
        for source, other in ((both.barnabas, both.kafka), (both.kafka, both.barnabas)):
            source.start()
            producer = Producer({"bootstrap.servers": source.bootstrap})
            for number in range(100):
                producer.produce(source.name.lower().split()[0], str(number))
            assert producer.flush(30) == 0
            target = tmp_path / source.name
            back_up(source.data, target)
            source.kill()
            shutil.rmtree(source.data)
            (backup,) = target.glob("2*")
            shutil.copytree(backup / source.data.name, source.data)
            other.start()
            assert [*range(100)] == read(other.bootstrap, source.name.lower().split()[0])
            other.stop()
