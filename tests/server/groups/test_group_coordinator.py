from __future__ import annotations

import asyncio
import itertools
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any, TypeAlias, cast
from uuid import UUID

import pytest
import pytest_asyncio

from barnabas.coordination.coordinator_runtime.partitioning import partition_of
from barnabas.coordination.groups.caller import Caller
from barnabas.coordination.groups.offsets import deleting
from barnabas.coordination.groups.offsets.deleting import DeletedTopic
from barnabas.coordination.steps import finished
from barnabas.protocol.compression import CompressionType
from barnabas.protocol.errors import (
    CoordinatorLoadInProgress,
    CoordinatorNotAvailable,
    ErrorCode,
    KafkaError,
    NotCoordinator,
)
from barnabas.protocol.messages.join_group import JoinGroupResponse
from barnabas.protocol.messages.leave_group import LeaveGroupResponse, MemberIdentity
from barnabas.protocol.messages.offset_commit import OffsetCommitResponse
from barnabas.protocol.messages.offset_delete import OffsetDeleteRequest
from barnabas.protocol.messages.offset_fetch import (
    OffsetFetchRequestGroup,
    OffsetFetchResponseGroup,
)
from barnabas.protocol.records.batch import build_batch
from barnabas.protocol.records.record import SimpleRecord
from barnabas.server.scheduling.turns import TURN_S, Turns
from barnabas.storage.errors import KafkaStorageError
from barnabas.storage.producers.append_origin import AppendOrigin
from tests.support.build import build
from tests.support.group_requests import (
    commit_request,
    heartbeat_request,
    join_request,
    sync_request,
)
from tests.support.group_world import World
from tests.support.some import some

TOPIC_ID = UUID(int=1)
GROUP = "group"
CALLER = Caller(9, "client", "/127.0.0.1")


Make: TypeAlias = "Callable[..., World]"


GATE_SECONDS = 5
"""A failed test must not wait forever for a thread that its last line would release."""


@pytest_asyncio.fixture
async def make() -> AsyncIterator[Make]:
    worlds = []

    def make_world(partition_count: int = 1, *, start: bool = True, **options: Any) -> World:
        world = World(partition_count, **options)
        worlds.append(world)
        if start:
            world.start()
        return world

    yield make_world
    for world in worlds:
        world.coordinator.stop()
        await world.background.stop()
        world.io.shutdown()


@pytest_asyncio.fixture
async def world(make: Make) -> World:
    return make()


def commit(
    world: World, group_id: str = GROUP, offset: int = 5
) -> OffsetCommitResponse | asyncio.Future[OffsetCommitResponse]:
    request = commit_request(group_id, "t", {0: offset}, topic_id=TOPIC_ID)
    return finished(world.coordinator.commit_offsets(request, 9))


def commit_error(answer: OffsetCommitResponse | asyncio.Future[OffsetCommitResponse]) -> int:
    response = cast(OffsetCommitResponse, outcome(answer))
    return response.topics[0].partitions[0].error_code


def outcome(answer: Any) -> Any:
    return answer.result() if isinstance(answer, asyncio.Future) else answer


def committed(world: World, group_id: str = GROUP) -> int:
    response = fetched(world, group_id)
    assert response.error_code == 0
    return response.topics[0].partitions[0].committed_offset


def fetched(world: World, group_id: str = GROUP) -> OffsetFetchResponseGroup:
    topics = [{"name": "t", "partition_indexes": [0]}]
    request = build(OffsetFetchRequestGroup, group_id=group_id, topics=topics)
    return finished(world.coordinator.fetch_offsets(request, 9, require_stable=False))


def listed(world: World) -> list[str]:
    return [group.group_state for group in finished(world.coordinator.list_groups([], []))]


def load(world: World) -> None:
    world.coordinator.shards.lead(world.partitions(), len(world.partitions()))


async def joining(world: World) -> tuple[str, asyncio.Task[JoinGroupResponse]]:
    """
    The id of the first member of a group, and its join, which waits.
    """
    required = await world.coordinator.join(join_request(GROUP), CALLER)
    request = join_request(GROUP, required.member_id)
    waiting = asyncio.create_task(world.coordinator.join(request, CALLER))
    await asyncio.sleep(0)
    return required.member_id, waiting


async def member(world: World) -> JoinGroupResponse:
    """
    The first member of a group, which has been told that it leads.
    """
    _, waiting = await joining(world)
    await world.clock.pass_time(world.config.group_initial_rebalance_delay_ms / 1000)
    return await waiting


async def stable(world: World) -> JoinGroupResponse:
    joined = await member(world)
    request = sync_request(GROUP, joined.member_id, joined.generation_id)
    synced = await world.coordinator.sync(request)
    assert (0, b"mine") == (synced.error_code, synced.assignment)
    return joined


