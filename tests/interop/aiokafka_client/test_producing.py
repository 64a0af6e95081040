"""
Sending with aiokafka: what the broker answers, and what it refuses.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from aiokafka.admin import NewTopic  # type: ignore[import-untyped]  # no type hints
from aiokafka.errors import (  # type: ignore[import-untyped]  # the same
    MessageSizeTooLargeError,
    RequestTimedOutError,
    UnknownTopicOrPartitionError,
)
from aiokafka.protocol.produce import (  # type: ignore[import-untyped]  # the same
    ProduceRequest,
)

from tests.interop.aiokafka_client.clients import (
    PATIENCE,
    Clients,
    nothing_comes,
    numbered,
    values,
)

NOW_MS = 1_500_000_000_000


async def test_the_answer_says_where_a_record_is(clients: Clients, topic: str) -> None:
    """
    With the producer's own time, or the one that it was given.
    """
    producer = await clients.producer()

    first = await producer.send_and_wait(topic, b"one", partition=1)
    second = await producer.send_and_wait(topic, b"two", partition=1, timestamp_ms=123_123_123)

    assert [(topic, 1, 0), (topic, 1, 1)] == [
        (sent.topic, sent.partition, sent.offset) for sent in (first, second)
    ]
    assert first.timestamp > NOW_MS
    assert (123_123_123, 0) == (second.timestamp, second.timestamp_type)


async def test_the_answer_says_what_time_the_broker_set(clients: Clients, topic: str) -> None:
    """
    In a topic with ``message.timestamp.type=LogAppendTime``, whatever the producer said.
    """
    admin = await clients.admin()
    configs = {"message.timestamp.type": "LogAppendTime"}
    await admin.create_topics([NewTopic(topic, 1, 1, topic_configs=configs)])
    producer = await clients.producer()

    sent = await producer.send_and_wait(topic, b"one", timestamp_ms=1)
    consumer = await clients.consumer(topic)
    record = await asyncio.wait_for(consumer.getone(), PATIENCE)

    assert sent.timestamp > NOW_MS
    assert (sent.timestamp, 1) == (record.timestamp, record.timestamp_type)
    assert 1 == sent.timestamp_type


@pytest.mark.parametrize("acks", [0, 1, "all"])
async def test_a_record_arrives_whatever_is_waited_for(
    clients: Clients, topic: str, acks: int | str
) -> None:
    """
    Without an answer nobody knows where; it is there all the same, and in order.
    """
    producer = await clients.producer(acks=acks)

    sent = [await producer.send_and_wait(topic, value, partition=0) for value in numbered(20)]
    consumer = await clients.consumer(topic)

    assert numbered(20) == await values(consumer, 20)
    assert (acks == 0) == (sent[-1] is None)


async def test_a_key_has_one_partition(clients: Clients, topic: str) -> None:
    producer = await clients.producer(key_serializer=str.encode)

    places = {
        key: {(await producer.send_and_wait(topic, b"", key=key)).partition for _ in range(3)}
        for key in ("a", "b", "c", "d", "e")
    }

    assert {1} == {len(partitions) for partitions in places.values()}
    assert {0, 1} == set().union(*places.values())


async def test_many_records_on_their_way_keep_their_order(clients: Clients, topic: str) -> None:
    """
    Gathered in batches and flushed; each of them is answered with its own offset.
    """
    producer = await clients.producer(linger_ms=5, max_batch_size=500)

    futures = [await producer.send(topic, value, partition=0) for value in numbered(1000)]
    await producer.flush()

    assert list(range(1000)) == [future.result().offset for future in futures]
    assert numbered(1000) == await values(await clients.consumer(topic), 1000)


async def test_a_batch_is_stored_as_it_was_made(clients: Clients, topic: str) -> None:
    """
    By hand, until it takes no more; sent after another record, it begins behind that.
    """
    await clients.send(topic, 0, [b"before"])
    producer = await clients.producer(max_batch_size=1000)
    batch = producer.create_batch()
    while batch.append(key=b"key", value=b"value", timestamp=None) is not None:
        pass
    count = batch.record_count()

    answer = await (await producer.send_batch(batch, topic, partition=0))

    assert count > 10
    assert (0, 1) == (answer.partition, answer.offset)
    assert [b"before"] + [b"value"] * count == await values(
        await clients.consumer(topic), 1 + count
    )


async def test_a_batch_that_is_too_large_is_refused(clients: Clients, topic: str) -> None:
    """
    By ``max.message.bytes`` of its topic; nothing of it is stored, and the next one is taken.
    """
    admin = await clients.admin()
    await admin.create_topics([NewTopic(topic, 1, 1, topic_configs={"max.message.bytes": "1000"})])
    producer = await clients.producer()

    with pytest.raises(MessageSizeTooLargeError):
        await producer.send_and_wait(topic, b"x" * 1000)

    assert 0 == (await producer.send_and_wait(topic, b"x" * 500)).offset


async def test_a_topic_that_cannot_be_is_refused(
    clients: Clients, caplog: pytest.LogCaptureFixture
) -> None:
    producer = await clients.producer(request_timeout_ms=300)

    with pytest.raises(UnknownTopicOrPartitionError):
        await producer.send_and_wait("no spaces", b"")

    assert "'no spaces' is not a valid topic name" in caplog.text


@pytest.mark.parametrize("transactional", [False, True])
async def test_a_record_whose_answer_was_lost_is_stored_once(
    clients: Clients, topic: str, transactional: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    The producer sends it again, and the broker knows it by its sequence number.
    """
    options = {"transactional_id": topic} if transactional else {"enable_idempotence": True}
    producer = await clients.producer(retry_backoff_ms=10, **options)
    lost = _lose_answers(producer, monkeypatch, count=2)

    if transactional:
        await producer.begin_transaction()
    sent = [await producer.send_and_wait(topic, value, partition=0) for value in numbered(3)]
    if transactional:
        await producer.commit_transaction()

    assert 2 == len(lost)
    assert [0, 1, 2] == [each.offset for each in sent]
    consumer = await clients.consumer(topic, isolation_level="read_committed")
    assert numbered(3) == await values(consumer, 3)
    assert await nothing_comes(consumer)


def _lose_answers(producer: Any, monkeypatch: pytest.MonkeyPatch, *, count: int) -> list[Any]:
    """
    Make the client believe that its first produce requests were never answered.
    """
    lost: list[Any] = []
    send: Callable[..., Any] = producer.client.send

    async def forgetful(node: int, request: Any, **options: Any) -> Any:
        answer = await send(node, request, **options)
        if isinstance(request, ProduceRequest) and len(lost) < count:
            lost.append(answer)
            raise RequestTimedOutError
        return answer

    monkeypatch.setattr(producer.client, "send", forgetful)
    return lost
