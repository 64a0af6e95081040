"""
Sending with librdkafka: what is reported of each message, and what is refused.
"""

from __future__ import annotations

from confluent_kafka import (
    KafkaError,
    Message,
)
from confluent_kafka.aio import AIOConsumer, AIOProducer

from tests.interop.librdkafka_client.clients import (
    PATIENCE,
    Clients,
    fails_with,
    numbered,
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


def test_unknown_partition_is_refused(clients: Clients, topic: str) -> None:
    clients.create(topic)
    reports, producer = Reports(), clients.producer()

    producer.produce(topic, b"", partition=0, on_delivery=reports)
    producer.flush(PATIENCE)
    with fails_with(KafkaError._UNKNOWN_PARTITION):
        producer.produce(topic, b"", partition=7)

    assert [None] == reports.errors


async def test_asyncio_producer_and_consumer_work(
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
