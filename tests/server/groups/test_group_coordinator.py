from __future__ import annotations

import asyncio
import itertools
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any, cast
from uuid import UUID

import pytest
import pytest_asyncio

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
from barnabas.protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from barnabas.protocol.messages.offset_delete import OffsetDeleteRequest
from barnabas.protocol.messages.offset_fetch import OffsetFetchRequestGroup
from barnabas.protocol.records.batch import build_batch
from barnabas.protocol.records.record import SimpleRecord
from barnabas.server.coordinator_runtime.partitioning import partition_of
from barnabas.server.groups.caller import Caller
from barnabas.server.groups.offsets import deleting
from barnabas.server.groups.offsets.deleting import DeletedTopic
from barnabas.server.purgatory import Delayed
from barnabas.server.scheduling.turns import TURN_S, Turns, finished
from barnabas.storage.errors import KafkaStorageError
from barnabas.storage.producers.append_origin import AppendOrigin
from tests.support import group_requests
from tests.support.build import build
from tests.support.group_requests import heartbeat_request, join_request, sync_request
from tests.support.group_world import World
from tests.support.some import some

TOPIC_ID = UUID(int=1)
GROUP = "group"
CALLER = Caller(9, "client", "/127.0.0.1")


@pytest_asyncio.fixture
async def make() -> AsyncIterator[Callable[..., World]]:
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


def commit_request(
    group_id: str = GROUP, offset: int = 5, member_id: str = "", generation_id: int = -1
) -> OffsetCommitRequest:
    return group_requests.commit_request(
        group_id,
        "t",
        {0: offset},
        topic_id=TOPIC_ID,
        member_id=member_id,
        generation_id_or_member_epoch=generation_id,
    )


def fetch_request(group_id: str = GROUP) -> OffsetFetchRequestGroup:
    topics = [{"name": "t", "partition_indexes": [0]}]
    return build(OffsetFetchRequestGroup, group_id=group_id, topics=topics)


def commit_error(answer: OffsetCommitResponse | Delayed) -> int:
    response = cast(OffsetCommitResponse, outcome(answer))
    return response.topics[0].partitions[0].error_code


def outcome(answer: Any) -> Any:
    if not isinstance(answer, Delayed):
        return answer
    heard: list[Any] = []
    answer.then(heard.append)
    assert heard, "the answer is not there yet"
    return heard[0]


def committed(world: World, group_id: str = GROUP) -> int:
    response = finished(
        world.coordinator.fetch_offsets(fetch_request(group_id), 9, require_stable=False)
    )
    assert response.error_code == 0
    return response.topics[0].partitions[0].committed_offset


async def member(world: World) -> JoinGroupResponse:
    """
    The first member of a group, which has been told that it leads.
    """
    required = await world.coordinator.join(join_request(GROUP), CALLER)
    joining = asyncio.create_task(
        world.coordinator.join(join_request(GROUP, required.member_id), CALLER)
    )
    await asyncio.sleep(0)
    await world.clock.pass_time(world.config.group_initial_rebalance_delay_ms / 1000)
    return await joining


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
    """
    By Kafka's reckoning: the absolute value, and 0 for the one number that has none.
    """
    absolute = 0 if expected == -(2**31) else abs(expected)

    assert absolute % 50 == partition_of(group_id, 50)
    assert absolute % 7 == partition_of(group_id, 7)


