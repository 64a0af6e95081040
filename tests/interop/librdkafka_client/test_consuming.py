"""
Reading with librdkafka: assignments, positions, watermarks, events.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from confluent_kafka import (
    OFFSET_BEGINNING,
    OFFSET_END,
    KafkaError,
    KafkaException,
    TopicPartition,
)

from tests.interop.librdkafka_client.clients import (
    PATIENCE,
    Clients,
    eventually,
    fails_with,
    messages,
    numbered,
    values,
)


def test_incremental_assignment_grows_and_shrinks(clients: Clients, topic: str) -> None:
    """
    Partition by partition, none twice; one that was given back is read no further.
    """
    one, two = topic, f"{topic}-too"
    for name in (one, two):
        clients.create(name, 1)
        clients.send(name, 0, [b"first of " + name.encode()])
    consumer = clients.consumer(topic, auto_offset_reset="error")

    consumer.incremental_assign([TopicPartition(one, 0, OFFSET_BEGINNING)])
    assert [b"first of " + one.encode()] == values(consumer, 1)
    consumer.commit(asynchronous=False)
    with fails_with(KafkaError._CONFLICT):
        consumer.incremental_assign([TopicPartition(one, 0)])
    consumer.incremental_assign([TopicPartition(two, 0, OFFSET_BEGINNING)])
    assert [b"first of " + two.encode()] == values(consumer, 1)
    consumer.incremental_unassign([TopicPartition(one, 0)])
    clients.send(one, 0, [b"second"])
    clients.send(two, 0, [b"the only one"])
    assert [b"the only one"] == values(consumer, 1)
    consumer.incremental_assign([TopicPartition(one, 0)])
    assert [b"second"] == values(consumer, 1)
    consumer.incremental_unassign([TopicPartition(one, 0)])
    with fails_with(KafkaError._INVALID_ARG):
        consumer.incremental_unassign([TopicPartition(one, 0)])


def test_consumer_beginning_at_the_end_gets_only_new_records(clients: Clients, topic: str) -> None:
    clients.create(topic, 1)
    clients.send(topic, 0, numbered(5))
    consumer = clients.consumer(topic, enable_partition_eof=True)
    consumer.assign([TopicPartition(topic, 0, OFFSET_END)])

    end = consumer.poll(PATIENCE)
    assert end is not None
    clients.send(topic, 0, [b"new"])

    assert 5 == end.offset()
    assert [b"new"] == values(consumer, 1)


def test_watermark_offsets_are_requested_or_cached(clients: Clients, topic: str) -> None:
    """
    Asked for at the broker, or as the last fetch told them.
    """
    clients.create(topic)
    clients.send(topic, 0, numbered(3))
    consumer = clients.consumer(topic)
    part = TopicPartition(topic, 0)
    consumer.assign([part])

    assert (0, 3) == consumer.get_watermark_offsets(part, PATIENCE)
    assert numbered(3) == values(consumer, 3)
    assert 3 == consumer.get_watermark_offsets(part, cached=True)[1]
    assert (0, 0) == consumer.get_watermark_offsets(TopicPartition(topic, 1), PATIENCE)
    with fails_with(KafkaError._UNKNOWN_PARTITION):
        consumer.get_watermark_offsets(TopicPartition(topic, 2), PATIENCE)


def test_end_of_each_partition_is_reported(clients: Clients, topic: str) -> None:
    clients.create(topic)
    clients.send(topic, 0, numbered(2))
    consumer = clients.consumer(topic, enable_partition_eof=True)
    consumer.assign([TopicPartition(topic, 0), TopicPartition(topic, 1)])

    def until_ends(count: int) -> list[tuple[int | None, int | None]]:
        ends: list[tuple[int | None, int | None]] = []
        while len(ends) < count:
            message = consumer.poll(PATIENCE)
            assert message is not None
            if message.error():
                assert KafkaError._PARTITION_EOF == message.error().code()  # type: ignore[union-attr]  # there is one
                ends.append((message.partition(), message.offset()))
        return ends

    assert [(0, 2), (1, 0)] == sorted(until_ends(2), key=str)
    clients.send(topic, 1, numbered(1))
    assert [(1, 1)] == until_ends(1)


@pytest.mark.parametrize(("clock", "kind"), [("CreateTime", 1), ("LogAppendTime", 2)])
def test_a_message_has_a_timestamp_type_and_a_leader_epoch(
    clients: Clients, topic: str, clock: str, kind: int
) -> None:
    clients.create(topic, 1, message_timestamp_type=clock)
    producer = clients.producer()
    producer.produce(topic, b"", timestamp=123_456_789_000)
    producer.flush(PATIENCE)
    consumer = clients.consumer(topic)
    consumer.assign([TopicPartition(topic, 0)])

    [message] = messages(consumer, 1)

    assert kind == message.timestamp()[0]
    assert (clock == "CreateTime") == (message.timestamp()[1] == 123_456_789_000)
    assert 0 == message.leader_epoch()


def test_unknown_topic_is_reported_and_not_created(clients: Clients, topic: str) -> None:
    consumer = clients.consumer(topic)

    consumer.subscribe([topic])
    with fails_with(KafkaError.UNKNOWN_TOPIC_OR_PART):
        messages(consumer, 1)
    assert topic not in consumer.list_topics(timeout=PATIENCE).topics


def test_statistics_show_the_traffic(clients: Clients, topic: str) -> None:
    told: list[dict[str, Any]] = []
    clients.create(topic, 1)
    clients.send(topic, 0, numbered(3))
    consumer = clients.consumer(
        topic, stats_cb=lambda text: told.append(json.loads(text)), statistics_interval_ms=50
    )
    consumer.subscribe([topic])
    assert numbered(3) == values(consumer, 3)
    already = len(told)
    eventually(lambda: len(told) > already + 1, consumer)

    latest = told[-1]
    assert 3 == latest["topics"][topic]["partitions"]["0"]["app_offset"]
    assert 3 == latest["topics"][topic]["partitions"]["0"]["hi_offset"]
    assert ("up", 1) == (latest["cgrp"]["state"], latest["cgrp"]["assignment_size"])
    assert {"UP"} <= {node["state"] for node in latest["brokers"].values()}


def test_stored_offset_is_committed(clients: Clients, topic: str) -> None:
    """
    And nothing that was not stored; a message that is an error cannot be.
    """
    clients.create(topic, 1)
    clients.send(topic, 0, numbered(5))
    consumer = clients.consumer(topic, enable_auto_offset_store=False, enable_partition_eof=True)
    consumer.assign([TopicPartition(topic, 0)])

    read = messages(consumer, 5)
    consumer.store_offsets(read[2])
    assert [3] == [part.offset for part in consumer.commit(asynchronous=False) or []]
    end = consumer.poll(PATIENCE)
    assert end is not None
    with pytest.raises(KafkaException):
        consumer.store_offsets(end)
    with pytest.raises(KafkaException):
        consumer.commit(message=end)
    assert [3] == [part.offset for part in consumer.committed([TopicPartition(topic, 0)], PATIENCE)]
