"""
Share groups over the socket of a broker whose clock stands still: fetches that wait, acquisitions
that end, connections that break, restarts.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import pytest

from barnabas.coordination.cluster.image import ConfigResourceType
from barnabas.coordination.cluster.topic_names import SHARE_GROUP_STATE_TOPIC
from barnabas.coordination.share.keys import SharePartitionKey
from barnabas.protocol.errors import (
    CoordinatorLoadInProgress,
    CorruptMessage,
    ErrorCode,
    KafkaError,
    NotCoordinator,
)
from barnabas.protocol.messages.delete_topics import DeleteTopicsRequest
from barnabas.protocol.records.batch import batches, build_batch
from barnabas.protocol.records.record import SimpleRecord
from barnabas.server.share import fetching, manager
from barnabas.testing.disks.memory import MemoryFiles
from barnabas.testing.manual_clock import ManualClock
from tests.support.crash.group_clients import ShareGroupClient
from tests.support.group_requests import coordinator_request
from tests.support.server import START_MS, TestBroker, running, until
from tests.support.share_client import Member, ShareClient
from tests.support.transactional_client import SECOND, TOPIC, Client, prepare

pytestmark = pytest.mark.broker(
    share_coordinator_state_topic_num_partitions="1", group_share_assignment_interval_ms="0"
)

GROUP, LOST_GROUP = "g", "lost"
LOCK_S = 30.0
LONG_MS = 3_600_000


@pytest.fixture
async def share(broker: TestBroker) -> AsyncIterator[ShareClient]:
    """
    A client, and a partition whose state begins at offset 0.
    """
    client = await ShareClient.of(broker.port, "t")
    assert 0 == (await client.initialize(GROUP, 0)).error_code
    yield client
    await client.close()


def acquired(answer: Any) -> list[tuple[int, int, int]]:
    """
    What an answer about one partition gives: first and last offsets, and counts of deliveries.
    """
    assert 0 == answer.error_code
    return [
        (each.first_offset, each.last_offset, each.delivery_count)
        for topic in answer.responses
        for partition in topic.partitions
        for each in partition.acquired_records
    ]


def values(answer: Any) -> list[bytes | None]:
    (topic,) = answer.responses
    (partition,) = topic.partitions
    return [record.value for batch in batches(partition.records) for record in batch.records()]


def code_of(answer: Any) -> int:
    """
    The error of the one partition of an acknowledgement's answer.
    """
    (topic,) = answer.responses
    (partition,) = topic.partitions
    code: int = partition.error_code
    return code


async def pass_time(broker: TestBroker, seconds: float) -> None:
    assert isinstance(broker.clock, ManualClock)
    await broker.clock.pass_time(seconds)


async def waiting(broker: TestBroker) -> None:
    manager = broker.inside.share_partitions
    await until(lambda: bool(manager.fetches.waiting))


async def test_records_go_to_one_member_until_released(
    broker: TestBroker, share: ShareClient
) -> None:
    await share.produce([b"a", b"b"], [b"c"])
    one, other = Member(GROUP, "one"), Member(GROUP, "other")

    first = await share.share_fetch(one, max_records=2, max_wait_ms=LONG_MS)
    assert [(0, 1, 1)] == acquired(first)
    assert [b"a", b"b"] == values(first)
    assert [(2, 2, 1)] == acquired(await share.share_fetch(other))
    assert [] == acquired(await share.share_fetch(one))

    assert 0 == code_of(await share.share_acknowledge(one, [(0, 0, [1]), (1, 1, [2])]))
    assert [(1, 1, 2)] == acquired(await share.share_fetch(other))


async def test_share_fetch_waits_for_records(broker: TestBroker, share: ShareClient) -> None:
    member = Member(GROUP)
    share.send_share_fetch(member, max_wait_ms=LONG_MS)
    await waiting(broker)

    other = await share.another()
    await other.produce([b"a"])

    assert [(0, 0, 1)] == acquired(await share.client.receive())
    await other.close()


async def test_stopping_broker_processes_received_acknowledgements(
    broker: TestBroker, share: ShareClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    await share.produce([b"a"])
    await share.share_fetch(Member(GROUP), max_wait_ms=LONG_MS)
    assert broker.connections is not None
    coordinator, drain = broker.inside.shares, broker.connections.drain

    class Draining:
        async def drain(self, seconds: float) -> None:
            await coordinator.initialize(SharePartitionKey(GROUP, share.topic_id, 0), 0, 5)
            await drain(seconds)

    monkeypatch.setattr(broker, "connections", Draining())
    await broker.stop()

    with pytest.raises(KafkaError):
        await coordinator.initialize(SharePartitionKey(GROUP, share.topic_id, 0), 0, 6)


async def test_share_fetch_waits_for_min_bytes(broker: TestBroker, share: ShareClient) -> None:
    member, other = Member(GROUP), await share.another()
    share.send_share_fetch(member, max_wait_ms=1000, min_bytes=150)
    await waiting(broker)
    await other.produce([b"a"])
    await asyncio.sleep(0)
    assert broker.inside.share_partitions.fetches.waiting

    await other.produce([b"b"], [b"c"])
    assert [(0, 2, 1)] == acquired(await share.client.receive())

    share.send_share_fetch(member, max_wait_ms=1000, min_bytes=150)
    await waiting(broker)
    await other.produce([b"d"])
    await pass_time(broker, 1.0)
    assert [(3, 3, 1)] == acquired(await share.client.receive())
    await other.close()


@pytest.mark.parametrize("how", ["acknowledgement", "lock", "connection"])
async def test_share_fetch_waits_for_records_that_another_member_loses(
    broker: TestBroker, share: ShareClient, how: str
) -> None:
    await share.produce([b"a"])
    one, other = Member(GROUP, "one"), Member(GROUP, "other")
    first = await share.another()
    assert [(0, 0, 1)] == acquired(await first.share_fetch(one, max_wait_ms=LONG_MS))
    share.send_share_fetch(other, max_wait_ms=LONG_MS)
    await waiting(broker)

    if how == "acknowledgement":
        assert 0 == code_of(await first.share_acknowledge(one, [(0, 0, [2])]))
    elif how == "lock":
        await pass_time(broker, LOCK_S)
    else:
        await first.close()

    assert [(0, 0, 2)] == acquired(await share.client.receive())
    if how == "lock":
        late = await first.share_acknowledge(one, [(0, 0, [1])])
        assert ErrorCode.INVALID_RECORD_STATE == code_of(late)
    assert (1 if how == "connection" else 2) == broker.metrics.value("share_sessions")
    await first.close()


async def test_renewed_acquisition_lock_expires_later(
    broker: TestBroker, share: ShareClient
) -> None:
    await share.produce([b"a"])
    member, other = Member(GROUP), Member(GROUP, "other")
    await share.share_fetch(member, max_wait_ms=LONG_MS)
    await pass_time(broker, LOCK_S - 1)
    assert 0 == code_of(await share.share_acknowledge(member, [(0, 0, [4])], is_renew_ack=True))

    await pass_time(broker, LOCK_S - 1)
    assert [] == acquired(await share.share_fetch(other))
    await pass_time(broker, 1)
    assert [(0, 0, 2)] == acquired(await share.share_fetch(other))


async def test_record_is_archived_after_five_deliveries(
    broker: TestBroker, share: ShareClient
) -> None:
    await share.produce([b"bad"], [b"good"])
    member = Member(GROUP)
    for count in range(1, 6):
        answer = await share.share_fetch(member, max_records=1, max_wait_ms=LONG_MS)
        assert [(0, 0, count)] == acquired(answer)
        await share.share_acknowledge(member, [(0, 0, [2])])

    assert [(1, 1, 1)] == acquired(await share.share_fetch(member))


async def test_closed_share_session_releases_acquired_records(
    broker: TestBroker, share: ShareClient
) -> None:
    await share.produce([b"a", b"b"])
    one, other = Member(GROUP, "one"), Member(GROUP, "other")
    await share.share_fetch(one, max_wait_ms=LONG_MS)
    ended = await share.share_acknowledge(one, [(0, 0, [1])], epoch=-1)
    assert 0 == code_of(ended)
    assert [(1, 1, 2)] == acquired(await share.share_fetch(other))

    assert 0 == (await share.share_fetch(other, partitions=(), epoch=-1)).error_code
    assert [(1, 1, 3)] == acquired(await share.share_fetch(Member(GROUP, "third")))
    gone = await share.share_fetch(one, epoch=2)
    assert ErrorCode.SHARE_SESSION_NOT_FOUND == gone.error_code


async def test_session_of_many_partitions_is_released_in_turns(
    broker: TestBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(manager, "RELEASED_AT_ONCE", 2)
    everywhere = range(5)
    share = await ShareClient.of(broker.port, "many", len(everywhere))
    for partition in everywhere:
        assert 0 == (await share.initialize(GROUP, 0, partition=partition)).error_code
        await share.produce([b"a"], partition=partition)

    async def acquire(member: Member) -> list[tuple[int, int, int]]:
        found: list[tuple[int, int, int]] = []
        while len(found) < len(everywhere):
            answer = await share.share_fetch(member, partitions=everywhere, max_wait_ms=LONG_MS)
            found += acquired(answer)
        return found

    one = Member(GROUP, "one")
    assert [(0, 0, 1)] * len(everywhere) == await acquire(one)
    assert 0 == (await share.share_fetch(one, partitions=(), epoch=-1)).error_code
    assert [(0, 0, 2)] * len(everywhere) == await acquire(Member(GROUP, "other"))
    await share.close()


@pytest.mark.broker(group_share_max_share_sessions="1")
async def test_refusal_beyond_the_session_limit_is_delayed(
    broker: TestBroker, share: ShareClient
) -> None:
    await share.share_fetch(Member(GROUP, "one"))
    second = await share.another()
    second.send_share_fetch(Member(GROUP, "other"), max_wait_ms=500)
    refusal = asyncio.ensure_future(second.client.receive())
    await share.summary(GROUP)
    assert not refusal.done()

    await pass_time(broker, 0.5)

    assert ErrorCode.SHARE_SESSION_LIMIT_REACHED == (await refusal).error_code
    await second.close()


async def test_acknowledgements_and_delivery_counts_survive_a_restart() -> None:
    files = MemoryFiles()
    member = Member(GROUP)
    async with running(files, share_coordinator_state_topic_num_partitions="1") as broker:
        share = await ShareClient.of(broker.port, "t")
        await share.initialize(GROUP, 0)
        await share.produce([b"a"], [b"b"], [b"c"], [b"d"])
        await share.share_fetch(member, max_wait_ms=LONG_MS)
        await share.share_acknowledge(member, [(0, 0, [1]), (1, 1, [2]), (2, 2, [3])])
        await share.close()

    async with running(files, share_coordinator_state_topic_num_partitions="1") as broker:
        share = await ShareClient.of(broker.port, "t")
        answer = await share.share_fetch(Member(GROUP), max_wait_ms=LONG_MS)
        await share.close()

    # Of offset 3 nothing was written but that its member's connection had ended.
    assert [(1, 1, 2), (3, 3, 2)] == acquired(answer)


async def test_group_whose_records_are_lost_continues_with_its_share_states(
    broker: TestBroker, share: ShareClient
) -> None:
    # The epochs of the group begin below those of the states.
    await share.produce([b"a"], [b"b"], [b"c"])
    await share.initialize(LOST_GROUP, 1, state_epoch=9)
    await share.client.ask(coordinator_request(LOST_GROUP), 6)
    client = ShareGroupClient("m", "t", group_id=LOST_GROUP)
    assert ErrorCode.NONE is await client.beat(share.client)
    states = broker.inside.coordinators.groups.share_states
    await until(lambda: states.initialized(LOST_GROUP))

    assert ErrorCode.NONE is await client.beat(share.client)

    assert {share.topic_id: [0]} == client.owned
    fetched = await share.share_fetch(Member(LOST_GROUP), max_wait_ms=LONG_MS)
    assert [(1, 2, 1)] == acquired(fetched)


async def test_share_start_offset_follows_the_log_start_offset(
    broker: TestBroker, share: ShareClient
) -> None:
    await share.produce([b"a"], [b"b"], [b"c"])
    broker.inside.partitions.expect("t", 0).log.delete_records(2)
    member = Member(GROUP)

    # The first answer is empty: its fetch finds that its offset has gone.
    assert [] == acquired(await share.share_fetch(member, max_wait_ms=LONG_MS))
    assert [(2, 2, 1)] == acquired(await share.share_fetch(member, max_wait_ms=LONG_MS))


async def test_deleted_topic_ends_a_waiting_share_fetch(
    broker: TestBroker, share: ShareClient
) -> None:
    second = await share.another()
    share.send_share_fetch(Member(GROUP), max_wait_ms=LONG_MS)
    await waiting(broker)

    request = DeleteTopicsRequest(topic_names=["t"], timeout_ms=1000)
    await second.client.ask(request, 5)

    (topic,) = (await share.client.receive()).responses
    assert ErrorCode.UNKNOWN_TOPIC_OR_PARTITION == topic.partitions[0].error_code
    (shard,) = broker.inside.shares.shards
    assert not shard.state.known
    await second.close()


async def test_share_session_finds_a_topic_being_created(
    broker: TestBroker, share: ShareClient
) -> None:
    # Clients learn its id before its partitions exist. The error is transient, although the
    # client does not add the partition to its session again.
    by_id = broker.inside.partitions._by_id
    created = by_id.pop(share.topic_id.bytes)
    member = Member(GROUP)
    early = await share.share_fetch(member)
    assert ErrorCode.UNKNOWN_TOPIC_ID == early.responses[0].partitions[0].error_code

    by_id[share.topic_id.bytes] = created
    await share.produce([b"v"])
    answer = await share.share_fetch(member, partitions=[], max_wait_ms=LONG_MS)

    assert 0 == answer.responses[0].partitions[0].error_code
    assert [(0, 0, 1)] == acquired(answer)


@pytest.mark.parametrize(
    ("reset", "expected"),
    [("earliest", [(0, 1, 1)]), ("latest", []), ("by_duration:PT10S", [(1, 1, 1)])],
)
async def test_new_share_group_begins_at_its_configured_offset(
    broker: TestBroker, reset: str, expected: list[Any]
) -> None:
    share = await ShareClient.of(broker.port, "t")
    await share.initialize(GROUP)
    broker.inside.image.configs[ConfigResourceType.GROUP, GROUP] = {
        "share.auto.offset.reset": reset
    }
    for age_ms in (60_000, 5000):
        record = SimpleRecord(START_MS - age_ms, None, b"v")
        await share.produce_bytes(build_batch([record]))
    member = Member(GROUP)
    answer = await share.share_fetch(member, max_wait_ms=LONG_MS if expected else 0)
    await share.close()

    assert expected == acquired(answer)


async def test_share_states_are_rewritten_and_older_records_deleted(
    broker: TestBroker, share: ShareClient
) -> None:
    await share.produce([b"a"], [b"b"])
    member = Member(GROUP)
    await share.share_fetch(member, max_wait_ms=LONG_MS)
    await share.share_acknowledge(member, [(0, 0, [1])])
    log = broker.inside.partitions.expect(SHARE_GROUP_STATE_TOPIC, 0).log

    for _ in range(3):
        await pass_time(broker, 301)
        await share.share_fetch(member)

    assert log.log_start_offset > 2
    before = await share.read(GROUP, -1)
    assert before.state_batches
    (shard,) = broker.inside.shares.shards
    broker.inside.shares.shards.elect(shard.log.partition)
    shards = broker.inside.shares.shards
    await until(lambda: all(each.log.is_open for each in shards))
    assert before == await share.read(GROUP, -1)


async def test_deleted_topic_leaves_no_share_state(broker: TestBroker, share: ShareClient) -> None:
    await share.share_fetch(Member(GROUP), max_wait_ms=0)
    assert 1 == broker.metrics.value("share_partitions")

    await share.client.ask(DeleteTopicsRequest(topic_names=["t"], timeout_ms=1000), 5)

    assert 0 == broker.metrics.value("share_partitions")


async def test_cold_pages_are_read_in_a_thread(broker: TestBroker, share: ShareClient) -> None:
    await share.produce([b"a"], [b"b"])
    one, other = Member(GROUP, "one"), Member(GROUP, "other")
    await share.share_fetch(one, max_records=0)
    second = await share.another()
    await second.share_fetch(other, max_records=0)
    assert isinstance(broker.files, MemoryFiles)
    broker.files.is_cold = True

    share.send_share_fetch(one, max_records=1, max_wait_ms=LONG_MS)
    second.send_share_fetch(other, max_records=1, max_wait_ms=LONG_MS)
    answers = [acquired(await each.client.receive()) for each in (share, second)]

    assert [[(0, 0, 1)], [(1, 1, 1)]] == sorted(answers)
    await second.close()


async def test_partitions_take_turns_in_share_fetches(broker: TestBroker) -> None:
    share = await ShareClient.of(broker.port, "two", 2)
    for partition in range(2):
        await share.initialize(GROUP, 0, partition=partition)
        await share.produce(*[[b"v"]] * 4, partition=partition)
    member = Member(GROUP)
    await share.share_fetch(member, partitions=[0, 1], max_wait_ms=LONG_MS, max_records=1)
    seen = set()

    for _ in range(4):
        answer = await share.share_fetch(member, partitions=[], max_records=1)
        ((partition,),) = (topic.partitions for topic in answer.responses)
        seen.add(partition.partition_index)
    await share.close()

    assert {0, 1} == seen


async def test_read_committed_share_group_gets_no_aborted_records(
    broker: TestBroker,
) -> None:
    await prepare(broker, 1)
    committed = {"share.isolation.level": "read_committed"}
    broker.inside.image.configs[ConfigResourceType.GROUP, GROUP] = committed
    share = await ShareClient.of(broker.port, TOPIC)
    await share.initialize(GROUP, 0)
    async with await broker.client() as wire:
        producer = Client(wire, SECOND)
        await producer.init()
        for value, is_committed in [("a", False), ("b", True), ("c", False), ("d", True)]:
            await producer.produce(value)
            await producer.end(commit=is_committed)
        await producer.produce("open")
    member = Member(GROUP)

    answer = await share.share_fetch(member, max_wait_ms=LONG_MS)
    again = await share.share_fetch(member)
    await share.close()

    # Each value is followed by a marker; the first one of the answer is behind an aborted batch.
    assert [(1, 3, 1), (5, 7, 1)] == acquired(answer)
    assert b"a" not in values(answer)
    assert b"b" in values(answer)
    assert [] == acquired(again)


@pytest.mark.broker(
    log_flush_interval_messages="1", share_coordinator_state_topic_num_partitions="1"
)
async def test_acknowledgement_being_written_excludes_others(
    broker: TestBroker, share: ShareClient
) -> None:
    await share.produce([b"a", b"b"])
    member = Member(GROUP)
    await share.share_fetch(member, max_wait_ms=LONG_MS)

    for _ in range(2):
        share.send_share_acknowledge(member, [(0, 0, [1])])
    codes = [code_of(await share.client.receive()) for _ in range(2)]

    assert [0, ErrorCode.INVALID_RECORD_STATE] == codes
    assert 0 == code_of(await share.share_acknowledge(member, [(1, 1, [2])]))
    assert [(1, 1, 2)] == acquired(await share.share_fetch(member))


async def test_stop_answers_waiting_share_fetches(broker: TestBroker, share: ShareClient) -> None:
    share.send_share_fetch(Member(GROUP), max_wait_ms=LONG_MS)
    await waiting(broker)

    await broker.stop()

    assert [] == acquired(await share.client.receive())


async def test_expired_lock_frees_records_before_its_state_is_written(
    broker: TestBroker, share: ShareClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    await share.produce([b"a"])
    first = await share.another()
    await first.share_fetch(Member(GROUP, "one"), max_wait_ms=LONG_MS)
    share.send_share_fetch(Member(GROUP, "other"), max_wait_ms=LONG_MS)
    await waiting(broker)

    monkeypatch.setattr(broker.inside.shares, "write_then", lambda *_: None)
    await pass_time(broker, LOCK_S)

    async with asyncio.timeout(10):
        assert [(0, 0, 2)] == acquired(await share.client.receive())
    await first.close()


async def test_partition_that_cannot_be_read_has_its_error_in_a_share_fetch(
    share: ShareClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    await share.produce([b"a"])

    def broken(*_: object, **_more: object) -> None:
        raise CorruptMessage

    monkeypatch.setattr(fetching, "fetched_batches", broken)
    answer = await share.share_fetch(Member(GROUP), max_wait_ms=LONG_MS)

    assert (0, ErrorCode.CORRUPT_MESSAGE) == (answer.error_code, code_of(answer))


async def test_share_state_is_initialized_when_its_shard_is_loaded(
    broker: TestBroker, share: ShareClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    coordinator = broker.inside.shares
    find, failures = coordinator._shard, [NotCoordinator(), CoordinatorLoadInProgress()]

    def shard(key: SharePartitionKey) -> Any:
        if failures:
            raise failures.pop()
        return find(key)

    monkeypatch.setattr(coordinator, "_shard", shard)
    key = SharePartitionKey("other", share.topic_id, 0)
    asked = asyncio.create_task(coordinator.initialize(key, 0, 5))
    await pass_time(broker, 1.0)
    assert not asked.done()
    await pass_time(broker, 2.0)

    async with asyncio.timeout(10):
        await asked


async def test_shards_without_needless_records_keep_no_other_from_being_pruned(
    broker: TestBroker, share: ShareClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    deleted = []

    async def delete_records(offset: int) -> None:
        deleted.append(offset)

    def shard(index: int, first_needed_offset: int, *, is_open: bool = True) -> Any:
        log = SimpleNamespace(is_open=is_open, index=index, delete_records=delete_records)
        state = SimpleNamespace(first_needed_offset=first_needed_offset)
        return SimpleNamespace(log=log, state=state)

    shards = [shard(0, 5, is_open=False), shard(1, 0), shard(2, 7)]
    monkeypatch.setattr(broker.inside.shares, "shards", shards)
    await broker.inside.shares.prune()
    await broker.inside.shares.prune()

    assert [7] == deleted
    monkeypatch.undo()