class TestMembers:
    async def test_join_waits_for_the_rebalance_and_sync_for_the_assignment(
        self, make: Callable[..., World]
    ) -> None:
        world = make(group_initial_rebalance_delay_ms=3000)

        joined = await stable(world)

        assert joined.member_id == joined.leader
        request = heartbeat_request(GROUP, joined.member_id)
        assert ErrorCode.NONE == world.coordinator.heartbeat(request)

    async def test_disconnected_client_stays_a_member(self, make: Callable[..., World]) -> None:
        """
        Cancelling the wait for a join does not cancel the join.
        """
        world = make(group_initial_rebalance_delay_ms=3000)
        required = await world.coordinator.join(join_request(GROUP), CALLER)
        waiting = asyncio.create_task(
            world.coordinator.join(join_request(GROUP, required.member_id), CALLER)
        )
        await asyncio.sleep(0)

        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        await world.clock.pass_time(3)

        (group,) = finished(world.coordinator.list_groups([], []))
        assert "CompletingRebalance" == group.group_state
        request = heartbeat_request(GROUP, required.member_id)
        assert ErrorCode.NONE == world.coordinator.heartbeat(request)

    async def test_session_expires_by_the_clock_without_heartbeats(
        self, make: Callable[..., World]
    ) -> None:
        world = make()
        joined = await stable(world)
        request = heartbeat_request(GROUP, joined.member_id)

        for _ in range(5):
            await world.clock.pass_time(9.999)
            assert ErrorCode.NONE == world.coordinator.heartbeat(request)
        await world.clock.pass_time(10)

        assert ErrorCode.UNKNOWN_MEMBER_ID == world.coordinator.heartbeat(request)
        (group,) = finished(world.coordinator.list_groups([], []))
        assert "Empty" == group.group_state

    async def test_members_survive_a_restart_with_a_new_session(
        self, make: Callable[..., World]
    ) -> None:
        world = make()
        joined = await stable(world)
        await world.clock.pass_time(9)

        await world.restart()

        await world.clock.pass_time(9)
        request = heartbeat_request(GROUP, joined.member_id)
        assert ErrorCode.NONE == world.coordinator.heartbeat(request)
        sync = sync_request(GROUP, joined.member_id, assignments=[])
        assert b"mine" == (await world.coordinator.sync(sync)).assignment

    async def test_leave_is_answered_once_it_is_written(self, make: Callable[..., World]) -> None:
        world = make()
        joined = await stable(world)
        before = len(world.log.batches)

        member = MemberIdentity(member_id=joined.member_id)
        answer = finished(world.coordinator.leave(GROUP, [member]))

        response = cast(LeaveGroupResponse, outcome(answer))
        assert [0] == [m.error_code for m in response.members]
        assert before + 1 == len(world.log.batches)


class TestTheLog:
    async def test_group_batches_equal_kafkas(self, make: Callable[..., World]) -> None:
        """
        No producer, but a base sequence; the time of the append; one batch for each request.
        """
        world = make()
        finished(world.coordinator.commit_offsets(commit_request(), 9))

        (batch,) = world.log.batches
        assert (-1, -1, 0) == (batch.producer_id, batch.producer_epoch, batch.base_sequence)
        assert world.clock.now_ms() == batch.base_timestamp == batch.max_timestamp
        assert not batch.is_transactional
        assert CompressionType.NONE is batch.compression

    async def test_group_batches_can_be_compressed(self, make: Callable[..., World]) -> None:
        """
        ``offsets.topic.compression.codec``; they are loaded all the same.
        """
        world = make(offsets_topic_compression_codec=1)
        finished(world.coordinator.commit_offsets(commit_request(), 9))
        assert CompressionType.GZIP is world.log.batches[0].compression

        await world.restart()

        assert 5 == committed(world)

    async def test_response_waits_for_the_fsync_if_flush_messages_requires_it(
        self, make: Callable[..., World]
    ) -> None:
        world = make()
        world.log.configure(flush_messages="1")
        gate = threading.Event()
        world.io.submit(gate.wait)

        answer = finished(world.coordinator.commit_offsets(commit_request(), 9))
        assert isinstance(answer, Delayed)
        assert not answer.done

        told = asyncio.Event()
        answer.then(lambda _: told.set())
        gate.set()
        await asyncio.wait_for(told.wait(), 60)
        assert 0 == commit_error(answer)
        assert 1 == world.log.recovery_point

    @pytest.mark.parametrize(
        ("error", "expected"),
        [
            (KafkaStorageError("the disk is gone"), ErrorCode.NOT_COORDINATOR),
            (NotCoordinator(), ErrorCode.NOT_COORDINATOR),
        ],
    )
    async def test_failed_write_undoes_the_change(
        self, make: Callable[..., World], error: KafkaError, expected: ErrorCode
    ) -> None:
        """
        The client is told to look for the coordinator.
        """
        world = make()
        world.log.append_error = error

        assert expected == commit_error(
            finished(world.coordinator.commit_offsets(commit_request(), 9))
        )

        assert [] == finished(world.coordinator.list_groups([], []))
        assert -1 == committed(world)

    async def test_tombstones_are_split_into_batches(self, make: Callable[..., World]) -> None:
        world = make(offsets_retention_minutes=1)
        await asyncio.sleep(0)  # the check has begun to wait
        for number in range(200):
            finished(world.coordinator.commit_offsets(commit_request(f"group-{number}"), 9))
        world.log.configure(max_message_bytes="500")
        before = len(world.log.batches)

        await world.clock.pass_time(600)

        assert [] == finished(world.coordinator.list_groups([], []))
        assert len(world.log.batches) - before > 10
        assert all(batch.size <= 500 for batch in some(world.log.batches[before:]))
        await world.restart()
        assert [] == finished(world.coordinator.list_groups([], []))

    async def test_offsets_expire_in_the_background(self, make: Callable[..., World]) -> None:
        """
        Every ``offsets.retention.check.interval.ms``.
        """
        world = make(offsets_retention_minutes=1, offsets_retention_check_interval_ms=100_000)
        await asyncio.sleep(0)  # the check has begun to wait
        finished(world.coordinator.commit_offsets(commit_request(), 9))

        await world.clock.pass_time(99)
        assert 5 == committed(world)
        await world.clock.pass_time(1)

        assert -1 == committed(world)


