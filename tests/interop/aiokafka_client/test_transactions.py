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
    eventually,
    nothing_comes,
    numbered,
    partitions_of,
    values,
)


@pytest.mark.parametrize("level", ["read_committed", "read_uncommitted"])
async def test_consumer_skips_markers(clients: Clients, topic: str, level: str) -> None:
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


async def test_an_open_transaction_holds_the_last_stable_offset(
    clients: Clients, topic: str
) -> None:
    [p0] = partitions_of(topic, 0)
    producer = await clients.producer(transactional_id=topic)
    await producer.begin_transaction()
    await producer.send_and_wait(topic, b"in it", partition=0)
    await clients.send(topic, 0, [b"behind it"])
    consumer = await clients.consumer(topic, isolation_level="read_committed", fetch_max_wait_ms=20)

    assert await nothing_comes(consumer)
    assert (0, 2) == (consumer.last_stable_offset(p0), consumer.highwater(p0))
    await producer.commit_transaction()

    assert [b"in it", b"behind it"] == await values(consumer, 2)
    await eventually(lambda: (3, 3) == (consumer.last_stable_offset(p0), consumer.highwater(p0)))


async def test_the_next_producer_of_a_name_has_its_id_and_a_later_epoch(
    clients: Clients, topic: str
) -> None:
    older, newer = [(await clients.producer(transactional_id=topic))._txn_manager for _ in range(2)]

    assert older.producer_id == newer.producer_id
    assert older.producer_epoch < newer.producer_epoch


@pytest.mark.parametrize("members", [1, 2])
async def test_members_process_each_record_once_though_a_round_fails(
    clients: Clients, topic: str, members: int
) -> None:
    """
    Each round is a transaction of all records read and of their offsets; the second one is aborted.
    """
    for partition in (0, 1):
        await clients.send(topic, partition, numbered(20))
    readers = [
        await clients.consumer(
            topic, group_id=topic, enable_auto_commit=False, heartbeat_interval_ms=50
        )
        for _ in range(members)
    ]
    await eventually(
        lambda: [2 // members] * members == [len(reader.assignment()) for reader in readers]
    )
    parts = {part: reader for reader in readers for part in reader.assignment()}
    producer = await clients.producer(transactional_id=topic)
    committed = dict.fromkeys(partitions_of(topic, 0, 1), 0)
    assert set(committed) == set(parts)

    rounds = 0
    while {20} != set(committed.values()):
        rounds += 1
        for part, offset in committed.items():
            parts[part].seek(part, offset)
        await producer.begin_transaction()
        offsets = {}
        for reader in readers:
            batches = await reader.getmany(timeout_ms=1000, max_records=8)
            for part, records in batches.items():
                for record in records:
                    await producer.send(f"{topic}-out", record.value, partition=part.partition)
                offsets[part] = records[-1].offset + 1
        await producer.send_offsets_to_transaction(offsets, topic)
        for part, offset in offsets.items():
            assert offset != await parts[part].committed(part)
        if rounds == 2:
            await producer.abort_transaction()
            continue
        await producer.commit_transaction()
        committed |= offsets

    assert rounds > 3
    consumer = await clients.consumer(f"{topic}-out", isolation_level="read_committed")
    for part in partitions_of(f"{topic}-out", 0, 1):
        assert numbered(20) == await values(consumer, 20, part)
    assert await nothing_comes(consumer)


async def test_gap_in_the_sequence_is_refused(clients: Clients, topic: str) -> None:
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


async def test_unsent_records_are_sent_before_the_commit(clients: Clients, topic: str) -> None:
    producer = await clients.producer(transactional_id=topic, linger_ms=60_000, max_batch_size=100)
    await producer.begin_transaction()
    futures = [await producer.send(topic, b"x" * 50, partition=0) for _ in range(10)]

    await producer.commit_transaction()

    assert list(range(10)) == [future.result().offset for future in futures]


async def test_cancelled_commit_is_completed(clients: Clients, topic: str) -> None:
    producer = await clients.producer(transactional_id=topic)
    await producer.begin_transaction()
    await producer.send_and_wait(topic, b"one", partition=0)
    commit = asyncio.create_task(producer.commit_transaction())
    await asyncio.sleep(0)
    commit.cancel()

    consumer = await clients.consumer(topic, isolation_level="read_committed")

    assert [b"one"] == await values(consumer, 1)
