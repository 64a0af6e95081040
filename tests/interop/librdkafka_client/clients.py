"""
confluent-kafka's clients as a test wants them: told where the broker is, and closed at the end.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

PATIENCE = 60.0
"""
Seconds after which a client that still has not got what it waits for has failed.
"""


class Clients(ExitStack):
    """
    Makes clients of one broker; as a context it closes the consumers, the last one first.
    """

    def __init__(self, bootstrap: str) -> None:
        super().__init__()
        self.bootstrap = bootstrap

    def consumer(self, group: str, **options: Any) -> Consumer:
        """
        A consumer that reads from the beginning unless *options* say otherwise: dots as
        underscores.
        """
        chosen = {"group_id": group, "auto_offset_reset": "earliest", "enable_auto_commit": False}
        consumer = Consumer(self._conf(chosen | options))
        self.callback(consumer.close)
        return consumer

    def producer(self, **options: Any) -> Producer:
        """
        A producer that waits for nothing before it sends.
        """
        return Producer(self._conf({"linger_ms": 0} | options))

    def create(self, topic: str, partitions: int = 2, **configs: str) -> None:
        given = {name.replace("_", "."): value for name, value in configs.items()}
        admin = AdminClient(self._conf({}))
        admin.create_topics([NewTopic(topic, partitions, config=given)])[topic].result(PATIENCE)

    def send(self, topic: str, partition: int, values: Iterable[bytes], **options: Any) -> None:
        producer = self.producer(**options)
        for value in values:
            producer.produce(topic, value, partition=partition, on_delivery=raise_if_failed)
        assert 0 == producer.flush(PATIENCE)

    def _conf(self, options: dict[str, Any]) -> dict[str, Any]:
        given = {
            name if callable(value) else name.replace("_", "."): value
            for name, value in options.items()
        }
        return {"bootstrap.servers": self.bootstrap, "log_level": 0} | given


def raise_if_failed(error: KafkaError | None, _message: Message) -> None:
    """
    A delivery report that does not accept failures.
    """
    if error is not None:
        raise KafkaException(error)


def messages(consumer: Consumer, count: int) -> list[Message]:
    """
    The next *count* messages.
    """
    deadline = time.monotonic() + PATIENCE
    seen: list[Message] = []
    while len(seen) < count:
        assert time.monotonic() < deadline, f"{len(seen)} of {count} messages came"
        message = consumer.poll(0.1)
        if message is None:
            continue
        error = message.error()
        if error is not None:
            raise KafkaException(error)
        seen.append(message)
    return seen


def values(consumer: Consumer, count: int) -> list[bytes]:
    """
    Their values.
    """
    return [message.value() or b"" for message in messages(consumer, count)]


def eventually(condition: Callable[[], bool], *polled: Consumer) -> None:
    """
    Poll these consumers, which must get no message, until something holds.
    """
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        for consumer in polled:
            message = consumer.poll(0.02)
            assert message is None, message.value()


@contextmanager
def fails_with(code: int) -> Iterator[None]:
    """
    What is inside has to raise an error with this code.
    """
    with pytest.raises(KafkaException) as failed:
        yield
    assert code == failed.value.args[0].code(), failed.value


def assigned(consumer: Consumer) -> set[tuple[str, int]]:
    """
    What the consumer reads now.
    """
    return {(part.topic, part.partition) for part in consumer.assignment()}


def offsets(partitions: Iterable[TopicPartition]) -> dict[tuple[str, int], int]:
    """
    Their offsets by topic and partition.
    """
    return {(part.topic, part.partition): part.offset for part in partitions}


def numbered(count: int, first: int = 0) -> list[bytes]:
    """
    Values that can be told apart.
    """
    return [b"%d" % number for number in range(first, first + count)]
