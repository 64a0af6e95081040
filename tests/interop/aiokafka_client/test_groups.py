"""
Members of groups with aiokafka: who reads what, what is committed, and who is told.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest
from aiokafka import (  # type: ignore[import-untyped]  # the library ships no type hints
    OffsetAndMetadata,
    TopicPartition,
)
from aiokafka.errors import (  # type: ignore[import-untyped]  # the same
    CommitFailedError,
    InvalidGroupIdError,
)

from tests.interop.aiokafka_client.clients import (
    Clients,
    Rebalances,
    eventually,
    numbered,
    partitions_of,
    values,
)

BRISK: Mapping[str, Any] = {"heartbeat_interval_ms": 50, "metadata_max_age_ms": 100}
"""
Members that notice within a tenth of a second what happens to their group and its topics.
"""


async def member(clients: Clients, topic: str, **options: Any) -> tuple[Any, Rebalances]:
    """
    A member of the group of the topic's name, and what it is told.
    """
    told = Rebalances()
    consumer = await clients.consumer(start=False, group_id=topic, **({**BRISK, **options}))
    consumer.subscribe([topic], listener=told)
    await consumer.start()
    return consumer, told


async def two_members(
    clients: Clients, topic: str, **options: Any
) -> tuple[tuple[Any, Rebalances], tuple[Any, Rebalances]]:
    """
    Two members that have a partition each.
    """
    one, two = await member(clients, topic, **options), await member(clients, topic, **options)
    p0, p1 = partitions_of(topic, 0, 1)
    await eventually(
        lambda: (
            {frozenset({p0}), frozenset({p1})}
            == {frozenset(told.assigned[-1]) for _, told in (one, two) if told.assigned}
        )
    )
    return one, two


async def test_rebalance_listener_is_told_of_revoked_and_assigned_partitions(
    clients: Clients, topic: str
) -> None:
    both = set(partitions_of(topic, 0, 1))
    one, told = await member(clients, topic)
    assert ([set()], [both]) == (told.revoked, told.assigned)

    two, _ = await member(clients, topic)
    await eventually(lambda: len(one.assignment()) == 1)
    rest = set(one.assignment())
    await two.stop()
    await told.until(both)

    assert [set(), both, rest] == told.revoked
    assert [both, rest, both] == told.assigned


async def test_all_topics_of_a_subscription_are_assigned(clients: Clients, topic: str) -> None:
    names = [topic, f"{topic}-too"]
    consumers = [await clients.consumer(start=False, group_id=topic, **BRISK) for _ in range(2)]
    for consumer in consumers:
        consumer.subscribe(names)
    await asyncio.gather(*(consumer.start() for consumer in consumers))

    await eventually(lambda: [2, 2] == [len(consumer.assignment()) for consumer in consumers])
    assert {part for name in names for part in partitions_of(name, 0, 1)} == (
        consumers[0].assignment() | consumers[1].assignment()
    )


async def test_pattern_subscription_includes_new_topics(clients: Clients, topic: str) -> None:
    """
    The group is rebalanced for each, and reads it from its first record.
    """
    told = Rebalances()
    consumer = await clients.consumer(start=False, group_id=topic, **BRISK)
    consumer.subscribe(pattern=f"^{topic}-.*$", listener=told)
    await consumer.start()
    assert set() == consumer.subscription()

    expected = set()
    for number in range(2):
        await clients.send(f"{topic}-{number}", 0, [b"%d" % number])
        expected |= set(partitions_of(f"{topic}-{number}", 0, 1))
        await told.until(expected)
        assert [b"%d" % number] == await values(consumer, 1)


async def test_next_member_begins_at_the_committed_offsets(clients: Clients, topic: str) -> None:
    """
    All positions at once, an offset of one partition, or one with metadata.
    """
    p0, p1 = partitions_of(topic, 0, 1)
    for partition in (0, 1):
        await clients.send(topic, partition, numbered(5))
    consumer, _ = await member(clients, topic, enable_auto_commit=False)
    assert None is await consumer.committed(p0)

    await values(consumer, 3, p0)
    await consumer.commit()
    assert [3, 0] == [await consumer.committed(part) for part in (p0, p1)]
    await consumer.commit({p0: 1})
    await consumer.commit({p1: OffsetAndMetadata(4, "why")})
    assert [1, 4] == [await consumer.committed(part) for part in (p0, p1)]
    await consumer.seek_to_committed()
    assert [b"1"] == await values(consumer, 1, p0)
    await consumer.stop()

    after, _ = await member(clients, topic)
    assert [b"4"] == await values(after, 1, p1)
    assert None is await after.committed(TopicPartition("a topic that is not there", 2))


async def test_group_without_members_can_commit(clients: Clients, topic: str) -> None:
    [p0] = partitions_of(topic, 0)
    await clients.send(topic, 0, numbered(10))
    for first in (0, 5):
        consumer = await clients.consumer(group_id=topic, enable_auto_commit=False)
        consumer.assign([p0])
        assert numbered(5, first=first) == await values(consumer, 5)
        await consumer.commit()
        await consumer.stop()


async def test_commit_does_not_wait_for_a_long_poll(clients: Clients, topic: str) -> None:
    """
    It goes another way, and is answered while the fetch still waits.
    """
    await clients.send(topic, 0, numbered(3))
    consumer, _ = await member(clients, topic, fetch_max_wait_ms=30_000)
    assert numbered(3) == await values(consumer, 3)
    waiting = asyncio.create_task(consumer.getone())

    await asyncio.wait_for(consumer.commit(), 25)

    assert not waiting.done()
    waiting.cancel()


async def test_group_without_an_id_is_refused(clients: Clients, topic: str) -> None:
    consumer = await clients.consumer(topic, start=False, group_id="")

    with pytest.raises(InvalidGroupIdError):
        await consumer.start()


async def test_member_that_stops_polling_is_removed(clients: Clients, topic: str) -> None:
    """
    The other one has everything; it comes back with its next read.
    """
    both = set(partitions_of(topic, 0, 1))
    for partition in (0, 1):
        await clients.send(topic, partition, numbered(4))
    (idle, told_idle), (other, told) = await two_members(
        clients, topic, max_poll_interval_ms=300, rebalance_timeout_ms=2000
    )
    busy = asyncio.create_task(_read_on(other))

    assert [b"0"] == await values(idle, 1)
    await told.until(both)
    count = len(told_idle.assigned)
    back = asyncio.create_task(_read_on(idle))
    await eventually(lambda: len(told_idle.assigned) > count and len(told.assigned[-1]) == 1)

    assert both == told.assigned[-1] | told_idle.assigned[-1]
    for task in (busy, back):
        task.cancel()


async def _read_on(consumer: Any) -> None:
    while True:
        await consumer.getmany(timeout_ms=50)


async def test_member_with_an_expired_session_cannot_commit(clients: Clients, topic: str) -> None:
    """
    Its generation is over: its session ran out while its heartbeats were held back.
    """
    [p0] = partitions_of(topic, 0)
    await clients.send(topic, 0, numbered(1))
    consumer, _ = await member(
        clients,
        topic,
        enable_auto_commit=False,
        session_timeout_ms=1000,
        heartbeat_interval_ms=900_000,
    )
    _, told = await member(clients, topic)
    await told.until(set(partitions_of(topic, 0, 1)))

    with pytest.raises(CommitFailedError):
        await consumer.commit({p0: 1})


async def test_static_member_returns_to_its_partitions(clients: Clients, topic: str) -> None:
    """
    Nobody is rebalanced while it is away (KIP-345) until its session is over; then the other one
    gets everything.
    """
    both = set(partitions_of(topic, 0, 1))
    _, told = await member(clients, topic, group_instance_id="one", session_timeout_ms=1000)
    two, _ = await member(clients, topic, group_instance_id="two", session_timeout_ms=1000)
    before = set(two.assignment())
    await told.until(both - before)
    rounds = len(told.assigned)

    await two.stop()
    again, _ = await member(clients, topic, group_instance_id="two", session_timeout_ms=1000)

    assert before == again.assignment()
    assert rounds == len(told.assigned)
    await again.stop()
    await told.until(both)
    assert rounds + 1 == len(told.assigned)


async def test_member_may_leave_join_and_change_topics_at_any_time(
    clients: Clients, topic: str
) -> None:
    """
    Leave before it ever joined, join, and read another topic.
    """
    await clients.send(topic, 0, [b"one"])
    await clients.send(f"{topic}-too", 0, [b"two"])
    consumer = await clients.consumer(group_id=topic, **BRISK)

    consumer.subscribe([topic])
    consumer.unsubscribe()
    consumer.subscribe([topic])
    assert [b"one"] == await values(consumer, 1)
    consumer.subscribe([f"{topic}-too"])
    assert [b"two"] == await values(consumer, 1)
    consumer.unsubscribe()
    consumer.assign(partitions_of(topic, 0))
    await consumer.seek_to_beginning()
    assert [b"one"] == await values(consumer, 1)
