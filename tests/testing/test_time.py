"""
Everything that is due happens before ``advance`` returns. No test here sleeps.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from barnabas.protocol.messages.heartbeat import HeartbeatRequest
from barnabas.testing import Broker, NewRecord, Topic
from barnabas.testing.defaults import Config
from barnabas.testing.disks.memory import MemoryFiles
from barnabas.testing.hosts.embedded import Embedded
from tests.support.group_requests import (
    commit_request,
    coordinator_request,
    join_request,
    sync_request,
)
from tests.support.server import fetch_request, fetch_topic
from tests.support.transactional_client import SECOND, Client
from tests.support.wire_client import WireClient

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
START_MS = 1_700_000_000_000
UNKNOWN_MEMBER_ID = 25


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker(clock="still", start_ms=START_MS) as broker:
        yield broker


async def coordinators(broker: Broker) -> None:
    async with await WireClient.open(broker.port) as client:
        for key_type in (0, 1):
            answer = await client.ask(coordinator_request("any", key_type=key_type), 6)
            assert 0 == answer.coordinators[0].error_code


def test_clock_moves_by_the_sum_of_the_arguments(broker: Broker) -> None:
    assert "2023-11-14T22:13:20+00:00" == broker.clock.now().isoformat()

    broker.clock.advance(days=1, hours=1, minutes=1, seconds=1, milliseconds=1)

    assert START_MS + DAY_MS + HOUR_MS + 61_001 == broker.clock.now_ms()
    with pytest.raises(ValueError, match="forward only"):
        broker.clock.advance(days=-1)


def test_running_clock_starts_at_the_real_time_and_can_be_moved() -> None:
    with Broker() as broker:
        before = broker.clock.now_ms()
        broker.clock.advance(days=365)
        moved = broker.clock.now_ms()

        broker.wait_until(lambda: broker.clock.now_ms() > moved)

    assert 0 <= moved - before - 365 * DAY_MS < 60_000


def test_clock_survives_a_restart(broker: Broker) -> None:
    broker.clock.advance(days=1)

    broker.restart()

    assert START_MS + DAY_MS == broker.clock.now_ms()


def test_records_expire_after_retention_of_seven_days(broker: Broker) -> None:
    orders = broker.topic("orders").create(config={"retention.ms": 7 * DAY_MS}).append(["old"])

    broker.clock.advance(days=7)
    assert [b"old"] == [record.value for record in orders.records()]

    broker.clock.advance(minutes=5)
    assert [] == orders.records()


def test_deleted_files_are_removed_after_their_delay() -> None:
    disk = MemoryFiles()
    with Broker(disk=disk, clock="still") as broker:
        config = {"retention.ms": HOUR_MS, "file.delete.delay.ms": 10 * 60_000}
        broker.topic("orders").create(config=config).append(["old"])

        broker.clock.advance(hours=1, minutes=5)
        assert 1 == deleted_files(disk)

        broker.clock.advance(minutes=10)
        assert 0 == deleted_files(disk)


def deleted_files(disk: MemoryFiles) -> int:
    return len([path for path in disk.nodes if path.name.endswith(".log.deleted")])


def test_compaction_keeps_tombstones_for_delete_retention_ms(broker: Broker) -> None:
    config: Config = {
        "cleanup.policy": "compact",
        "delete.retention.ms": DAY_MS,
        "segment.ms": HOUR_MS,
    }
    users = broker.topic("users").create(config=config)
    users.append([("ann", "1"), ("bob", "1"), ("ann", "2"), ("bob", None)])
    broker.clock.advance(hours=1, minutes=1)
    users.append([("eve", "1")])

    broker.clock.advance(minutes=5)
    assert [(b"ann", b"2"), (b"bob", None), (b"eve", b"1")] == contents(users)

    broker.clock.advance(hours=23)
    users.append([("eve", "2")])
    broker.clock.advance(minutes=5)
    assert [(b"ann", b"2"), (b"bob", None), (b"eve", b"1"), (b"eve", b"2")] == contents(users)

    broker.clock.advance(hours=2)
    users.append([("eve", "3")])
    broker.clock.advance(minutes=5)
    assert [(b"ann", b"2"), (b"eve", b"2"), (b"eve", b"3")] == contents(users)


def contents(topic: Topic) -> list[tuple[bytes | None, bytes | None]]:
    return [(record.key, record.value) for record in topic.records()]


def test_a_week_of_segments_is_rolled_by_segment_ms(broker: Broker) -> None:
    """
    A segment ends with the first record after ``segment.ms``.
    """
    topic = broker.topic("t").create(config={"segment.ms": DAY_MS, "retention.ms": -1})

    for day in range(7):
        topic.append([f"morning of day {day}", f"evening of day {day}"])
        broker.clock.advance(days=1, seconds=1)

    assert [0, 2, 4, 6, 8, 10, 12] == [segment.base_offset for segment in topic.segments]


async def test_silent_member_is_removed_after_its_session_timeout(broker: Broker) -> None:
    await coordinators(broker)
    async with await WireClient.open(broker.port) as client:
        answer = await client.ask(join_request("readers", session_timeout_ms=10_000), 3)
        member = answer.member_id
        await client.ask(sync_request("readers", member), 2)
        heartbeat = HeartbeatRequest(group_id="readers", generation_id=1, member_id=member)

        broker.clock.advance(seconds=9)
        assert 0 == (await client.ask(heartbeat, 2)).error_code
        broker.clock.advance(seconds=9)
        group = broker.groups["readers"]
        assert ("Stable", (member,)) == (group.state, tuple(m.id for m in group.members))

        broker.clock.advance(seconds=1)

        assert ("Empty", ()) == (broker.groups["readers"].state, broker.groups["readers"].members)
        assert UNKNOWN_MEMBER_ID == (await client.ask(heartbeat, 2)).error_code


async def test_transaction_is_aborted_after_its_timeout(broker: Broker) -> None:
    orders = broker.topic("orders").create()
    await coordinators(broker)
    async with await WireClient.open(broker.port) as wire:
        producer = Client(wire, SECOND)
        await producer.init(timeout_ms=60_000)
        await producer.produce("half an order")
        orders.append(["another"])

        broker.clock.advance(seconds=60)
        assert [] == orders.records(committed=True), "behind an open transaction"

        broker.clock.advance(seconds=60)

        assert [b"another"] == [record.value for record in orders.records(committed=True)]
        assert [b"half an order", b"another"] == [record.value for record in orders.records()]


async def test_offsets_of_an_empty_group_expire(broker: Broker) -> None:
    broker.topic("orders").create().append(["a", "b", "c"])
    await coordinators(broker)
    async with await WireClient.open(broker.port) as client:
        await client.ask(commit_request("readers", "orders", {0: 2}), 8)
    group = broker.groups["readers"]
    assert (2, None, 1) == (group.committed("orders"), group.committed("orders", 1), group.lag)

    broker.clock.advance(days=6, hours=23)
    assert 2 == broker.groups["readers"].committed("orders")

    broker.clock.advance(hours=1, minutes=10)
    assert {} == broker.groups


async def test_waiting_fetch_is_answered_when_the_clock_moves(broker: Broker) -> None:
    broker.topic("orders").create()
    async with await WireClient.open(broker.port) as client:
        client.send(fetch_request(fetch_topic("orders", {0: 0}), max_wait_ms=30_000), version=11)
        await broker.wait_until_async(lambda: broker._host.call(waiting_fetches))

        broker.clock.advance(seconds=30)

        assert 0 == (await client.receive()).error_code


async def waiting_fetches(broker: Embedded) -> int:
    return len(broker.fetches.waiting)


def test_work_within_one_clock_move_happens_in_order(broker: Broker) -> None:
    """
    Records of an earlier hour are deleted earlier, by the timestamps of the broker log.
    """
    config = {"retention.ms": DAY_MS, "segment.ms": HOUR_MS}
    for name, age in (("young", 0), ("old", 12)):
        stamp = START_MS - age * HOUR_MS
        broker.topic(name).create(config=config).append([NewRecord("a", timestamp=stamp)])

    broker.clock.advance(days=1, minutes=5)

    deletions = [line for line in broker.log.splitlines() if "due to retention.ms" in line]
    assert [True, True] == ["old-0" in deletions[0], "young-0" in deletions[1]]
