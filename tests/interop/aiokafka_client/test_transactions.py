"""
Transactions with aiokafka: what others see of them, and when.
"""

from __future__ import annotations

import asyncio

import pytest
from aiokafka.errors import (  # type: ignore[import-untyped]  # no type hints
    OutOfOrderSequenceNumber,
)

from tests.interop.aiokafka_client.clients import (
    Clients,
    nothing_comes,
    partitions_of,
    values,
)


@pytest.mark.parametrize("level", ["read_committed", "read_uncommitted"])
async def test_a_marker_is_passed_over(clients: Clients, topic: str, level: str) -> None:
    """
    A reader whose fetch finds nothing else goes on behind it.
    """
    [p0] = partitions_of(topic, 0)
    producer = await clients.producer(transactional_id=topic)
    async with producer.transaction():
        await producer.send_and_wait(topic, b"one", partition=0)
    consumer = await clients.consumer(isolation_level=level, fetch_max_bytes=10)
    consumer.assign([p0])
    consumer.seek(p0, 1)

    assert await nothing_comes(consumer)
    assert 2 == await consumer.position(p0)
    async with producer.transaction():
        await producer.send_and_wait(topic, b"two", partition=0)
    assert [b"two"] == await values(consumer, 1)


async def test_a_gap_in_the_sequence_is_refused(clients: Clients, topic: str) -> None:
    """
    The transaction is lost, and the producer's next one is not.
    """
    [p0] = partitions_of(topic, 0)
    producer = await clients.producer(transactional_id=topic)
    await producer.begin_transaction()
    await producer.send_and_wait(topic, b"one", partition=0)
    producer._txn_manager.increment_sequence_number(p0, 1)

    with pytest.raises(OutOfOrderSequenceNumber):
        await producer.send_and_wait(topic, b"three", partition=0)
    await producer.stop()

    again = await clients.producer(transactional_id=topic)
    async with again.transaction():
        await again.send_and_wait(topic, b"kept", partition=0)
    consumer = await clients.consumer(topic, isolation_level="read_committed")
    assert [b"kept"] == await values(consumer, 1)


async def test_what_was_not_sent_yet_is_sent_before_the_commit(
    clients: Clients, topic: str
) -> None:
    producer = await clients.producer(transactional_id=topic, linger_ms=60_000, max_batch_size=100)
    await producer.begin_transaction()
    futures = [await producer.send(topic, b"x" * 50, partition=0) for _ in range(10)]

    await producer.commit_transaction()

    assert list(range(10)) == [future.result().offset for future in futures]


async def test_a_commit_that_nobody_waits_for_is_finished(clients: Clients, topic: str) -> None:
    """
    Who asked for it was cancelled in the middle.
    """
    producer = await clients.producer(transactional_id=topic)
    await producer.begin_transaction()
    await producer.send_and_wait(topic, b"one", partition=0)
    commit = asyncio.create_task(producer.commit_transaction())
    await asyncio.sleep(0)
    commit.cancel()

    consumer = await clients.consumer(topic, isolation_level="read_committed")

    assert [b"one"] == await values(consumer, 1)
