"""
Reading with aiokafka: what comes, from where, and how much at a time.
"""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest
from aiokafka import (  # type: ignore[import-untyped]  # the library ships no type hints
    TopicPartition,
)
from aiokafka.errors import (  # type: ignore[import-untyped]  # the same
    IllegalOperation,
    KafkaTimeoutError,
)

from tests.interop.aiokafka_client.clients import (
    PATIENCE,
    Clients,
    nothing_comes,
    numbered,
    partitions_of,
    values,
)


async def test_partitions_can_be_polled_individually(clients: Clients, topic: str) -> None:
    """
    Two tasks share a consumer, each for a partition of its own.
    """
    p0, p1 = partitions_of(topic, 0, 1)
    await clients.send_batch(topic, 0, numbered(50))
    await clients.send_batch(topic, 1, numbered(50, first=50))
    consumer = await clients.consumer(topic)

    one, zero = await asyncio.gather(values(consumer, 50, p1), values(consumer, 50, p0))

    assert numbered(50) == zero
    assert numbered(50, first=50) == one


async def test_consumers_without_a_group_each_get_every_record(
    clients: Clients, topic: str
) -> None:
    [p0] = partitions_of(topic, 0)
    await clients.send(topic, 0, numbered(3))

    readers = [await clients.consumer(topic, group_id=None) for _ in range(2)]

    assert [numbered(3)] * 2 == [await values(reader, 3) for reader in readers]
    with pytest.raises(IllegalOperation):
        await readers[0].commit()
    with pytest.raises(IllegalOperation):
        await readers[0].committed(p0)


@pytest.mark.parametrize("limit", ["max_partition_fetch_bytes", "fetch_max_bytes"])
async def test_record_beyond_the_fetch_limit_is_delivered(
    clients: Clients, topic: str, limit: str
) -> None:
    """
    The first batch comes whole, however large (KIP-74); the ones around it come, too.
    """
    sent = [b"small", b"x" * 50_000, b"small again"]
    await clients.send(topic, 0, sent)

    consumer = await clients.consumer(topic, **cast(dict[str, Any], {limit: 4000}))

    assert sent == await values(consumer, 3)


async def test_no_partition_starves_under_a_small_fetch_limit(clients: Clients, topic: str) -> None:
    """
    Each fetch has room for one batch of one partition, and yet both get their turn.
    """
    sent = [b"x" * 2000 + value for value in numbered(10)]
    for partition in (0, 1):
        await clients.send(topic, partition, sent)

    consumer = await clients.consumer(topic, fetch_max_bytes=2100)
    records = [await asyncio.wait_for(consumer.getone(), PATIENCE) for _ in range(20)]

    assert [sent, sent] == [
        [record.value for record in records if record.partition == partition]
        for partition in (0, 1)
    ]
    # Whoever is read to its end first leaves the other something.
    assert {0, 1} == {record.partition for record in records[:12]}


async def test_fetch_from_within_a_batch_hides_earlier_records(
    clients: Clients, topic: str
) -> None:
    """
    The broker sends the whole batch, as it is compressed; the consumer shows the rest of it.
    """
    await clients.send_batch(topic, 0, numbered(10), compression_type="gzip")

    for first in (0, 4, 9):
        consumer = await clients.consumer()
        consumer.assign(partitions_of(topic, 0))
        consumer.seek(TopicPartition(topic, 0), first)
        assert numbered(10 - first, first=first) == await values(consumer, 10 - first)


async def test_a_position_moves_to_the_beginning_and_to_the_end(
    clients: Clients, topic: str
) -> None:
    """
    The beginning is that of all partitions, the end that of one.
    """
    p0, p1 = partitions_of(topic, 0, 1)
    for partition in (0, 1):
        await clients.send(topic, partition, numbered(5))
    consumer = await clients.consumer()
    consumer.assign([p0, p1])
    for part in (p0, p1):
        consumer.seek(part, 3)

    await consumer.seek_to_beginning()
    assert [0, 0] == [await consumer.position(part) for part in (p0, p1)]
    await consumer.seek_to_end(p0)
    assert [5, 0] == [await consumer.position(part) for part in (p0, p1)]

    await clients.send(topic, 0, [b"new"])
    assert [b"new"] == await values(consumer, 1, p0)
    assert numbered(5) == await values(consumer, 5, p1)


async def test_waiting_consumer_gets_new_records_at_once(clients: Clients, topic: str) -> None:
    """
    At once, though its long poll could have gone on for half a minute.
    """
    [p0] = partitions_of(topic, 0)
    await clients.send(topic, 0, numbered(1))
    consumer = await clients.consumer(fetch_max_wait_ms=30_000, auto_offset_reset="latest")
    consumer.assign([p0])
    await consumer.position(p0)
    waiting = asyncio.create_task(consumer.getone())

    await clients.send(topic, 0, [b"new"])

    record = await asyncio.wait_for(waiting, 25)
    assert (1, b"new") == (record.offset, record.value)


async def test_topic_may_be_created_after_its_consumer(clients: Clients, topic: str) -> None:
    consumer = await clients.consumer(topic)
    waiting = asyncio.create_task(consumer.getone())

    await clients.send(topic, 1, [b"first"])

    assert b"first" == (await asyncio.wait_for(waiting, PATIENCE)).value


async def test_offset_out_of_range_is_reset(clients: Clients, topic: str) -> None:
    [p0] = partitions_of(topic, 0)
    await clients.send(topic, 0, numbered(3))
    first, last = [await clients.consumer(auto_offset_reset=to) for to in ("earliest", "latest")]
    for consumer in (first, last):
        consumer.assign([p0])
        consumer.seek(p0, 77)

    assert [b"0"] == await values(first, 1)
    async with asyncio.timeout(PATIENCE):
        while await last.position(p0) == 77:
            assert await nothing_comes(last, 10)
    await clients.send(topic, 0, [b"3"])
    assert [b"3"] == await values(last, 1)


async def test_offsets_of_an_unknown_partition_time_out(clients: Clients, topic: str) -> None:
    consumer = await clients.consumer(topic, request_timeout_ms=500)

    with pytest.raises(KafkaTimeoutError):
        await consumer.offsets_for_times({TopicPartition(topic, 100): 0})


async def test_consumer_in_a_rack_is_served_by_the_leader(clients: Clients, topic: str) -> None:
    """
    There is no other replica that could be nearer (KIP-392).
    """
    await clients.send(topic, 0, numbered(3))

    consumer = await clients.consumer(topic, client_rack="somewhere")

    assert numbered(3) == await values(consumer, 3)


async def test_pattern_matches_internal_topics_if_allowed(clients: Clients, topic: str) -> None:
    member = await clients.consumer(topic, group_id=topic)
    await member.commit(dict.fromkeys(partitions_of(topic, 0), 0))

    consumer = await clients.consumer(exclude_internal_topics=False)
    consumer.subscribe(pattern="^__.*$")
    await consumer._client.force_metadata_update()
    shy = await clients.consumer()
    shy.subscribe(pattern="^__.*$")
    await shy._client.force_metadata_update()

    assert "__consumer_offsets" in consumer.subscription()
    assert "__consumer_offsets" not in shy.subscription()
