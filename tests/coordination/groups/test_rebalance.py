from __future__ import annotations

from typing import Any

import pytest

from barnabas.coordination.groups.classic.rebalance import NEW_MEMBER_JOIN_TIMEOUT_MS
from barnabas.coordination.groups.classic.state import GroupState
from barnabas.coordination.groups.describing import describe
from barnabas.protocol.errors import ErrorCode, RebalanceInProgress, UnknownMemberId
from tests.support.attributes import assert_has
from tests.support.coordination import GROUP, START_MS, Coordination, CoordinatorConfig
from tests.support.some import some

S = GroupState
SLOW: dict[str, Any] = {"rebalance_timeout_ms": 5000, "session_timeout_ms": 30_000}
"""
Options of members whose rebalances end before their sessions.
"""


def joined(count: int = 2, **options: Any) -> tuple[Coordination, list[str]]:
    """
    A group of dynamic members that waits for the assignment, the leader first.
    """
    c = Coordination()
    ids = [c.new_member(**options)[0] for _ in range(count)]
    c.advance(0)
    assert c.is_in(S.COMPLETING_REBALANCE)
    return c, ids


def stable(count: int = 2, **options: Any) -> tuple[Coordination, list[str]]:
    c = Coordination()
    return c, c.stable(count, **options)


class TestTheFirstRound:
    @pytest.mark.parametrize("delay_ms", [0, 3000])
    def test_first_rebalance_waits_for_the_initial_rebalance_delay(self, delay_ms: int) -> None:
        c = Coordination(group_initial_rebalance_delay_ms=delay_ms)
        _, join = c.new_member()

        c.advance(delay_ms - 1)
        assert join.is_parked
        c.advance(1)

        assert 1 == join.now.generation_id

    def test_each_new_member_extends_the_initial_rebalance_delay(self) -> None:
        c = Coordination(group_initial_rebalance_delay_ms=3000)
        _, first = c.new_member()
        c.advance(2000)
        _, second = c.new_member()

        c.advance(1000 + 2999)
        assert first.is_parked
        assert second.is_parked

        c.advance(1)
        assert 2 == len(first.now.members)

    def test_initial_delay_is_limited_by_the_rebalance_timeout(self) -> None:
        c = Coordination(group_initial_rebalance_delay_ms=3000)
        _, first = c.new_member(rebalance_timeout_ms=7000)
        for _ in range(6):
            c.advance(1000)
            c.new_member(rebalance_timeout_ms=7000)
        assert first.is_parked

        c.advance(1000)

        assert not first.is_parked
        assert START_MS + 7000 == c.now_ms

    def test_first_rebalance_ends_with_an_empty_group_when_all_have_left(self) -> None:
        c = Coordination(group_initial_rebalance_delay_ms=3000)
        member_id, join = c.new_member()

        c.leave(member_id)
        assert ErrorCode.UNKNOWN_MEMBER_ID == join.now.error_code
        assert c.is_in(S.PREPARING_REBALANCE)

        c.advance(3000)
        assert c.group.is_empty
        assert 1 == c.group.generation_id


