"""
Members of the classic protocol inside consumer groups.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from barnabas.protocol.errors import (
    ErrorCode,
    FencedInstanceId,
    GroupMaxSizeReached,
    IllegalGeneration,
    InconsistentGroupProtocol,
    KafkaError,
    RebalanceInProgress,
    UnknownMemberId,
    UnknownServerError,
)
from barnabas.protocol.messages.join_group import JoinGroupResponse
from barnabas.server.groups.classic.subscriptions import assignment_of, version_of
from barnabas.server.groups.consumer.member import MemberState
from tests.support.consumer_groups import (
    ConsumerCoordination,
    classic,
    consumer_metadata,
    offer,
)
from tests.support.coordination import GROUP, RANGE, Offer


def mixed(**options: Any) -> tuple[ConsumerCoordination, str]:
    """
    A consumer group of a classic member, which has all four partitions, and *new*, which is to get
    two of them.
    """
    c = ConsumerCoordination(**options)
    c.create("t", 4)
    (a,) = classic(c, [0, 1, 2, 3])
    c.enter("new", ["t"])
    return c, a


def rejoin(
    c: ConsumerCoordination, member_id: str, owned: list[int], topics: tuple[str, ...] = ("t",)
) -> JoinGroupResponse:
    return c.join(member_id, protocols=offer(*topics, owned={"t": owned})).now


def code(call: Callable[[], object]) -> type[KafkaError]:
    with pytest.raises(KafkaError) as error:
        call()
    return type(error.value)


def settled() -> tuple[ConsumerCoordination, str, int]:
    """
    The group after both have what they should.
    """
    c, a = mixed()
    rejoin(c, a, [0, 1, 2, 3])
    kept = next(iter(c.assigned(a).values()))
    answer = rejoin(c, a, kept)
    c.sync(a, answer.generation_id)
    c.settle("new")
    assert "Stable" == c.consumers.state_name
    return c, a, answer.generation_id


def names(assignment: bytes) -> dict[str, list[int]]:
    return {t.topic: sorted(t.partitions) for t in assignment_of(assignment).assigned_partitions}


# JoinGroup


def test_classic_join_acts_as_a_heartbeat_with_the_owned_partitions() -> None:
    c, a = mixed()

    answer = rejoin(c, a, [0, 1, 2, 3])
    assert MemberState.UNREVOKED_PARTITIONS is c.member(a).state
    assert 1 == answer.generation_id

    (kept,) = c.assigned(a).values()
    answer = rejoin(c, a, kept)
    assert MemberState.STABLE is c.member(a).state
    assert 2 == answer.generation_id


def test_classic_join_of_a_consumer_group_is_answered_at_once() -> None:
    c, a = mixed()

    answer = rejoin(c, a, [0, 1, 2, 3])

    assert (ErrorCode.NONE, a, "consumer", "range", "", [], False) == (
        answer.error_code,
        answer.member_id,
        answer.protocol_type,
        answer.protocol_name,
        answer.leader,
        answer.members,
        answer.skip_assignment,
    )


def test_classic_join_without_changes_is_answered() -> None:
    c, a, generation = settled()
    (kept,) = c.assigned(a).values()
    rejoin(c, a, kept)
    before = list(c.batches)

    answer = rejoin(c, a, kept)

    assert (ErrorCode.NONE, generation) == (answer.error_code, answer.generation_id)
    assert before == c.batches


def test_new_classic_member_gets_a_member_id_first() -> None:
    c, _ = mixed()
    before = list(c.batches)

    answer = c.join(protocols=offer("t"), version=4).now

    assert ErrorCode.MEMBER_ID_REQUIRED == answer.error_code
    assert answer.member_id
    assert before == c.batches
    joined = c.join(answer.member_id, protocols=offer("t"), version=4).now
    assert (ErrorCode.NONE, answer.member_id) == (joined.error_code, joined.member_id)
    assert answer.member_id in c.consumers.members


def test_classic_member_of_old_versions_joins_without_a_member_id() -> None:
    c, _ = mixed()

    answer = c.join(protocols=offer("t"), version=3).now

    assert ErrorCode.NONE == answer.error_code
    assert answer.member_id in c.consumers.members


def test_classic_static_member_joins_at_once() -> None:
    c, _ = mixed()

    answer = c.join(protocols=offer("t"), instance_id="i").now

    assert ErrorCode.NONE == answer.error_code
    assert {"i": answer.member_id} == c.consumers.static_members


def test_join_version_0_uses_the_session_timeout_for_rebalances() -> None:
    c, _ = mixed()

    answer = c.join(
        protocols=offer("t"), version=0, rebalance_timeout_ms=-1, session_timeout_ms=7_000
    ).now

    assert 7_000 == c.member(answer.member_id).rebalance_timeout_ms
    c.advance(6_999)
    assert answer.member_id in c.consumers.members


def test_metadata_of_a_classic_member_is_kept() -> None:
    c, _ = mixed()
    metadata = consumer_metadata(["t", "u"], rack_id="r")

    answer = c.join(
        protocols=(("range", metadata), ("own", b"")),
        instance_id="i",
        session_timeout_ms=7_000,
        rebalance_timeout_ms=8_000,
        client_id="other",
    ).now

    member = c.member(answer.member_id)
    assert ("i", "r", 8_000, "other", frozenset({"t", "u"}), "") == (
        member.instance_id,
        member.rack_id,
        member.rebalance_timeout_ms,
        member.client_id,
        member.topic_names,
        member.topic_regex,
    )
    assert member.classic is not None
    assert (7_000, (("range", metadata), ("own", b""))) == (
        member.classic.session_timeout_ms,
        member.classic.protocols,
    )


def test_changed_topics_of_a_classic_member_begin_an_epoch() -> None:
    c, a, generation = settled()
    c.create("u", 2)
    (kept,) = c.assigned(a).values()

    answer = rejoin(c, a, kept, ("t", "u"))

    assert [f"5 {a}", "3"] == c.last[:2]
    assert generation + 1 == c.consumers.group_epoch
    assert generation == answer.generation_id  # it has to give up first, or to wait


@pytest.mark.parametrize(
    ("protocols", "protocol_type"),
    [(offer("t"), "connect"), ((("roundrobin", consumer_metadata("t")),), "consumer")],
)
def test_classic_member_needs_a_protocol_common_to_all(
    protocols: Offer, protocol_type: str
) -> None:
    c, _ = mixed()

    assert InconsistentGroupProtocol is code(
        lambda: c.join("b", protocols=protocols, protocol_type=protocol_type)
    )


def test_one_common_protocol_is_enough() -> None:
    c, _ = mixed()

    answer = c.join("b", protocols=(("x", consumer_metadata("t")), *offer("t")[1:])).now

    assert (ErrorCode.NONE, "x") == (answer.error_code, answer.protocol_name)
    # Now only the second one is common to all.
    assert InconsistentGroupProtocol is code(lambda: c.join("d", protocols=offer("t")[:1]))
    c.join("d", protocols=offer("t")[1:])


def test_first_classic_member_may_have_any_protocol() -> None:
    c = ConsumerCoordination()
    c.enter("new", ["t"])

    answer = c.join("b", protocols=(("x", consumer_metadata("t")),)).now

    assert ErrorCode.NONE == answer.error_code


def test_classic_member_cannot_join_if_migration_is_disabled() -> None:
    c = ConsumerCoordination(group_consumer_migration_policy="disabled")
    c.enter("new", ["t"])

    assert InconsistentGroupProtocol is code(lambda: c.join("b", protocols=offer("t")))


@pytest.mark.parametrize("policy", ["upgrade", "downgrade"])
def test_one_direction_of_migration_allows_classic_members(policy: str) -> None:
    c = ConsumerCoordination(group_consumer_migration_policy=policy)
    c.enter("new", ["t"])

    assert ErrorCode.NONE == c.join("b", protocols=offer("t")).now.error_code


def test_group_max_size_counts_members_of_both_protocols() -> None:
    c, a = mixed(group_consumer_max_size=2)

    assert GroupMaxSizeReached is code(lambda: c.join("b", protocols=offer("t")))
    assert ErrorCode.NONE == rejoin(c, a, []).error_code


def test_group_max_size_is_checked_before_the_protocols() -> None:
    c, _ = mixed(group_consumer_max_size=2)

    assert GroupMaxSizeReached is code(lambda: c.join("b", protocol_type="connect"))


def test_malformed_subscription_metadata_is_refused() -> None:
    c, _ = mixed()

    assert UnknownServerError is code(lambda: c.join("b", protocols=RANGE))


def test_unknown_member_is_reported_before_malformed_metadata() -> None:
    c, _ = mixed()

    assert UnknownMemberId is code(lambda: c.join("b", protocols=RANGE, instance_id="i"))


def test_unknown_static_member_with_a_member_id_is_refused() -> None:
    c, _ = mixed()

    assert UnknownMemberId is code(lambda: c.join("b", protocols=offer("t"), instance_id="i"))


def test_other_member_id_of_a_static_member_is_fenced() -> None:
    c, _ = mixed()
    c.join(protocols=offer("t"), instance_id="i")

    assert FencedInstanceId is code(lambda: c.join("b", protocols=offer("t"), instance_id="i"))


def test_static_classic_member_replaces_the_previous_one() -> None:
    c, _ = mixed()
    old = c.join(protocols=offer("t"), instance_id="i").now.member_id

    new = c.join(protocols=offer("t"), instance_id="i").now.member_id

    assert new != old
    assert {"i": new} == c.consumers.static_members
    assert [f"-8 {old}", f"-7 {old}", f"-5 {old}", f"5 {new}", f"7 {new}", f"8 {new}"] == c.last[:6]


def test_classic_member_replaces_a_static_consumer() -> None:
    """
    Others of the consumer protocol are there: the group stays one of consumers.
    """
    c = ConsumerCoordination()
    topic_id = c.create("t", 2)
    c.enter("a", ["t"], instance_id="i")
    c.enter("b", ["u"])
    c.settle("a", "b")

    answer = c.join(protocols=offer("t"), instance_id="i").now

    assert {topic_id: [0, 1]} == c.assigned(answer.member_id)
    assert {"b", answer.member_id} == set(c.consumers.members)
    assert 1 == c.consumers.classic_member_count


def test_pattern_of_a_replaced_static_consumer_is_removed() -> None:
    c = ConsumerCoordination()
    c.create("t", 2)
    c.enter("a", None, regex="t.*", instance_id="i")
    c.enter("b", ["u"])
    c.executor.do()

    answer = c.join(protocols=offer("t"), instance_id="i").now

    assert "" == c.member(answer.member_id).topic_regex
    assert {} == c.consumers.subscriptions.resolved
    assert "-16" in c.last


def test_join_that_cannot_be_written_is_refused() -> None:
    c, _ = mixed()
    c.append_error = ErrorCode.NOT_LEADER_OR_FOLLOWER

    answer = c.join("b", protocols=offer("t")).now

    assert (ErrorCode.NOT_COORDINATOR, "") == (answer.error_code, answer.member_id)
    assert "b" not in c.consumers.members


def test_join_is_answered_once_it_is_written() -> None:
    c, _ = mixed()
    c.is_slow = True

    answer = c.join("b", protocols=offer("t"))
    assert answer.is_parked
    c.commit()

    assert ErrorCode.NONE == answer.now.error_code


def test_classic_member_may_switch_to_the_consumer_protocol() -> None:
    """
    Under the same id, which no client does.
    """
    c, a = mixed()

    c.enter(a, ["t"])

    assert None is c.member(a).classic
    assert {} == dict(c.consumers.classic_protocols)


# SyncGroup


def test_sync_returns_the_assignment_of_the_member() -> None:
    c, a = mixed()
    answer = rejoin(c, a, [0, 1, 2, 3])
    (kept,) = c.assigned(a).values()

    synced = c.sync(a, answer.generation_id, protocol_type="consumer", protocol_name="range").now

    assert (ErrorCode.NONE, "consumer", "range") == (
        synced.error_code,
        synced.protocol_type,
        synced.protocol_name,
    )
    assert {"t": kept} == names(synced.assignment)


@pytest.mark.parametrize("version", range(4))
def test_assignment_has_the_version_of_the_subscription(version: int) -> None:
    c = ConsumerCoordination()
    c.create("t", 4)
    (a,) = classic(c, [0, 1, 2, 3], version=version)
    c.enter("new", ["u"])

    join = c.join(a, protocols=offer("t", owned={"t": [0, 1, 2, 3]}, version=version)).now
    synced = c.sync(a, join.generation_id).now

    assert version == version_of(synced.assignment)
    assert {"t": [0, 1, 2, 3]} == names(synced.assignment)


def test_deleted_topics_are_not_assigned() -> None:
    c, a, generation = settled()
    c.topics.remove("t")

    assert {} == names(c.sync(a, generation).now.assignment)


def test_sync_of_another_generation_is_refused() -> None:
    c, a, generation = settled()

    for wrong in (generation - 1, generation + 1):
        assert IllegalGeneration is code(partial(c.sync, a, wrong))


@pytest.mark.parametrize(
    "facts", [{"protocol_type": "connect"}, {"protocol_name": "cooperative-sticky"}]
)
def test_sync_must_name_the_protocol_of_the_join(facts: dict[str, str]) -> None:
    c, a, generation = settled()

    assert InconsistentGroupProtocol is code(lambda: c.sync(a, generation, **facts))  # type: ignore[arg-type]


def test_sync_is_refused_once_there_is_another_assignment() -> None:
    c, a, generation = settled()
    c.enter("newer", ["t"])

    assert RebalanceInProgress is code(lambda: c.sync(a, generation))


def test_revoking_member_is_told_what_it_keeps() -> None:
    """
    Whatever has been assigned since: it joins again after its revocation.
    """
    c, a = mixed()
    answer = rejoin(c, a, [0, 1, 2, 3])

    assert ErrorCode.NONE == c.sync(a, answer.generation_id).now.error_code
    assert c.consumers.assignment_epoch > c.member(a).member_epoch


def test_sync_of_other_members_is_refused() -> None:
    c, _, generation = settled()
    c.join(protocols=offer("t"), instance_id="i")

    assert UnknownMemberId is code(lambda: c.sync("nobody", generation))
    assert UnknownMemberId is code(lambda: c.sync("new", c.member("new").member_epoch))
    assert UnknownMemberId is code(lambda: c.sync("x", 1, instance_id="j"))
    assert FencedInstanceId is code(lambda: c.sync("x", 1, instance_id="i"))


def test_sync_with_an_empty_group_is_refused() -> None:
    c = ConsumerCoordination()
    c.enter("a")
    c.go("a")

    assert ErrorCode.UNKNOWN_MEMBER_ID == sync_code(c)


def sync_code(c: ConsumerCoordination) -> ErrorCode:
    try:
        return ErrorCode(c.sync("a", 1).now.error_code)
    except KafkaError as error:
        return ErrorCode(error.code)


# Heartbeat


def test_heartbeat_of_a_stable_classic_member_succeeds() -> None:
    c, a, generation = settled()

    c.heartbeat(a, generation)


def test_new_assignment_requests_a_rejoin_by_heartbeat() -> None:
    c, a, generation = settled()
    c.enter("newer", ["t"])

    assert RebalanceInProgress is code(lambda: c.heartbeat(a, generation))


def test_pending_revocation_requests_a_rejoin_by_heartbeat() -> None:
    c, a = mixed()
    generation = rejoin(c, a, [0, 1, 2, 3]).generation_id

    assert RebalanceInProgress is code(lambda: c.heartbeat(a, generation))


def test_released_partitions_request_a_rejoin_of_the_waiting_member() -> None:
    c = ConsumerCoordination()
    c.create("t", 2)
    c.enter("a", ["t"])
    (b,) = [c.join("b", protocols=offer("t")).now]
    assert MemberState.UNRELEASED_PARTITIONS is c.member("b").state
    c.sync("b", b.generation_id)

    c.heartbeat("b", b.generation_id)
    c.report("a")
    c.report("a")

    assert RebalanceInProgress is code(lambda: c.heartbeat("b", b.generation_id))


def test_heartbeats_of_other_members_are_refused() -> None:
    c, a, generation = settled()
    c.join(protocols=offer("t"), instance_id="i")

    assert UnknownMemberId is code(lambda: c.heartbeat("nobody", 1))
    assert UnknownMemberId is code(lambda: c.heartbeat("new", c.member("new").member_epoch))
    assert IllegalGeneration is code(lambda: c.heartbeat(a, generation + 1))
    assert UnknownMemberId is code(lambda: c.heartbeat("x", 1, instance_id="j"))
    assert FencedInstanceId is code(lambda: c.heartbeat("x", 1, instance_id="i"))


# Timeouts


def test_classic_member_has_its_own_session_timeout() -> None:
    c, a, generation = settled()
    for _ in range(3):
        c.advance(9_999)
        c.heartbeat(a, generation)
        c.report("new")

    c.advance(9_999)
    assert a in c.consumers.members
    c.advance(1)

    assert ["new"] == list(c.consumers.members)


def test_heartbeat_that_requests_a_rejoin_extends_the_session() -> None:
    c, a, generation = settled()
    c.enter("newer", ["t"])
    c.advance(9_999)
    code(lambda: c.heartbeat(a, generation))

    c.advance(9_999)

    assert a in c.consumers.members


def test_joins_and_syncs_extend_the_session() -> None:
    c, a, generation = settled()
    (kept,) = c.assigned(a).values()
    c.advance(9_999)
    rejoin(c, a, kept)
    c.advance(9_999)
    c.sync(a, generation)

    c.advance(9_999)
    assert a in c.consumers.members
    c.advance(1)
    assert a not in c.consumers.members


def test_member_asked_to_rejoin_is_removed_after_the_rebalance_timeout() -> None:
    """
    It counts from the first request, even though the member sends heartbeats.
    """
    c, a, generation = settled()
    c.enter("newer", ["t"])
    for _ in range(6):
        code(lambda: c.heartbeat(a, generation))
        c.report("new")
        c.report("newer")
        assert a in c.consumers.members
        c.advance(9_999)
    assert a in c.consumers.members
    code(lambda: c.heartbeat(a, generation))

    c.advance(6)

    assert a not in c.consumers.members


def test_joined_member_must_sync_within_the_rebalance_timeout() -> None:
    c, a, generation = settled()
    (kept,) = c.assigned(a).values()
    rejoin(c, a, kept)
    for _ in range(6):
        c.advance(9_999)
        c.heartbeat(a, generation)
        c.report("new")
    assert a in c.consumers.members

    c.advance(6)

    assert a not in c.consumers.members


def test_join_and_sync_end_the_rebalance_timeout() -> None:
    c, a, generation = settled()
    c.enter("newer", ["t"])
    code(lambda: c.heartbeat(a, generation))
    (kept,) = c.assigned(a).values()
    rejoin(c, a, kept)
    (kept,) = c.assigned(a).values()
    generation = rejoin(c, a, kept).generation_id
    c.sync(a, generation)
    c.settle("new", "newer")
    for _ in range(10):
        c.advance(9_999)
        with_calls = [each for each in (a,) if each in c.consumers.members]
        assert with_calls
        c.heartbeat(a, generation)
        c.report("new")
        c.report("newer")


def test_refused_sync_starts_the_wait_for_the_next_join() -> None:
    c, a, generation = settled()
    c.enter("newer", ["t"])
    code(lambda: c.sync(a, generation))
    for _ in range(6):
        c.advance(9_999)
        c.report("new")
        c.report("newer")
        if a in c.consumers.members:
            code(lambda: c.heartbeat(a, generation))

    c.advance(6)

    assert a not in c.consumers.members


def test_classic_member_has_no_separate_revocation_timeout() -> None:
    """
    Its join and its sync are waited for.
    """
    c, a = mixed()
    rejoin(c, a, [0, 1, 2, 3])
    assert MemberState.UNREVOKED_PARTITIONS is c.member(a).state

    c.sync(a, 1)
    assert not [key for key in c.queue._timers if key[0].value == "rebalance"]


# LeaveGroup


def test_members_of_both_protocols_can_be_removed() -> None:
    c, a, _ = settled()
    c.enter("static", ["t"], instance_id="i")
    c.enter("stays", ["t"])

    answer = c.leave(a, ("", "i"), ("x", "j"), "nobody", ("x", "i"), ("new", None))

    assert [0, 0, 25, 25, 82, 0] == [member.error_code for member in answer.members]
    assert [a, "", "x", "nobody", "x", "new"] == [member.member_id for member in answer.members]
    assert ["stays"] == list(c.consumers.members)


def test_several_removals_make_one_epoch() -> None:
    c, _, _ = settled()
    c.enter("b", ["t"])
    epoch = c.consumers.group_epoch

    c.leave("b", "b", "new")

    assert ["-8 b", "-7 b", "-5 b", "-8 new", "-7 new", "-5 new"] != c.last
    assert epoch == c.group.generation_id


def test_removal_without_members_writes_nothing() -> None:
    c, _, _ = settled()
    before = list(c.batches)

    answer = c.leave("nobody")

    assert ErrorCode.NONE == answer.error_code
    assert before == c.batches


def test_consumer_group_appears_in_no_classic_response() -> None:
    c = ConsumerCoordination()
    c.enter("a")

    assert UnknownMemberId is code(lambda: c.heartbeat("b", 1, group_id=GROUP))


def test_classic_member_revokes_unsubscribed_topics_at_once() -> None:
    """
    Before there is another assignment; it is asked to rejoin to confirm.
    """
    c = ConsumerCoordination(interval_ms=15_000)
    c.create("t", 1)
    other_id = c.create("u", 1)
    c.enter("new", [])
    metadata = offer("t", "u")
    generation = c.join("a", protocols=metadata).now.generation_id
    c.sync("a", generation)
    assert 2 == len(c.assigned("a"))

    answer = c.join("a", protocols=offer("u", owned={"t": [0], "u": [0]})).now

    assert {other_id: [0]} == c.assigned("a")
    assert (generation, MemberState.UNREVOKED_PARTITIONS) == (
        answer.generation_id,
        c.member("a").state,
    )
    assert c.consumers.assignment_epoch == generation
    assert RebalanceInProgress is code(lambda: c.heartbeat("a", generation))


def test_removed_pattern_begins_an_epoch() -> None:
    """
    Even if the topic names stay the same.
    """
    c = ConsumerCoordination()
    c.create("t", 1)
    c.enter("a", ["t"], regex="u.*", instance_id="i")
    c.enter("b", ["t"])
    c.settle("a", "b")
    epoch = c.consumers.group_epoch

    c.join(protocols=offer("t"), instance_id="i")

    assert epoch + 1 == c.consumers.group_epoch