class TestLoading:
    async def test_all_groups_are_loaded_whatever_the_read_size(
        self, make: Callable[..., World]
    ) -> None:
        world = make(offsets_load_buffer_size=100)
        for number in range(20):
            finished(world.coordinator.commit_offsets(commit_request(f"group-{number}", number), 9))

        await world.restart()

        assert list(range(20)) == [committed(world, f"group-{n}") for n in range(20)]
        assert world.log.reads == 20

    async def test_requests_are_refused_while_loading(self, make: Callable[..., World]) -> None:
        """
        Except heartbeats: no session expires meanwhile.
        """
        world = make()
        finished(world.coordinator.commit_offsets(commit_request(), 9))
        gate = threading.Event()
        world.io.submit(gate.wait)
        world.coordinator.shards.lead(world.partitions(), len(world.partitions()))
        c = world.coordinator

        assert ErrorCode.NONE == c.heartbeat(heartbeat_request(GROUP, "m"))
        assert 14 == (await c.join(join_request(GROUP), CALLER)).error_code
        sync = sync_request(GROUP, "m")
        assert 14 == (await c.sync(sync)).error_code
        assert 14 == outcome(finished(c.leave(GROUP, []))).error_code
        assert 14 == commit_error(finished(c.commit_offsets(commit_request(), 9)))
        assert 14 == finished(c.fetch_offsets(fetch_request(), 9, require_stable=False)).error_code
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
        self, make: Callable[..., World], caplog: pytest.LogCaptureFixture
    ) -> None:
        """
        The other partitions are served.
        """
        world = make(2)
        group_of = {
            index: next(
                g for g in map(str, range(99)) if world.coordinator.partition_for(g) == index
            )
            for index in (0, 1)
        }
        for group_id in group_of.values():
            finished(world.coordinator.commit_offsets(commit_request(group_id), 9))
        cut_short = build_batch([SimpleRecord(0, b"\0\1\0\7", None)], base_sequence=0)
        world.logs[0].append_as_leader(memoryview(cut_short), 0, origin=AppendOrigin.COORDINATOR)

        world.coordinator.shards.lead(world.partitions(), len(world.partitions()))
        await world.loaded()

        answer = finished(
            world.coordinator.fetch_offsets(fetch_request(group_of[0]), 9, require_stable=False)
        )
        assert ErrorCode.NOT_COORDINATOR == answer.error_code
        assert 5 == committed(world, group_of[1])
        assert "cannot be loaded" in caplog.text

    async def test_resignation_during_loading_discards_what_was_loaded(
        self, make: Callable[..., World]
    ) -> None:
        world = make()
        finished(world.coordinator.commit_offsets(commit_request(), 9))
        gate = threading.Event()
        world.io.submit(gate.wait)
        world.coordinator.shards.lead(world.partitions(), len(world.partitions()))

        world.coordinator.shards.resign(0)
        gate.set()
        await world.loaded()

        answer = finished(world.coordinator.fetch_offsets(fetch_request(), 9, require_stable=False))
        assert ErrorCode.NOT_COORDINATOR == answer.error_code


