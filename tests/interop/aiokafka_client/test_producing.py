"""
Sending with aiokafka: what the broker answers, and what it refuses.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from aiokafka.admin import NewTopic  # type: ignore[import-untyped]  # no type hints
from aiokafka.errors import (  # type: ignore[import-untyped]  # the same
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


async def test_manually_built_batch_is_stored_unchanged(clients: Clients, topic: str) -> None:
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


async def test_a_serialized_record_is_read_as_it_was_sent(clients: Clients, topic: str) -> None:
    producer = await clients.producer(
        key_serializer=str.encode, value_serializer=lambda value: json.dumps(value).encode()
    )
    headers = [("one", b"1"), ("one", b""), ("none", None)]
    await producer.send_and_wait(topic, ["a", "list"], key="key", headers=headers)
    consumer = await clients.consumer(
        topic, key_deserializer=bytes.decode, value_deserializer=json.loads
    )

    record = await asyncio.wait_for(consumer.getone(), PATIENCE)

    assert ("key", ["a", "list"], tuple(headers)) == (record.key, record.value, record.headers)
    assert (3, 13) == (record.serialized_key_size, record.serialized_value_size)


@pytest.mark.parametrize(("clock", "kind"), [("CreateTime", 0), ("LogAppendTime", 1)])
async def test_a_record_has_the_timestamp_and_its_type_that_the_producer_got(
    clients: Clients, topic: str, clock: str, kind: int
) -> None:
    admin = await clients.admin()
    configs = {"message.timestamp.type": clock}
    await admin.create_topics([NewTopic(topic, 1, 1, topic_configs=configs)])
    producer = await clients.producer()

    sent = await producer.send_and_wait(topic, b"", timestamp_ms=1234)
    consumer = await clients.consumer(topic)
    record = await asyncio.wait_for(consumer.getone(), PATIENCE)

    assert (clock == "CreateTime") == (sent.timestamp == 1234)
    assert (sent.timestamp, kind) == (record.timestamp, record.timestamp_type)
    assert kind == sent.timestamp_type


async def test_illegal_topic_is_refused(clients: Clients, caplog: pytest.LogCaptureFixture) -> None:
    producer = await clients.producer(request_timeout_ms=300)

    with pytest.raises(UnknownTopicOrPartitionError):
        await producer.send_and_wait("no spaces", b"")

    assert "'no spaces' is not a valid topic name" in caplog.text


@pytest.mark.parametrize("transactional", [False, True])
async def test_record_with_a_lost_response_is_stored_once(
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