class TestARound:
    def test_join_response_lists_the_members_to_the_leader_only(self) -> None:
        c = Coordination()
        joins = [
            c.new_member(protocols=(("range", f"m{i}".encode()), ("sticky", b""))) for i in range(3)
        ]

        c.advance(0)

        leader_id = joins[0][0]
        for member_id, join in some(joins):
            answer = join.now
            assert leader_id == answer.leader
            assert member_id == answer.member_id
            assert "range" == answer.protocol_name
            assert "consumer" == answer.protocol_type
            assert not answer.skip_assignment
        told = {m.member_id: m.metadata for m in joins[0][1].now.members}
        assert {member_id: f"m{i}".encode() for i, (member_id, _) in enumerate(joins)} == told
        assert [] == joins[1][1].now.members == joins[2][1].now.members

    def test_join_of_a_new_member_begins_a_rebalance(self) -> None:
        c, (a, b) = stable()

        _, third = c.new_member()
        with pytest.raises(RebalanceInProgress):
            c.heartbeat(a, 1)
        first = c.join(a)
        assert first.is_parked
        second = c.join(b)

        assert {2} == {x.now.generation_id for x in (first, second, third)}
        assert 3 == len(first.now.members)
        assert a == first.now.leader

    @pytest.mark.parametrize("stays", [0, 1], ids=["leader stays", "follower stays"])
    def test_rebalance_proceeds_without_absent_members_after_its_timeout(self, stays: int) -> None:
        c, ids = stable(**SLOW)
        join = c.join(ids[stays], protocols=(("range", b"changed"),), **SLOW)

        c.advance(4999)
        assert join.is_parked
        c.advance(1)

        assert ids[stays] == join.now.leader
        assert [ids[stays]] == [m.member_id for m in join.now.members]
        with pytest.raises(UnknownMemberId):
            c.heartbeat(ids[1 - stays], 2)

    def test_rebalance_ends_when_the_last_awaited_member_leaves(self) -> None:
        c, (a, b) = stable()
        join = c.join(a)
        assert join.is_parked

        c.leave(b)

        assert 2 == join.now.generation_id

    def test_rebalance_ends_when_the_session_of_the_last_awaited_member_expires(self) -> None:
        c, (a, b) = stable()
        join = c.join(a)

        c.advance(10_000)

        assert 2 == join.now.generation_id
        assert b not in c.group.members

    @pytest.mark.parametrize("leaves", [False, True])
    def test_rebalance_waits_for_a_pending_member_id(self, leaves: bool) -> None:
        # A client may close instead of joining again. Kafka then waits for the others only in the
        # first round.
        c, (a,) = stable(1)
        pending = c.join(session_timeout_ms=6000).now.member_id
        join = c.join(a)
        c.advance(5999)
        assert join.is_parked

        if leaves:
            assert ErrorCode.NONE == c.leave(pending).members[0].error_code
        else:
            c.advance(1)

        assert 2 == join.now.generation_id

    def test_rebalance_chooses_the_most_preferred_common_protocol(self) -> None:
        c = Coordination()
        both = (("range", b"r"), ("sticky", b"s"))
        _, first = c.new_member(protocols=both)
        _, second = c.new_member(protocols=(("sticky", b"S"), ("other", b"o")))

        c.advance(0)

        assert "sticky" == first.now.protocol_name == second.now.protocol_name
        assert [b"s", b"S"] == [m.metadata for m in first.now.members]

    def test_protocol_named_twice_counts_once(self) -> None:
        # Apache Kafka counts a vote too many and never ends the rebalance.
        c = Coordination()
        _, join = c.new_member(protocols=(("range", b"first"), ("range", b"second")))

        c.advance(0)

        assert "range" == join.now.protocol_name
        assert [b"first"] == [member.metadata for member in join.now.members]

    def test_join_v0_uses_the_session_timeout_as_rebalance_timeout(self) -> None:
        c = Coordination()
        join = c.join(version=0, session_timeout_ms=7000, rebalance_timeout_ms=-1)
        c.advance(0)

        assert 7000 == c.group.members[join.now.member_id].rebalance_timeout_ms