class TestComingAndGoing:
    async def test_coordinator_is_unavailable_before_the_start(
        self, make: Callable[..., World]
    ) -> None:
        c = make(start=False).coordinator

        assert (15, "m") == (
            (answer := await c.join(join_request(GROUP, "m"), CALLER)).error_code,
            answer.member_id,
        )
        assert 15 == c.heartbeat(heartbeat_request(GROUP, "m"))
        assert 15 == commit_error(finished(c.commit_offsets(commit_request(), 9)))
        with pytest.raises(CoordinatorNotAvailable):
            finished(c.list_groups([], []))

    async def test_coordinator_does_nothing_without_its_topic(
        self, make: Callable[..., World]
    ) -> None:
        """
        The topic comes with the first FindCoordinator.
        """
        world = make(start=False)
        world.coordinator.start()

        assert 16 == world.coordinator.heartbeat(heartbeat_request(GROUP, "m"))
        assert [] == finished(world.coordinator.list_groups([], []))

        world.coordinator.shards.lead(world.partitions(), len(world.partitions()))
        assert 25 == world.coordinator.heartbeat(heartbeat_request(GROUP, "m"))

    async def test_stop_answers_all_waiting_requests(self, make: Callable[..., World]) -> None:
        """
        They are told to look for the coordinator, which will be this one after the restart.
        """
        world = make(group_initial_rebalance_delay_ms=3000)
        required = await world.coordinator.join(join_request(GROUP), CALLER)
        waiting = asyncio.create_task(
            world.coordinator.join(join_request(GROUP, required.member_id), CALLER)
        )
        await asyncio.sleep(0)

        world.coordinator.stop()

        answer = await waiting
        assert (16, required.member_id) == (answer.error_code, answer.member_id)

    async def test_deleted_topic_loses_its_offsets_in_all_partitions(
        self, make: Callable[..., World]
    ) -> None:
        world = make(3)
        groups = [f"group-{n}" for n in range(10)]
        for group_id in groups:
            finished(world.coordinator.commit_offsets(commit_request(group_id), 9))

        await world.coordinator.on_topics_deleted([DeletedTopic("t", TOPIC_ID)])

        assert {-1} == {committed(world, group_id) for group_id in groups}

    @pytest.mark.parametrize("reason", ["deletion", "expiry"])
    async def test_deletion_of_many_groups_yields_to_other_requests(
        self, reason: str, make: Callable[..., World], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(deleting, "GROUPS_AT_ONCE", 10)
        ticks = itertools.count()
        world = make(2, turns=Turns(lambda: next(ticks) * TURN_S / 4))
        groups = [f"group-{n}" for n in range(100)]
        for group_id in groups:
            finished(world.coordinator.commit_offsets(commit_request(group_id), 9))
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

    async def test_failed_partition_has_no_coordinator(self, make: Callable[..., World]) -> None:
        world = make(start=False)
        world.coordinator.start()
        (partition,) = world.partitions()
        world.coordinator.shards.lead([partition], 1)

        partition.close(KafkaStorageError("the disk is gone"))

        assert 16 == commit_error(finished(world.coordinator.commit_offsets(commit_request(), 9)))


class TestDeletingGroups:
    async def test_groups_of_several_partitions_are_deleted_in_request_order(
        self, make: Callable[..., World]
    ) -> None:
        world = make(3)
        groups = [f"group-{n}" for n in range(5)]
        for group_id in groups:
            finished(world.coordinator.commit_offsets(commit_request(group_id), 9))

        answer = outcome(finished(world.coordinator.delete_groups([*groups, "nobody"])))

        assert [*groups, "nobody"] == [r.group_id for r in answer.results]
        assert [0, 0, 0, 0, 0, 69] == [r.error_code for r in answer.results]
        assert [] == finished(world.coordinator.list_groups([], []))

    async def test_failed_write_fails_the_deletion_of_its_groups(
        self, make: Callable[..., World]
    ) -> None:
        """
        Those that would have been deleted have failed; the others have their own error.
        """
        world = make()
        finished(world.coordinator.commit_offsets(commit_request(), 9))
        world.log.append_error = KafkaStorageError("the disk is gone")

        answer = outcome(finished(world.coordinator.delete_groups([GROUP, "nobody"])))

        assert [16, 69] == [r.error_code for r in answer.results]
        assert 5 == committed(world)


class TestListing:
    async def test_members_are_described_once_the_group_is_stable(
        self, make: Callable[..., World]
    ) -> None:
        world = make()
        joined = await member(world)

        rebalancing = world.coordinator.describe_group(GROUP, 6)
        assert ("CompletingRebalance", "consumer", "") == (
            rebalancing.group_state,
            rebalancing.protocol_type,
            rebalancing.protocol_data,
        )
        assert [b""] == [m.member_metadata for m in rebalancing.members]

        await world.coordinator.sync(sync_request(GROUP, joined.member_id))
        settled = world.coordinator.describe_group(GROUP, 6)
        (described,) = settled.members
        assert ("Stable", "range", b"mine") == (
            settled.group_state,
            settled.protocol_data,
            described.member_assignment,
        )
        assert ("client", "/127.0.0.1", joined.member_id) == (
            described.client_id,
            described.client_host,
            described.member_id,
        )
