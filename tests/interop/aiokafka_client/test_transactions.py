"""
Transactions with aiokafka: what others see of them, and when.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from aiokafka.errors import (  # type: ignore[import-untyped]  # no type hints
    InvalidTransactionTimeout,
    OutOfOrderSequenceNumber,
    ProducerFenced,
)

from tests.interop.aiokafka_client.clients import (
    PATIENCE,
    Clients,
    nothing_comes,
    numbered,
    partitions_of,
    values,
)
from tests.support.some import some


@pytest.mark.parametrize("end", ["commit", "abort"])
async def test_nobody_reads_past_an_open_transaction(
    clients: Clients, topic: str, end: str
) -> None:
    """
    Nobody who wants committed records only: what another producer sent behind it waits, too.
    """
    [p0] = partitions_of(topic, 0)
    producer = await clients.producer(transactional_id=topic)
    await producer.begin_transaction()
    await producer.send_and_wait(topic, b"in it", partition=0)
    await clients.send(topic, 0, [b"behind it"])
    consumer = await clients.consumer(topic, isolation_level="read_committed", fetch_max_wait_ms=20)
    other = await clients.consumer(topic)

    assert [b"in it", b"behind it"] == await values(other, 2)
    assert await nothing_comes(consumer)
    assert (0, 2) == (consumer.last_stable_offset(p0), consumer.highwater(p0))
    await getattr(producer, f"{end}_transaction")()

    expected = [b"in it", b"behind it"] if end == "commit" else [b"behind it"]
    assert expected == await values(consumer, len(expected))
    assert await nothing_comes(consumer)
    assert (3, 3) == (consumer.last_stable_offset(p0), consumer.highwater(p0))


async def test_of_many_transactions_the_committed_ones_are_read(
    clients: Clients, topic: str
) -> None:
    producer = await clients.producer(transactional_id=topic)
    for number in range(10):
        await producer.begin_transaction()
        for partition in (0, 1):
            await producer.send(topic, b"%d" % number, partition=partition)
        await (producer.abort_transaction if number % 3 else producer.commit_transaction)()

    consumer = await clients.consumer(topic, isolation_level="read_committed")

    for part in partitions_of(topic, 0, 1):
        assert [b"0", b"3", b"6", b"9"] == await values(consumer, 4, part)
    assert await nothing_comes(consumer)


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


async def test_a_transaction_may_be_empty(clients: Clients, topic: str) -> None:
    producer = await clients.producer(transactional_id=topic)
    for end in (producer.commit_transaction, producer.abort_transaction):
        await producer.begin_transaction()
        await end()

    async with producer.transaction():
        sent = await producer.send_and_wait(topic, b"one", partition=0)

    assert 0 == sent.offset


async def test_the_next_producer_of_a_name_fences_the_one_before(
    clients: Clients, topic: str
) -> None:
    """
    It gets the same producer id, and the older one can do no more.
    """
    older = await clients.producer(transactional_id=topic)
    await older.begin_transaction()
    await older.send_and_wait(topic, b"lost", partition=0)

    newer = await clients.producer(transactional_id=topic)
    async with newer.transaction():
        await newer.send_and_wait(topic, b"kept", partition=0)

    assert older._txn_manager.producer_id == newer._txn_manager.producer_id
    assert older._txn_manager.producer_epoch < newer._txn_manager.producer_epoch
    with pytest.raises(ProducerFenced):
        await older.send_and_wait(topic, b"late", partition=0)
    with pytest.raises(ProducerFenced):
        await older.commit_transaction()
    consumer = await clients.consumer(topic, isolation_level="read_committed")
    assert [b"kept"] == await values(consumer, 1)
    assert await nothing_comes(consumer)


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


async def test_offsets_are_part_of_the_transaction(clients: Clients, topic: str) -> None:
    """
    Read, write and commit: all of it or nothing, round by round, the second of which fails.
    """
    parts = partitions_of(topic, 0, 1)
    for partition in (0, 1):
        await clients.send(topic, partition, numbered(20))
    producer = await clients.producer(transactional_id=topic)
    reader = await clients.consumer(topic, group_id=topic, enable_auto_commit=False)

    fails = iter([False, True])
    committed = dict.fromkeys(parts, 0)
    while {20} != set(committed.values()):
        for part, offset in committed.items():
            reader.seek(part, offset)
        batches = await reader.getmany(timeout_ms=10_000, max_records=8)
        await producer.begin_transaction()
        for part, records in batches.items():
            for record in records:
                await producer.send(f"{topic}-out", record.value, partition=part.partition)
        offsets = {part: records[-1].offset + 1 for part, records in batches.items()}
        await producer.send_offsets_to_transaction(offsets, topic)
        for part in some(batches):
            assert offsets[part] != await reader.committed(part)
        fail = next(fails, False)
        await (producer.abort_transaction if fail else producer.commit_transaction)()
        if not fail:
            committed |= offsets

    consumer = await clients.consumer(f"{topic}-out", isolation_level="read_committed")
    for part in partitions_of(f"{topic}-out", 0, 1):
        assert numbered(20) == await values(consumer, 20, part)
    assert await nothing_comes(consumer)


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


async def test_a_transaction_that_takes_too_long_is_aborted(clients: Clients, topic: str) -> None:
    """
    By the broker; its producer finds out when it goes on.
    """
    producer = await clients.producer(transactional_id=topic, transaction_timeout_ms=100)
    consumer = await clients.consumer(topic, isolation_level="read_committed")
    await producer.begin_transaction()
    await producer.send_and_wait(topic, b"late", partition=0)
    await clients.send(topic, 0, [b"behind it"])

    assert [b"behind it"] == await values(consumer, 1)
    with pytest.raises(ProducerFenced):
        await _finish(producer, topic)


async def _finish(producer: Any, topic: str) -> None:
    async with asyncio.timeout(PATIENCE):
        await producer.send_and_wait(topic, b"later still", partition=0)
        await producer.commit_transaction()


async def test_too_long_a_timeout_is_refused(clients: Clients, topic: str) -> None:
    """
    Beyond ``transaction.max.timeout.ms``.
    """
    with pytest.raises(InvalidTransactionTimeout):
        await clients.producer(transactional_id=topic, transaction_timeout_ms=900_001)