class TestTheRoundOfSyncs:
    def test_sync_round_ends_with_the_assignment_of_the_leader(self) -> None:
        c, (a, b, d) = joined(3)
        syncs = {b: c.sync(b, 1), d: c.sync(d, 1)}
        assert all(s.is_parked for s in some(syncs.values()))

        syncs[a] = c.sync(a, 1, {a: b"A", b: b"B", "nobody": b"N"})

        # A member that the leader left out gets an empty assignment.
        assert {a: b"A", b: b"B", d: b""} == {m: s.now.assignment for m, s in syncs.items()}
        for sync in some(syncs.values()):
            assert ErrorCode.NONE == sync.now.error_code
            assert ("range", "consumer") == (sync.now.protocol_name, sync.now.protocol_type)
        assert c.is_in(S.STABLE)

    def test_members_are_described_once_the_group_is_stable(self) -> None:
        c, (a,) = joined(1)

        rebalancing = describe(c.state.groups, GROUP, 6)
        assert_has(rebalancing, protocol_type="consumer", protocol_data="")
        assert [b""] == [member.member_metadata for member in rebalancing.members]

        c.sync(a, 1, {a: b"A"})
        settled = describe(c.state.groups, GROUP, 6)
        assert "range" == settled.protocol_data
        assert [(b"A", "client")] == [
            (member.member_assignment, member.client_id) for member in settled.members
        ]

    def test_late_sync_returns_the_assignment_at_once(self) -> None:
        c, (a, b) = joined()
        c.sync(a, 1, {a: b"A", b: b"B"})

        assert b"B" == c.sync(b, 1).now.assignment

    def test_sync_round_is_cancelled_by_a_join(self) -> None:
        c, (_, b) = joined()
        sync = c.sync(b, 1)

        c.new_member()

        assert ErrorCode.REBALANCE_IN_PROGRESS == sync.now.error_code
        assert b"" == sync.now.assignment

    def test_sync_round_has_the_rebalance_timeout(self) -> None:
        c, (a, b) = joined(**SLOW)
        sync = c.sync(b, 1)

        c.advance(4999)
        assert sync.is_parked
        c.advance(1)

        assert ErrorCode.REBALANCE_IN_PROGRESS == sync.now.error_code
        assert [b] == list(c.group.members)
        assert a != c.group.leader_id

    def test_members_that_never_sync_are_removed(self) -> None:
        c, (a, b) = joined(**SLOW)
        c.sync(a, 1, {a: b"A", b: b"B"})
        assert c.is_in(S.STABLE)

        c.advance(5000)

        assert [a] == list(c.group.members)
        assert c.is_in(S.PREPARING_REBALANCE)

    def test_second_sync_of_a_member_answers_the_first(self) -> None:
        # A client may have lost its connection.
        c, (a, b) = joined()
        first = c.sync(b, 1)
        second = c.sync(b, 1)
        c.sync(a, 1, {b: b"B"})

        assert ErrorCode.REBALANCE_IN_PROGRESS == first.now.error_code
        assert b"B" == second.now.assignment


class TestSessions:
    def test_silent_member_is_removed_after_its_session_timeout(self) -> None:
        c, (a, b) = stable()
        for _ in range(3):
            c.advance(3000)
            c.heartbeat(a, 1)
        assert [a, b] == list(c.group.members)

        c.advance(1000)

        assert [a] == list(c.group.members)
        with pytest.raises(RebalanceInProgress):
            c.heartbeat(a, 1)

    def test_heartbeats_extend_the_session(self) -> None:
        c, (a,) = stable(1)

        for _ in range(100):
            c.advance(9999)
            c.heartbeat(a, 1)

        assert c.is_in(S.STABLE)

    @pytest.mark.parametrize("rebalancing", [False, True])
    def test_commits_extend_the_session(self, rebalancing: bool) -> None:
        c, (a, b) = stable()
        if rebalancing:
            c.join(b, protocols=(("range", b"changed"),))

        for _ in range(4):
            c.advance(9999)
            c.commit_offsets({("t", 0): 1}, member_id=a, generation_id=1)

        assert a in c.group.members

    def test_removal_of_the_last_silent_member_writes_an_empty_group(self) -> None:
        c, _ = stable(1)
        batches = len(c.batches)

        c.advance(10_000)

        assert c.group.is_empty
        assert 2 == c.group.generation_id
        assert batches + 1 == len(c.batches)

    def test_unused_member_id_is_forgotten_after_the_session_timeout(self) -> None:
        c = Coordination()
        member_id = c.join(session_timeout_ms=6000).now.member_id

        c.advance(5999)
        assert [member_id] == [*c.group.pending_joins]
        c.advance(1)

        assert not c.group.pending_joins
        assert ErrorCode.UNKNOWN_MEMBER_ID == c.join(member_id).now.error_code

    def test_new_member_waits_in_a_join_for_a_limited_time(self) -> None:
        # Its client may have given up and joined under another id.
        options = {"session_timeout_ms": 1_800_000, "rebalance_timeout_ms": 3_600_000}
        c, _ = stable(1, **options)
        newcomer, join = c.new_member(**options)

        c.advance(NEW_MEMBER_JOIN_TIMEOUT_MS - 1)
        assert join.is_parked
        c.advance(1)

        assert ErrorCode.UNKNOWN_MEMBER_ID == join.now.error_code
        assert newcomer not in c.group.members

    def test_known_member_waiting_in_a_join_does_not_expire(self) -> None:
        # Its heartbeats would wait behind the join.
        c, (a, b) = stable(session_timeout_ms=6000)
        join = c.join(a, session_timeout_ms=6000)

        for _ in range(4):
            c.advance(5000)
            with pytest.raises(RebalanceInProgress):
                c.heartbeat(b, 1)

        assert join.is_parked
        assert a in c.group.members

    def test_member_that_waited_in_a_sync_gets_a_new_session(self) -> None:
        c, (a, b) = joined(session_timeout_ms=6000)
        sync = c.sync(b, 1)
        for _ in range(4):
            c.advance(5000)
            c.heartbeat(a, 1)
        assert sync.is_parked
        c.sync(a, 1, {a: b"A", b: b"B"})

        c.heartbeat(a, 1)
        c.advance(5999)
        assert b in c.group.members
        c.advance(1)

        assert b not in c.group.members


