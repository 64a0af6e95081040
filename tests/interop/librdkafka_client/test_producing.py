"""
Sending with librdkafka: what is reported of each message, and what is refused.
"""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import (
    DeserializingConsumer,
    KafkaError,
    Message,
    SerializingProducer,
)
from confluent_kafka.aio import AIOConsumer, AIOProducer
from confluent_kafka.serialization import (
    DoubleDeserializer,
    DoubleSerializer,
    IntegerDeserializer,
    IntegerSerializer,
    StringDeserializer,
    StringSerializer,
)

from tests.interop.librdkafka_client.clients import (
    PATIENCE,
    Clients,
    fails_with,
    numbered,
    raise_if_failed,
)
from tests.support.broker_process import BrokerProcess


class Reports:
    """
    What was reported of each message.
    """

    def __init__(self) -> None:
        self.errors: list[int | None] = []
        self.places: list[tuple[int | None, int | None]] = []

    def __call__(self, error: KafkaError | None, message: Message) -> None:
        self.errors.append(None if error is None else error.code())
        self.places.append((message.partition(), message.offset()))


def test_only_failures_are_reported_if_so_wanted(clients: Clients, topic: str) -> None:
    """
    Of two messages the one that is too large for its topic.
    """
    clients.create(topic, 1, max_message_bytes="1000")
    reports, producer = Reports(), clients.producer(delivery_report_only_error=True)

    producer.produce(topic, b"x" * 100, on_delivery=reports)
    producer.flush(PATIENCE)
    producer.produce(topic, b"x" * 2000, on_delivery=reports)
    producer.flush(PATIENCE)

    assert [KafkaError.MSG_SIZE_TOO_LARGE] == reports.errors


def test_a_partition_that_is_not_there_is_refused(clients: Clients, topic: str) -> None:
    """
    By the client, which knows the topic's partitions.
    """
    clients.create(topic)
    reports, producer = Reports(), clients.producer()

    producer.produce(topic, b"", partition=0, on_delivery=reports)
    producer.flush(PATIENCE)
    with fails_with(KafkaError._UNKNOWN_PARTITION):
        producer.produce(topic, b"", partition=7)

    assert [None] == reports.errors


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ((IntegerSerializer(), IntegerDeserializer()), -(2**31)),
        ((DoubleSerializer(), DoubleDeserializer()), 1e-300),
        ((StringSerializer("utf_16"), StringDeserializer("utf_16")), "Jämtland"),
        ((StringSerializer("utf_8"), StringDeserializer("utf_8")), None),
    ],
)
def test_a_serialized_value_comes_back(
    clients: Clients, topic: str, kind: tuple[Any, Any], value: Any
) -> None:
    clients.create(topic, 1)
    serializer, deserializer = kind
    conf = {"bootstrap.servers": clients.bootstrap}
    producer = SerializingProducer(conf | {"value.serializer": serializer})
    producer.produce(topic, key="key", value=value, on_delivery=raise_if_failed)
    producer.flush(PATIENCE)
    reading = {"group.id": topic, "auto.offset.reset": "earliest"}
    consumer = DeserializingConsumer(conf | reading | {"value.deserializer": deserializer})
    clients.callback(consumer.close)
    consumer.subscribe([topic])

    message = consumer.poll(PATIENCE)

    assert message is not None
    assert (value, b"key") == (message.value(), message.key())


async def test_producer_and_consumer_of_asyncio(
    broker: BrokerProcess, clients: Clients, topic: str
) -> None:
    clients.create(topic, 1)
    conf = {"bootstrap.servers": broker.bootstrap}
    producer = AIOProducer(conf)
    sent = [await producer.produce(topic, value=value) for value in numbered(5)]
    await producer.flush()
    places = [(await each).offset() for each in sent]
    await producer.close()
    consumer = AIOConsumer(conf | {"group.id": topic, "auto.offset.reset": "earliest"})
    await consumer.subscribe([topic])

    seen = [(await consumer.poll(timeout=PATIENCE)).value() for _ in range(5)]
    await consumer.close()

    assert [0, 1, 2, 3, 4] == places
    assert numbered(5) == seen
