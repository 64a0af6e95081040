"""
Members of the classic protocol inside consumer groups.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import pytest

from barnabas.coordination.groups.classic.subscriptions import assignment_of, version_of
from barnabas.coordination.groups.consumer.member import MemberState
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
from tests.support.attributes import assert_has
from tests.support.consumer_groups import ConsumerCoordination, classic, consumer_metadata, offer
from tests.support.coordination import RANGE


def mixed(**options: Any) -> tuple[ConsumerCoordination, str]:
    """
    A consumer group of a classic member, which has all four partitions, and *new*, which is to get
    two of them.
    """
    c = ConsumerCoordination({"t": 4}, **options)
    (a,) = classic(c, [0, 1, 2, 3])
    c.enter("new", ["t"])
    return c, a


def rejoin(
    c: ConsumerCoordination, member_id: str, owned: list[int], topics: tuple[str, ...] = ("t",)
) -> JoinGroupResponse:
    return c.join(member_id, protocols=offer(*topics, owned={"t": owned})).now


def code(call: Callable[[], object]) -> type[KafkaError] | None:
    try:
        call()
    except KafkaError as error:
        return type(error)
    return None


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


@pytest.mark.parametrize(
    ("facts", "static"),
    [({"version": 3}, False), ({"instance_id": "i"}, True)],
    ids=["old version", "static"],
)
def test_old_and_static_classic_members_join_at_once(facts: dict[str, Any], static: bool) -> None:
    c, _ = mixed()

    answer = c.join(protocols=offer("t"), **facts).now

    assert ErrorCode.NONE == answer.error_code
    assert answer.member_id in c.consumers.members
    assert ({"i": answer.member_id} if static else {}) == c.consumers.static_members


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
    ("size", "facts", "error"),
    [
        (10, {"protocols": offer("t"), "protocol_type": "connect"}, InconsistentGroupProtocol),
        (10, {"protocols": (("x", consumer_metadata("t")),)}, InconsistentGroupProtocol),
        (2, {"protocols": offer("t")}, GroupMaxSizeReached),
        (2, {"protocol_type": "connect"}, GroupMaxSizeReached),
        (10, {"protocols": RANGE}, UnknownServerError),
        (10, {"protocols": RANGE, "instance_id": "i"}, UnknownMemberId),
        (10, {"protocols": offer("t"), "instance_id": "i"}, UnknownMemberId),
        (10, {"protocols": offer("t"), "instance_id": "j"}, FencedInstanceId),
    ],
    ids=[
        "another protocol type",
        "no common protocol",
        "members of both protocols fill the group",
        "full group before the protocol type",
        "malformed subscription",
        "unknown member before the malformed subscription",
        "unknown static member with a member id",
        "other member id of a static member",
    ],
)
def test_join_of_a_classic_member_is_refused(
    size: int, facts: dict[str, Any], error: type[KafkaError]
) -> None:
    c, a = mixed(group_consumer_max_size=size)
    if size > 2:
        c.join(protocols=offer("t"), instance_id="j")

    assert error is code(lambda: c.join("b", **facts))
    assert ErrorCode.NONE == rejoin(c, a, []).error_code


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


@pytest.mark.parametrize(
    ("policy", "error"),
    [("disabled", InconsistentGroupProtocol), ("upgrade", None), ("downgrade", None)],
)
def test_one_direction_of_migration_allows_classic_members(
    policy: str, error: type[KafkaError] | None
) -> None:
    c = ConsumerCoordination(group_consumer_migration_policy=policy)
    c.enter("new", ["t"])

    assert error is code(lambda: c.join("b", protocols=offer("t")))


def test_static_classic_member_replaces_the_previous_one() -> None:
    c, _ = mixed()
    old = c.join(protocols=offer("t"), instance_id="i").now.member_id

    new = c.join(protocols=offer("t"), instance_id="i").now.member_id

    assert new != old
    assert {"i": new} == c.consumers.static_members
    assert [f"-8 {old}", f"-7 {old}", f"-5 {old}", f"5 {new}", f"7 {new}", f"8 {new}"] == c.last[:6]


def test_classic_member_replaces_a_static_consumer() -> None:
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
    c = ConsumerCoordination({"t": 2})
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
    # No client does this.
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

    assert_has(synced, error_code=ErrorCode.NONE, protocol_type="consumer", protocol_name="range")
    assert {"t": kept} == names(synced.assignment)


@pytest.mark.parametrize("version", range(4))
def test_assignment_has_the_version_of_the_subscription(version: int) -> None:
    c = ConsumerCoordination({"t": 4})
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


Call: TypeAlias = "Callable[[ConsumerCoordination, str, int], object]"
REFUSED: dict[str, tuple[Call, type[KafkaError]]] = {
    "sync of an earlier generation": (lambda c, a, g: c.sync(a, g - 1), IllegalGeneration),
    "sync of a later generation": (lambda c, a, g: c.sync(a, g + 1), IllegalGeneration),
    "sync with another protocol type": (
        lambda c, a, g: c.sync(a, g, protocol_type="connect"),
        InconsistentGroupProtocol,
    ),
    "sync with another protocol": (
        lambda c, a, g: c.sync(a, g, protocol_name="cooperative-sticky"),
        InconsistentGroupProtocol,
    ),
    "sync of an unknown member": (lambda c, _, g: c.sync("nobody", g), UnknownMemberId),
    "sync of a consumer": (lambda c, _, g: c.sync("new", epoch_of_new(c)), UnknownMemberId),
    "sync of an unknown instance": (
        lambda c, _, g: c.sync("x", 1, instance_id="j"),
        UnknownMemberId,
    ),
    "sync of a fenced member": (
        lambda c, _, g: c.sync("x", 1, instance_id="i"),
        FencedInstanceId,
    ),
    "heartbeat of an unknown member": (lambda c, _, g: c.heartbeat("nobody", 1), UnknownMemberId),
    "heartbeat of a consumer": (
        lambda c, _, g: c.heartbeat("new", epoch_of_new(c)),
        UnknownMemberId,
    ),
    "heartbeat of a later generation": (lambda c, a, g: c.heartbeat(a, g + 1), IllegalGeneration),
    "heartbeat of an unknown instance": (
        lambda c, _, g: c.heartbeat("x", 1, instance_id="j"),
        UnknownMemberId,
    ),
    "heartbeat of a fenced member": (
        lambda c, _, g: c.heartbeat("x", 1, instance_id="i"),
        FencedInstanceId,
    ),
}


def epoch_of_new(c: ConsumerCoordination) -> int:
    return c.member("new").member_epoch


@pytest.mark.parametrize(("call", "error"), REFUSED.values(), ids=list(REFUSED))
def test_requests_of_other_members_and_generations_are_refused(
    call: Call, error: type[KafkaError]
) -> None:
    c, a, generation = settled()
    c.join(protocols=offer("t"), instance_id="i")

    assert error is code(lambda: call(c, a, generation))


def test_another_assignment_requests_a_rejoin() -> None:
    c, a, generation = settled()
    c.heartbeat(a, generation)
    c.enter("newer", ["t"])

    assert RebalanceInProgress is code(lambda: c.sync(a, generation))
    assert RebalanceInProgress is code(lambda: c.heartbeat(a, generation))


def test_revoking_member_syncs_and_is_requested_to_rejoin() -> None:
    # The member rejoins after its revocation, so a later assignment does not matter.
    c, a = mixed()
    generation = rejoin(c, a, [0, 1, 2, 3]).generation_id

    assert ErrorCode.NONE == c.sync(a, generation).now.error_code
    assert c.consumers.assignment_epoch > c.member(a).member_epoch
    assert RebalanceInProgress is code(lambda: c.heartbeat(a, generation))


def test_sync_with_an_empty_group_is_refused() -> None:
    c = ConsumerCoordination()
    c.enter("a")
    c.go("a")

    assert ErrorCode.UNKNOWN_MEMBER_ID == c.sync("a", 1).now.error_code


def test_released_partitions_request_a_rejoin_of_the_waiting_member() -> None:
    c = ConsumerCoordination.of("a")
    generation = c.join("b", protocols=offer("t")).now.generation_id
    assert MemberState.UNRELEASED_PARTITIONS is c.member("b").state
    c.sync("b", generation)

    c.heartbeat("b", generation)
    c.report("a")
    c.report("a")

    assert RebalanceInProgress is code(lambda: c.heartbeat("b", generation))


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


def test_join_and_sync_end_the_rebalance_timeout() -> None:
    c, a, generation = settled()
    c.enter("newer", ["t"])
    code(lambda: c.heartbeat(a, generation))
    for _ in range(2):
        (kept,) = c.assigned(a).values()
        generation = rejoin(c, a, kept).generation_id
    c.sync(a, generation)
    c.settle("new", "newer")
    for _ in range(10):
        c.advance(9_999)
        c.heartbeat(a, generation)
        c.report("new")
        c.report("newer")


@pytest.mark.parametrize(
    ("others", "begin"),
    [
        (["new", "newer"], lambda c, a, generation: c.heartbeat(a, generation)),
        (["new", "newer"], lambda c, a, generation: c.sync(a, generation)),
        (["new"], lambda c, a, generation: rejoin(c, a, *c.assigned(a).values())),
    ],
    ids=["refused heartbeat", "refused sync", "join without a sync"],
)
def test_member_in_a_rebalance_is_removed_after_its_timeout_despite_heartbeats(
    others: list[str], begin: Call
) -> None:
    c, a, generation = settled()
    if "newer" in others:
        c.enter("newer", ["t"])
    code(lambda: begin(c, a, generation))
    for _ in range(6):
        c.advance(9_999)
        code(lambda: c.heartbeat(a, generation))
        for member_id in others:
            c.report(member_id)
    assert a in c.consumers.members

    c.advance(6)

    assert a not in c.consumers.members


def test_classic_member_has_no_separate_revocation_timeout() -> None:
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
    epoch = c.consumers.group_epoch

    answer = c.leave(a, ("", "i"), ("x", "j"), "nobody", ("x", "i"), ("new", None))

    assert [0, 0, 25, 25, 82, 0] == [member.error_code for member in answer.members]
    assert [a, "", "x", "nobody", "x", "new"] == [member.member_id for member in answer.members]
    assert ["stays"] == list(c.consumers.members)
    assert epoch + 1 == c.consumers.group_epoch


def test_removal_without_members_writes_nothing() -> None:
    c, _, _ = settled()
    before = list(c.batches)

    answer = c.leave("nobody")

    assert ErrorCode.NONE == answer.error_code
    assert before == c.batches


def test_classic_member_revokes_unsubscribed_topics_at_once() -> None:
    c = ConsumerCoordination({"t": 1}, interval_ms=15_000)
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
    c = ConsumerCoordination({"t": 1})
    c.enter("a", ["t"], regex="u.*", instance_id="i")
    c.enter("b", ["t"])
    c.settle("a", "b")
    epoch = c.consumers.group_epoch

    c.join(protocols=offer("t"), instance_id="i")

    assert epoch + 1 == c.consumers.group_epoch