@pytest.mark.parametrize(
    ("group_id", "expected"),
    [
        # Java's String.hashCode, as computed by a JVM.
        ("", 0),
        ("a", 97),
        ("group", 98629247),
        ("my-group", -1906497762),
        ("grüße", 98768023),
        ("𝄞-clef", 1436437325),
        ("polygenelubricants", -2147483648),
    ],
)
def test_group_id_hash_determines_the_offsets_partition(group_id: str, expected: int) -> None:
    # The absolute value; 0 for the only number without one.
    absolute = 0 if expected == -(2**31) else abs(expected)

    assert absolute % 50 == partition_of(group_id, 50)
    assert absolute % 7 == partition_of(group_id, 7)


class TestMembers:
    async def test_session_expires_by_the_clock_without_heartbeats(self, world: World) -> None:
        joined = await stable(world)
        request = heartbeat_request(GROUP, joined.member_id)

        for _ in range(5):
            await world.clock.pass_time(9.999)
            assert ErrorCode.NONE == world.coordinator.heartbeat(request)
        await world.clock.pass_time(10)

        assert ErrorCode.UNKNOWN_MEMBER_ID == world.coordinator.heartbeat(request)
        assert ["Empty"] == listed(world)

    async def test_leave_is_answered_once_it_is_written(self, world: World) -> None:
        joined = await stable(world)
        before = len(world.log.batches)

        member = MemberIdentity(member_id=joined.member_id)
        answer = finished(world.coordinator.leave(GROUP, [member]))

        response = cast(LeaveGroupResponse, outcome(answer))
        assert [0] == [m.error_code for m in response.members]
        assert before + 1 == len(world.log.batches)


class TestTheLog:
    async def test_group_batches_equal_kafkas(self, world: World) -> None:
        # No producer, but a base sequence; the time of the append.
        commit(world)

        (batch,) = world.log.batches
        assert (-1, -1, 0) == (batch.producer_id, batch.producer_epoch, batch.base_sequence)
        assert world.clock.now_ms() == batch.base_timestamp == batch.max_timestamp
        assert not batch.is_transactional
        assert CompressionType.NONE is batch.compression

    async def test_group_batches_can_be_compressed(self, make: Make) -> None:
        world = make(offsets_topic_compression_codec=1)
        commit(world)
        assert CompressionType.GZIP is world.log.batches[0].compression

        await world.restart()

        assert 5 == committed(world)

    async def test_response_waits_for_the_fsync_that_flush_messages_requires(
        self, world: World
    ) -> None:
        world.log.configure(flush_messages="1")
        gate = threading.Event()
        world.io.submit(gate.wait, GATE_SECONDS)

        answer = commit(world)
        assert isinstance(answer, asyncio.Future)
        assert not answer.done()

        gate.set()
        await asyncio.wait_for(answer, 60)
        assert 0 == commit_error(answer)
        assert 1 == world.log.recovery_point

    @pytest.mark.parametrize("error", [KafkaStorageError("the disk is gone"), NotCoordinator()])
    async def test_failed_write_undoes_the_change(self, world: World, error: KafkaError) -> None:
        world.log.append_error = error

        assert ErrorCode.NOT_COORDINATOR == commit_error(commit(world))

        assert [] == listed(world)
        assert -1 == committed(world)

    async def test_tombstones_are_split_into_batches(self, make: Make) -> None:
        world = make(offsets_retention_minutes=1)
        await asyncio.sleep(0)  # the check has begun to wait
        for number in range(200):
            commit(world, f"group-{number}")
        world.log.configure(max_message_bytes="500")
        before = len(world.log.batches)

        await world.clock.pass_time(600)

        assert [] == listed(world)
        assert len(world.log.batches) - before > 10
        assert all(batch.size <= 500 for batch in some(world.log.batches[before:]))
        await world.restart()
        assert [] == listed(world)

    async def test_offsets_expire_in_the_background(self, make: Make) -> None:
        world = make(offsets_retention_minutes=1, offsets_retention_check_interval_ms=100_000)
        await asyncio.sleep(0)  # the check has begun to wait
        commit(world)

        await world.clock.pass_time(99)
        assert 5 == committed(world)
        await world.clock.pass_time(1)

        assert -1 == committed(world)


