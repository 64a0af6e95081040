"""
A broker with data of all kinds, for the page to show.

Its records are as old as their timestamps say, so that segments have ended by size and by time, and
are to be deleted sooner or later. Its checks of retention come once an hour: nothing is deleted
while it is looked at.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, Final

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.support.broker_process import Barnabas, free_port, wait_for

PATIENCE: Final = 60.0
HOUR: Final = 3_600_000
DAY: Final = 24 * HOUR

EVIL: Final = "<script>document.title='evil'</script><img src=x onerror=\"document.title='evil'\">"
"""A text that a careless page would run."""

_SETTINGS: Final = {
    "log.retention.check.interval.ms": str(HOUR),
    "log.initial.task.delay.ms": str(HOUR),
    "log.cleaner.backoff.ms": "200",
    "log.index.size.max.bytes": "16384",
    "group.initial.rebalance.delay.ms": "100",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": str(HOUR),
    "barnabas.http.records": "true",
}


@dataclass
class World:
    """
    A running broker, and where its page is.
    """

    broker: Barnabas
    http_port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.http_port}/"


@contextmanager
def running_world(directory: Path, **settings: str) -> Iterator[World]:
    """
    A broker without topics; its settings have ``_`` for ``.``.
    """
    port = free_port()
    given = {name.replace("_", "."): value for name, value in settings.items()}
    listener = {"barnabas.http.listener": f"127.0.0.1:{port}"}
    broker = Barnabas(directory, settings=_SETTINGS | listener | given)
    broker.start()
    try:
        yield World(broker, port)
    finally:
        _open.clear()
        broker.close()


def create(broker: Barnabas, topic: str, partitions: int = 1, **configs: str) -> None:
    """
    Create a topic; its settings have ``_`` for ``.``.
    """
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    config = {name.replace("_", "."): value for name, value in configs.items()}
    future: Future[Any] = admin.create_topics([NewTopic(topic, partitions, 1, config=config)])[
        topic
    ]
    future.result(PATIENCE)


class Sender:
    """
    Sends records with their own times, and waits for all of them at the end.
    """

    def __init__(self, broker: Barnabas, **options: Any) -> None:
        """
        Args:
            options: of librdkafka, with ``_`` for ``.``.
        """
        given = {name.replace("_", "."): value for name, value in options.items()}
        base = {"bootstrap.servers": broker.bootstrap, "linger.ms": 5}
        self.producer = Producer(base | given)
        self._failed: list[KafkaError] = []

    def send(
        self,
        topic: str,
        partition: int,
        at_ms: int,
        value: str | bytes | None,
        key: str | bytes | None = None,
        *,
        headers: dict[str, str | bytes] | None = None,
    ) -> None:
        """
        Send a record that was made at *at_ms*.
        """
        while True:
            try:
                self.producer.produce(
                    topic,
                    value=value,
                    key=key,
                    partition=partition,
                    on_delivery=self._delivered,
                    timestamp=at_ms,
                    headers=dict(headers or {}),
                )
            except BufferError:
                self.producer.poll(0.05)
            else:
                return

    def _delivered(self, error: KafkaError | None, _: Message) -> None:
        if error is not None:
            self._failed.append(error)

    def flush(self) -> None:
        """
        Raises:
            AssertionError: a record was not taken.
        """
        assert 0 == self.producer.flush(PATIENCE)
        assert not self._failed, self._failed[:3]


def commit(broker: Barnabas, group: str, offsets: Sequence[tuple[str, int, int]]) -> None:
    """
    Commit offsets (topic, partition, offset) of a group without members.
    """
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": group})
    places = [TopicPartition(*each) for each in offsets]
    consumer.commit(offsets=places, asynchronous=False)
    consumer.close()


def populate(broker: Barnabas, *, seed: int = 7, is_hostile: bool = True) -> list[Consumer]:
    """
    Make topics, records, transactions and groups.

    Returns the members of the groups; they are there until they are closed.
    """
    chance = random.Random(seed)
    now_ms = int(time.time() * 1000)
    _orders(broker, chance, now_ms)
    _customers(broker, chance, now_ms)
    _payments(broker, chance, now_ms)
    _telemetry(broker, chance, now_ms)
    if is_hostile:
        _hostile(broker, now_ms)
    return _groups(broker)


def _orders(broker: Barnabas, chance: random.Random, now_ms: int) -> None:
    """
    Eight days of orders, of which retention keeps seven.
    """
    create(
        broker,
        "orders",
        6,
        internal_segment_bytes="65536",
        segment_ms=str(6 * HOUR),
        retention_ms=str(7 * DAY),
    )
    sender = Sender(broker, compression_type="zstd", batch_num_messages=40, linger_ms=20)
    for partition in range(6):
        at = now_ms - 8 * DAY
        number = 0
        while at < now_ms:
            hour = (at // HOUR) % 24
            # More of them by day than by night, and each partition has its own customers.
            at += int(chance.expovariate(1) * (12_000 if 7 <= hour <= 21 else 90_000)) + 1
            number += 1
            sender.send("orders", partition, min(at, now_ms), _order(chance, number), f"c{number}")
    sender.flush()


def _order(chance: random.Random, number: int) -> str:
    items = [
        {"sku": f"A-{chance.randrange(10**6):06d}", "count": chance.randint(1, 4)}
        for _ in range(chance.randint(1, 3))
    ]
    order = {
        "order": f"{chance.getrandbits(48):012x}",
        "customer": chance.randrange(20_000),
        "items": items,
        "total": round(chance.uniform(3, 400), 2),
        "state": chance.choice(["placed", "paid", "sent"]),
    }
    return json.dumps(order)


def _customers(broker: Barnabas, chance: random.Random, now_ms: int) -> None:
    """
    A compacted topic: a part of it is clean, the rest is not worth a cleaning yet.
    """
    create(
        broker,
        "customers",
        2,
        cleanup_policy="compact",
        internal_segment_bytes="32768",
        min_cleanable_dirty_ratio="0.9",
    )
    sender = Sender(broker, compression_type="lz4", batch_num_messages=25)

    def change(numbers: range) -> None:
        for partition, number in product(range(2), numbers):
            at = now_ms - 30 * DAY + number * 30 * DAY // 12_000
            name = chance.choice(["Ada", "Grace", "Edsger", "Barbara", "Donald", "Leslie"])
            value = json.dumps({"name": name, "points": chance.randrange(10_000)})
            key = f"customer-{int(chance.triangular(0, 3000, 0))}"
            sender.send("customers", partition, at, None if number % 97 == 0 else value, key)
        sender.flush()

    change(range(9000))
    noted = broker.data / "cleaner-offset-checkpoint"
    wait_for(
        lambda: noted.exists() and noted.read_text().count("customers") == 2, "a cleaning", PATIENCE
    )
    change(range(9000, 12_000))


def _payments(broker: Barnabas, chance: random.Random, now_ms: int) -> None:
    """
    Transactions, some of which were aborted, and one that is open for too long.
    """
    create(broker, "payments", 3, internal_segment_bytes="32768", retention_ms=str(3 * DAY))
    sender = Sender(broker, compression_type="gzip", transactional_id="payments-writer")
    producer = sender.producer
    producer.init_transactions(PATIENCE)
    for number in range(60):
        producer.begin_transaction()
        at = now_ms - 2 * DAY + number * 2 * DAY // 60
        for step in range(30):
            value = json.dumps({"payment": number * 30 + step, "cents": chance.randrange(90_000)})
            sender.send("payments", step % 3, at + step, value, f"p{number}")
        if number % 7 == 3:
            producer.abort_transaction(PATIENCE)
        else:
            producer.commit_transaction(PATIENCE)
    late = Sender(broker, transactional_id="refunds-writer", transaction_timeout_ms=1000)
    late.producer.init_transactions(PATIENCE)
    late.producer.begin_transaction()
    late.send("payments", 1, now_ms, "undecided")
    late.flush()
    _open.append(late)


_open: Final[list[Sender]] = []
"""Producers with open transactions: without references to them they would be ended."""


def _telemetry(broker: Barnabas, chance: random.Random, now_ms: int) -> None:
    """
    Numbers that compress well, whose log is bounded by its size.
    """
    create(
        broker,
        "telemetry",
        4,
        internal_segment_bytes="131072",
        retention_ms="-1",
        retention_bytes="1200000",
    )
    sender = Sender(broker, compression_type="snappy", batch_num_messages=100, linger_ms=20)
    for partition in range(4):
        for number in range(9000 + 1500 * partition):
            at = now_ms - 6 * HOUR + number * 6 * HOUR // 15_000
            readings = [round(20 + chance.gauss(0, 2), 3) for _ in range(16)]
            sender.send("telemetry", partition, at, json.dumps({"s": number % 50, "v": readings}))
    sender.flush()


def _hostile(broker: Barnabas, now_ms: int) -> None:
    """
    Records, headers and groups with texts that a careless page would run.
    """
    create(broker, "hostile.topic_with-a-very-long-name." + "x" * 120)
    create(broker, "hostile", 1, retention_ms="-1")
    sender = Sender(broker)
    sender.send("hostile", 0, now_ms, EVIL, EVIL, headers={EVIL: EVIL})
    sender.send("hostile", 0, now_ms, json.dumps({EVIL: [EVIL, {"__proto__": EVIL}]}), b"\xff\x00")
    sender.send("hostile", 0, now_ms, b"\x00\x01\xfe" * 20)
    sender.send("hostile", 0, now_ms, "\u202eright to left \u0000 \ud7ff", "")
    sender.send("hostile", 0, now_ms, None, "tombstone")
    sender.flush()
    commit(broker, f"group {EVIL}", [("hostile", 0, 1)])
    evil = Sender(broker, transactional_id=f"late {EVIL}")
    evil.producer.init_transactions(PATIENCE)


def _groups(broker: Barnabas) -> list[Consumer]:
    ends = _ends(broker, "orders", 6)
    commit(broker, "billing", [("orders", p, int(end * 0.97)) for p, end in enumerate(ends)])
    commit(broker, "analytics", [("orders", p, int(end * 0.22)) for p, end in enumerate(ends)])
    commit(broker, "search-index", [("orders", p, int(end * 0.71)) for p, end in enumerate(ends)])
    members = []
    for number in range(2):
        member = Consumer(
            {
                "bootstrap.servers": broker.bootstrap,
                "group.id": "dashboard",
                "client.id": f"dashboard-{number}",
                "auto.offset.reset": "earliest",
            }
        )
        member.subscribe(["telemetry"])
        members.append(member)
    deadline = time.monotonic() + PATIENCE
    while not all(member.assignment() for member in members) and time.monotonic() < deadline:
        for member in members:
            member.poll(0.1)
    return members


def _ends(broker: Barnabas, topic: str, partitions: int) -> list[int]:
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "ends"})
    ends = [
        consumer.get_watermark_offsets(TopicPartition(topic, partition), PATIENCE)[1]
        for partition in range(partitions)
    ]
    consumer.close()
    return ends
