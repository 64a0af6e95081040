"""
Transactions with librdkafka.
"""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer, TopicPartition

from tests.interop.librdkafka_client.clients import (
    PATIENCE,
    Clients,
    fails_with,
    numbered,
    offsets,
    values,
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


@pytest.mark.parametrize("ends", ["c", "a", "ac", "ca", "acacc"])
def test_what_is_committed_is_read(clients: Clients, topic: str, ends: str) -> None:
    clients.create(topic, 1)
    producer = transactional(clients, topic)
    for number, end in enumerate(ends):
        producer.begin_transaction()
        for value in numbered(10, first=number * 10):
            producer.produce(topic, value)
        if end == "c":
            producer.commit_transaction(PATIENCE)
        else:
            producer.flush(PATIENCE)
            producer.abort_transaction(PATIENCE)

    expected = [
        value
        for number, end in enumerate(ends)
        if end == "c"
        for value in numbered(10, number * 10)
    ]
    assert expected == committed(clients, topic)


def test_offsets_are_part_of_the_transaction(clients: Clients, topic: str) -> None:
    """
    Of a member of a group, with its generation; seen when committed.
    """
    clients.create(topic, 1)
    clients.create(f"{topic}-out", 1)
    clients.send(topic, 0, numbered(10))
    reader = clients.consumer(topic)
    reader.subscribe([topic])
    producer = transactional(clients, topic)
    part = TopicPartition(topic, 0)

    for end, expected in (("abort", -1001), ("commit", 5)):
        reader_values = values(reader, 5)
        producer.begin_transaction()
        for value in reader_values:
            producer.produce(f"{topic}-out", value)
        producer.send_offsets_to_transaction(
            reader.position([part]), reader.consumer_group_metadata(), PATIENCE
        )
        getattr(producer, f"{end}_transaction")(PATIENCE)
        assert {(topic, 0): expected} == offsets(reader.committed([part], PATIENCE))
        reader.seek(TopicPartition(topic, 0, 0))

    assert numbered(5) == committed(clients, f"{topic}-out")


def test_the_next_producer_of_a_name_fences_the_one_before(clients: Clients, topic: str) -> None:
    """
    Whatever that one has sent is aborted, and it is told so for good.
    """
    clients.create(topic, 1)
    older = transactional(clients, topic)
    older.begin_transaction()
    older.produce(topic, b"lost")
    older.flush(PATIENCE)

    newer = transactional(clients, topic)
    newer.begin_transaction()
    newer.produce(topic, b"kept")
    newer.commit_transaction(PATIENCE)

    with pytest.raises(KafkaException) as fenced:
        older.commit_transaction(PATIENCE)
    assert fenced.value.args[0].fatal()
    assert KafkaError._FENCED == fenced.value.args[0].code()
    assert [b"kept"] == committed(clients, topic)


def test_a_message_that_fails_makes_the_transaction_abortable(clients: Clients, topic: str) -> None:
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


def test_a_transaction_that_takes_too_long_is_aborted(clients: Clients, topic: str) -> None:
    """
    By the broker; what waited behind it is read, and its producer cannot commit any more.
    """
    clients.create(topic, 1)
    producer = transactional(clients, topic, transaction_timeout_ms=1000)
    producer.begin_transaction()
    producer.produce(topic, b"late")
    producer.flush(PATIENCE)
    clients.send(topic, 0, [b"behind it"])
    consumer = clients.consumer(f"{topic}-too", isolation_level="read_committed")
    consumer.assign([TopicPartition(topic, 0, 0)])

    assert [b"behind it"] == values(consumer, 1)
    with pytest.raises(KafkaException) as failed:
        producer.commit_transaction(PATIENCE)
    assert failed.value.args[0].fatal()


def test_too_long_a_timeout_is_refused(clients: Clients, topic: str) -> None:
    """
    Beyond ``transaction.max.timeout.ms``.
    """
    with fails_with(KafkaError.INVALID_TRANSACTION_TIMEOUT):
        transactional(clients, topic, transaction_timeout_ms=900_001, message_timeout_ms=900_001)