class TestLoading:
    async def test_all_groups_are_loaded_whatever_the_read_size(self, make: Make) -> None:
        world = make(offsets_load_buffer_size=100)
        for number in range(20):
            commit(world, f"group-{number}", number)

        await world.restart()

        assert list(range(20)) == [committed(world, f"group-{n}") for n in range(20)]
        assert world.log.reads == 20

    async def test_requests_are_refused_while_loading(self, world: World) -> None:
        commit(world)
        gate = threading.Event()
        world.io.submit(gate.wait, GATE_SECONDS)
        load(world)
        c = world.coordinator

        assert ErrorCode.NONE == c.heartbeat(heartbeat_request(GROUP, "m"))
        assert 14 == (await c.join(join_request(GROUP), CALLER)).error_code
        sync = sync_request(GROUP, "m")
        assert 14 == (await c.sync(sync)).error_code
        assert 14 == outcome(finished(c.leave(GROUP, []))).error_code
        assert 14 == commit_error(commit(world))
        assert 14 == fetched(world).error_code
        delete = OffsetDeleteRequest(group_id=GROUP, topics=[])
        assert 14 == outcome(finished(c.delete_offsets(delete))).error_code
        assert [14] == [r.error_code for r in outcome(finished(c.delete_groups([GROUP]))).results]
        with pytest.raises(CoordinatorLoadInProgress):
            finished(c.list_groups([], []))
        with pytest.raises(CoordinatorLoadInProgress):
            c.describe_group(GROUP, 6)
        await c.expire_offsets()

        gate.set()
        await world.loaded()
        assert 5 == committed(world)

    async def test_partition_with_a_malformed_log_has_no_coordinator(
        self, make: Make, caplog: pytest.LogCaptureFixture
    ) -> None:
        world = make(2)
        group_of = {
            index: next(
                g for g in map(str, range(99)) if world.coordinator.partition_for(g) == index
            )
            for index in (0, 1)
        }
        for group_id in group_of.values():
            commit(world, group_id)
        cut_short = build_batch([SimpleRecord(0, b"\0\1\0\7", None)], base_sequence=0)
        world.logs[0].append_as_leader(memoryview(cut_short), 0, origin=AppendOrigin.COORDINATOR)

        load(world)
        await world.loaded()

        answer = fetched(world, group_of[0])
        assert ErrorCode.NOT_COORDINATOR == answer.error_code
        assert 5 == committed(world, group_of[1])
        assert "cannot be loaded" in caplog.text

    async def test_resignation_during_loading_discards_what_was_loaded(self, world: World) -> None:
        commit(world)
        gate = threading.Event()
        world.io.submit(gate.wait, GATE_SECONDS)
        load(world)

        world.coordinator.shards.resign(0)
        gate.set()
        await world.loaded()

        answer = fetched(world)
        assert ErrorCode.NOT_COORDINATOR == answer.error_code


class TestComingAndGoing:
    async def test_coordinator_is_unavailable_before_the_start(self, make: Make) -> None:
        world = make(start=False)
        c = world.coordinator

        assert (15, "m") == (
            (answer := await c.join(join_request(GROUP, "m"), CALLER)).error_code,
            answer.member_id,
        )
        assert 15 == c.heartbeat(heartbeat_request(GROUP, "m"))
        assert 15 == commit_error(commit(world))
        with pytest.raises(CoordinatorNotAvailable):
            finished(c.list_groups([], []))

    async def test_coordinator_does_nothing_without_its_topic(self, make: Make) -> None:
        # The first FindCoordinator creates the topic.
        world = make(start=False)
        world.coordinator.start()

        assert 16 == world.coordinator.heartbeat(heartbeat_request(GROUP, "m"))
        assert [] == listed(world)

        load(world)
        assert 25 == world.coordinator.heartbeat(heartbeat_request(GROUP, "m"))

    @pytest.mark.parametrize("reason", ["deletion", "expiry"])
    async def test_deletion_of_many_groups_yields_to_other_requests(
        self, reason: str, make: Make, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(deleting, "GROUPS_AT_ONCE", 10)
        ticks = itertools.count()
        world = make(2, turns=Turns(lambda: next(ticks) * TURN_S / 4))
        groups = [f"group-{n}" for n in range(100)]
        for group_id in groups:
            commit(world, group_id)
        a_month_later = world.clock.now_ms() + 30 * 24 * 3_600_000
        monkeypatch.setattr(world.clock, "now_ms", lambda: a_month_later)

        forgetting = asyncio.ensure_future(
            world.coordinator.on_topics_deleted([DeletedTopic("t", TOPIC_ID)])
            if reason == "deletion"
            else world.coordinator.expire_offsets()
        )
        left = []
        while not forgetting.done():
            await asyncio.sleep(0)
            left.append(sum(committed(world, group_id) >= 0 for group_id in groups))

        assert 0 == left[-1]
        assert 3 <= len({count for count in left if 0 < count < len(groups)})

    async def test_failed_partition_has_no_coordinator(self, make: Make) -> None:
        world = make(start=False)
        world.coordinator.start()
        (partition,) = world.partitions()
        world.coordinator.shards.lead([partition], 1)

        partition.close(KafkaStorageError("the disk is gone"))

        assert 16 == commit_error(commit(world))


class TestDeletingGroups:
    async def test_groups_of_all_partitions_are_deleted_in_request_order(self, make: Make) -> None:
        world = make(3)
        groups = [f"group-{n}" for n in range(5)]
        for group_id in groups:
            commit(world, group_id)

        answer = outcome(finished(world.coordinator.delete_groups([*groups, "nobody"])))

        assert [*groups, "nobody"] == [r.group_id for r in answer.results]
        assert [0, 0, 0, 0, 0, 69] == [r.error_code for r in answer.results]
        assert [] == listed(world)

    async def test_failed_write_fails_the_deletion_of_its_groups(self, world: World) -> None:
        commit(world)
        world.log.append_error = KafkaStorageError("the disk is gone")

        answer = outcome(finished(world.coordinator.delete_groups([GROUP, "nobody"])))

        assert [16, 69] == [r.error_code for r in answer.results]
        assert 5 == committed(world)