class TestTheSizeOfAGroup:
    def test_group_max_size_limits_new_members_only(self) -> None:
        c = Coordination(group_max_size=2)
        a, b = c.stable(2)

        answer = c.join().now

        assert (ErrorCode.GROUP_MAX_SIZE_REACHED, "") == (answer.error_code, answer.member_id)
        assert c.join(a).is_parked
        assert 2 == c.join(b).now.generation_id

    def test_group_max_size_counts_joined_members_during_a_rebalance(self) -> None:
        c, (a, b, d) = stable(3, session_timeout_ms=30_000)
        c.options = CoordinatorConfig(group_max_size=2)
        c.restart()
        assert c.is_in(S.PREPARING_REBALANCE)

        c.join(a)
        c.join(b)
        answer = c.join(d).now

        assert ErrorCode.GROUP_MAX_SIZE_REACHED == answer.error_code
        assert [a, b] == list(c.group.members)
        # Kafka does not look whether that was the last one it waits for.
        assert c.is_in(S.PREPARING_REBALANCE)
        c.advance(60_000)
        assert c.is_in(S.COMPLETING_REBALANCE)


class TestTheEnd:
    def test_waiting_sync_is_answered_when_the_coordinator_resigns(self) -> None:
        c, (_, b) = joined()
        sync = c.sync(b, 1)

        c.state.unloaded(c.now_ms)

        assert ErrorCode.NOT_COORDINATOR == sync.now.error_code
        assert c.is_in(S.DEAD)

    def test_waiting_join_is_answered_with_its_member_id_when_the_coordinator_resigns(self) -> None:
        c = Coordination()
        member_id, join = c.new_member()

        c.state.unloaded(c.now_ms)

        assert ErrorCode.NOT_COORDINATOR == join.now.error_code
        assert member_id == join.now.member_id


class TestWhatIsWritten:
    @pytest.mark.parametrize("is_superseded", [False, True])
    def test_assignment_counts_once_it_is_committed(self, is_superseded: bool) -> None:
        c, (a, b) = joined()
        sync_b = c.sync(b, 1)
        c.is_slow = True
        sync_a = c.sync(a, 1, {a: b"A", b: b"B"})
        assert sync_a.is_parked
        assert c.is_in(S.COMPLETING_REBALANCE)

        c.is_slow = False
        if is_superseded:
            c.new_member()
        c.commit()

        if is_superseded:
            assert ErrorCode.REBALANCE_IN_PROGRESS == sync_a.now.error_code == sync_b.now.error_code
            assert c.is_in(S.PREPARING_REBALANCE)
        else:
            assert (b"A", b"B") == (sync_a.now.assignment, sync_b.now.assignment)
            assert c.is_in(S.STABLE)

    def test_assignment_that_cannot_be_written_is_withdrawn(self) -> None:
        c, (a, b) = joined()
        sync_b = c.sync(b, 1)
        c.append_error = ErrorCode.KAFKA_STORAGE_ERROR

        sync_a = c.sync(a, 1, {a: b"A", b: b"B"})

        assert ErrorCode.NOT_COORDINATOR == sync_a.now.error_code == sync_b.now.error_code
        assert c.is_in(S.PREPARING_REBALANCE)
        assert b"" == c.group.members[a].assignment

    def test_group_that_cannot_be_written_does_not_exist(self) -> None:
        c = Coordination()
        c.append_error = ErrorCode.KAFKA_STORAGE_ERROR

        join = c.join(version=3)

        assert ErrorCode.NOT_COORDINATOR == join.now.error_code
        assert c.state.groups.get("group") is None
