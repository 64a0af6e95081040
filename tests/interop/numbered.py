"""
Numbered records that are sent while brokers come and go, and read to the end.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import Final

from confluent_kafka import Consumer, KafkaError, Message, Producer

from tests.interop.committed import read_committed

PARTITIONS: Final = 4
PATIENCE_S: Final = 180.0
ROOMY: Final = {"queue.buffering.max.messages": 2_000_000}
"""Records wait in the client while there is no leader."""


class Sender:
    """
    Sends numbered records, until it is stopped, and knows which were acknowledged.
    """

    def __init__(self, bootstraps: str, topic: str, first: int, *, at_once: int = 20) -> None:
        """
        Args:
            at_once: how many records it sends before it rests for 20 ms.
        """
        self._first = first
        self._at_once = at_once
        self.acknowledged: set[int] = set()
        self._producer = Producer(
            {"bootstrap.servers": bootstraps, "enable.idempotence": True, **ROOMY}
        )
        self._topic = topic
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._send)
        self._thread.start()

    def _send(self) -> None:
        number = self._first
        while not self._stopped.is_set():
            for _ in range(self._at_once):
                self._producer.produce(
                    self._topic,
                    b"%d" % number,
                    partition=number % PARTITIONS,
                    on_delivery=self._delivered,
                )
                number += 1
            self._producer.poll(0.02)
        self._producer.flush(PATIENCE_S)

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is None:
            self.acknowledged.add(number_in(message))

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join(PATIENCE_S)


def send_all(bootstrap: str, topic: str, numbers: Sequence[int]) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, **ROOMY})
    for number in numbers:
        producer.produce(topic, b"%d" % number, partition=number % PARTITIONS)
        producer.poll(0)
    assert 0 == producer.flush(PATIENCE_S)


def transact(bootstrap: str, topic: str) -> set[int]:
    """
    Ten transactions, every second of which is aborted; and one that stays open.

    Returns:
        The numbers that were committed.
    """
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": "payer"})
    producer.init_transactions(PATIENCE_S)
    committed: set[int] = set()
    for number in range(10):
        producer.begin_transaction()
        numbers = range(number * 100, number * 100 + 100)
        for each in numbers:
            producer.produce(topic, b"%d" % each, partition=each % PARTITIONS)
        if number % 2:
            producer.abort_transaction(PATIENCE_S)
        else:
            producer.commit_transaction(PATIENCE_S)
            committed |= set(numbers)
    left_open = Producer(
        {"bootstrap.servers": bootstrap, "transactional.id": "left", "transaction.timeout.ms": 5000}
    )
    left_open.init_transactions(PATIENCE_S)
    left_open.begin_transaction()
    left_open.produce(topic, b"never", partition=0)
    left_open.flush(PATIENCE_S)
    return committed


def number_in(message: Message) -> int:
    return int(message.value() or b"")


def read_whole(bootstraps: str, topic: str) -> list[int]:
    """
    The numbers of all committed records of a topic.
    """
    found = read_committed(bootstraps, topic, PARTITIONS)
    return [int(value) for values in found for value in values]


def read_in_group(bootstraps: str, topic: str, count: int, group: str) -> list[int]:
    """
    Read at least *count* records in a group, and commit how far.
    """
    consumer = Consumer(
        {
            "bootstrap.servers": bootstraps,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    found: list[int] = []
    deadline = time.monotonic() + PATIENCE_S
    try:
        consumer.subscribe([topic])
        while len(found) < count and time.monotonic() < deadline:
            found += [number_in(each) for each in consumer.consume(500, 1.0) if not each.error()]
        consumer.commit(asynchronous=False)
    finally:
        consumer.close()
    return found
