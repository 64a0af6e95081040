"""
Transactions with librdkafka.
"""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer, TopicPartition

from tests.interop.librdkafka_client.clients import (
    PATIENCE,
    Clients,
)


def transactional(clients: Clients, name: str, **options: object) -> Producer:
    """
    A producer that can begin a transaction.
    """
    producer = clients.producer(transactional_id=name, **options)
    producer.init_transactions(PATIENCE)
    return producer


def committed(clients: Clients, topic: str) -> list[bytes]:
    """
    What a reader of committed records finds in partition 0 up to its end.
    """
    consumer = clients.consumer(
        f"readers of {topic}", isolation_level="read_committed", enable_partition_eof=True
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    seen: list[bytes] = []
    while True:
        message = consumer.poll(PATIENCE)
        assert message is not None, "neither a record nor the end"
        error = message.error()
        if error is not None:
            assert KafkaError._PARTITION_EOF == error.code()
            return seen
        seen.append(message.value())  # type: ignore[arg-type]  # bytes, as nothing deserializes


def test_failed_message_makes_the_transaction_abortable(clients: Clients, topic: str) -> None:
    """
    It cannot be committed; that of the next producer can.
    """
    clients.create(topic, 1, max_message_bytes="1000")
    producer = transactional(clients, topic)
    producer.begin_transaction()
    producer.produce(topic, b"small")
    producer.flush(PATIENCE)
    producer.produce(topic, b"x" * 2000)
    with pytest.raises(KafkaException) as failed:
        producer.commit_transaction(PATIENCE)
    assert failed.value.args[0].txn_requires_abort()
    producer.abort_transaction(PATIENCE)

    again = transactional(clients, topic)
    again.begin_transaction()
    again.produce(topic, b"kept")
    again.commit_transaction(PATIENCE)

    assert [b"kept"] == committed(clients, topic)
