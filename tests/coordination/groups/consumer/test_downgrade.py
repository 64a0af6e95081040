"""
Consumer groups that become classic groups while they are alive.
"""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.coordination.groups.classic.state import GroupState
from barnabas.coordination.groups.classic.subscriptions import assignment_of, version_of
from barnabas.coordination.groups.consumer.group import ConsumerGroup
from barnabas.coordination.groups.records import GroupRecord
from barnabas.protocol.errors import ErrorCode, RebalanceInProgress
from tests.support.consumer_groups import ConsumerCoordination, classic, consumer_metadata, offer
from tests.support.coordination import GROUP, Offer, durable


def mixed(*assigned: list[int], **options: Any) -> tuple[ConsumerCoordination, list[str]]:
    """
    A consumer group of classic members, and *new*.
    """
    c = ConsumerCoordination({"t": 4}, **options)
    ids = classic(c, *(assigned or ([0, 1], [2, 3])))
    c.enter("new", ["t"])
    return c, ids


def is_classic(c: ConsumerCoordination) -> bool:
    return not isinstance(c.state.groups.get(GROUP), ConsumerGroup)


def static_mixed(**options: Any) -> tuple[ConsumerCoordination, str]:
    """
    A classic member with *u*, and the static consumer *new* with *t*.
    """
    c = ConsumerCoordination({"t": 4, "u": 1}, **options)
    c.enter("new", ["t"], instance_id="i")
    c.enter("other", ["u"])
    a = "a"
    c.join(a, protocols=offer("u"))
    c.go("other")
    c.settle("new")
    c.join(a, protocols=offer("u"))
    return c, a


def test_last_leaving_consumer_downgrades_the_group() -> None:
    c, ids = mixed()
    epoch = c.consumers.group_epoch
    targets = {member_id: c.target(member_id) for member_id in ids}

    answer = c.go("new")

    assert -1 == answer.member_epoch
    group = c.group
    assert set(ids) == set(group.members)
    assert (epoch, "consumer", "range", GroupState.PREPARING_REBALANCE) == (
        group.generation_id,
        group.protocol_type,
        group.protocol_name,
        group.state,
    )
    for member_id in ids:
        member = group.members[member_id]
        assert (10_000, 60_000, "client", "/127.0.0.1") == (
            member.session_timeout_ms,
            member.rebalance_timeout_ms,
            member.client_id,
            member.client_host,
        )
        assert offer("t") == tuple((p.name, p.metadata) for p in member.protocols)
        (assigned,) = assignment_of(member.assignment).assigned_partitions
        assert ("t", list(targets[member_id].values())) == (
            assigned.topic,
            [sorted(assigned.partitions)],
        )
    assert frozenset({"t"}) == group.subscribed_topics


def test_downgrade_records_are_in_kafkas_order() -> None:
    c, ids = mixed()
    members = c.consumers.members_in_order()
    assert {*ids, "new"} == set(members)

    c.go("new")

    assert c.last == [
        *(f"-8 {member_id}" for member_id in members),
        *(f"-7 {member_id}" for member_id in members),
        "-6",
        *(f"-5 {member_id}" for member_id in members),
        "-4",
        "-3",
        "2",
    ]
    (record,) = [record for record in c.batches[-1] if isinstance(record, GroupRecord)]
    assert record.value is not None
    first = next(member_id for member_id in members if member_id != "new")
    assert (first, c.now_ms) == (record.value.leader, record.value.current_state_timestamp)


def test_downgrade_deletes_patterns() -> None:
    c, _ = mixed()
    c.beat("new", c.epoch("new"), regex="t.*")
    c.executor.do()

    c.go("new")

    assert "-16" in c.last


def test_downgrade_survives_a_replay() -> None:
    c, ids = mixed()

    c.go("new")

    replayed = durable(c.replayed())["groups"][GROUP]
    assert set(ids) == set(replayed.members)
    assert (c.group.generation_id, GroupState.STABLE) == (replayed.generation_id, replayed.state)


def test_classic_members_rebalance_after_a_downgrade() -> None:
    c, ids = mixed()
    epoch = c.consumers.group_epoch
    c.go("new")

    for member_id in ids:
        with pytest.raises(RebalanceInProgress):
            c.heartbeat(member_id, epoch)
    joins = [c.join(member_id, protocols=offer("t")) for member_id in ids]

    assert {epoch + 1} == {join.now.generation_id for join in joins}
    assert {join.now.leader for join in joins} < set(ids)


def test_expired_session_of_the_last_consumer_downgrades_the_group() -> None:
    c, ids = mixed()
    for _ in range(9):
        c.advance(5_000)
        for member_id in ids if not is_classic(c) else ():
            rejoin(c, member_id)

    assert is_classic(c)
    assert "new" not in c.group.members


def rejoin(c: ConsumerCoordination, member_id: str) -> None:
    owned = [p for partitions in c.assigned(member_id).values() for p in partitions]
    answer = c.join(member_id, protocols=offer("t", owned={"t": owned}))
    c.sync(member_id, answer.now.generation_id)


@pytest.mark.parametrize(
    ("leaving", "is_converted"),
    [(["new"], True), (["new", "first"], True), (["first"], False)],
    ids=["last consumer", "together with a classic member", "only a classic member"],
)
def test_group_without_consumers_becomes_classic(leaving: list[str], is_converted: bool) -> None:
    c, (first, second) = mixed()
    members = {"new": "new", "first": first, "second": second}

    c.leave(*(members.pop(each) for each in leaving))

    assert is_converted == is_classic(c)
    group = c.state.groups.get(GROUP)
    assert group is not None
    assert set(members.values()) == set(group.members)


@pytest.mark.parametrize(
    ("policy", "others"),
    [("bidirectional", ["newer"]), ("upgrade", []), ("UPGRADE", [])],
    ids=["another consumer", "policy", "upper case"],
)
def test_group_stays_a_consumer_group_with_a_consumer_or_by_policy(
    policy: str, others: list[str]
) -> None:
    c, _ = mixed(group_consumer_migration_policy=policy)
    for member_id in others:
        c.enter(member_id, ["t"])

    c.go("new")

    assert not is_classic(c)
    assert ["-8 new", "-7 new", "-5 new", "3"] == c.last


def test_group_too_large_for_classic_is_not_downgraded() -> None:
    c = ConsumerCoordination(group_max_size=1)
    c.enter("new", ["t"])
    for member_id in ("a", "b"):
        c.join(member_id, protocols=offer("t"))

    c.go("new")
    assert not is_classic(c)
    c.leave("a")
    c.enter("new", ["t"])
    c.go("new")

    assert is_classic(c)


@pytest.mark.parametrize("others", [[], ["b"]])
def test_malformed_metadata_of_the_common_protocol_prevents_the_downgrade(
    others: list[str],
) -> None:
    # In Kafka the last consumer could not leave.
    c = ConsumerCoordination()
    c.enter("new", ["t"])
    metadata = consumer_metadata(["t"])
    c.join("a", protocols=(("range", metadata), ("own", b"")))
    for member_id in others:
        c.join(member_id, protocols=(("other", metadata), ("own", b"")))

    c.go("new")

    assert is_classic(c) == (not others)
    members = c.consumers.members if others else c.group.members
    assert {"a", *others} == set(members)


@pytest.mark.parametrize("version", range(4))
def test_downgraded_assignments_have_the_versions_of_the_subscriptions(version: int) -> None:
    c = ConsumerCoordination({"t": 1})
    (a,) = classic(c, [0], version=version)
    c.enter("new", ["u"])

    c.go("new")

    assert version == version_of(c.group.members[a].assignment)


def test_sessions_of_classic_members_restart_with_the_downgrade() -> None:
    c, (a, b) = mixed()
    c.advance(5_000)
    c.go("new")
    epoch = c.group.generation_id

    c.advance(9_999)
    assert {a, b} == set(c.group.members)
    c.join(a, protocols=offer("t"))
    c.advance(1)

    assert [a] == list(c.group.members)
    assert epoch < c.group.generation_id


def test_downgrade_leaves_no_timeout_of_the_consumer_group() -> None:
    c, (a, _) = mixed()
    with pytest.raises(RebalanceInProgress):
        c.heartbeat(a, 1)

    c.go("new")

    left = {(timeout.value, member_id) for timeout, _, member_id in c.queue._timers}
    assert {"heartbeat", "join"} == {timeout for timeout, _ in left}
    assert {"join"} == {timeout for timeout, member_id in left if member_id == ""}


def test_join_round_before_an_upgrade_does_not_end_a_later_one() -> None:
    c = ConsumerCoordination({"t": 4, "u": 1})
    joined = c.join(protocols=offer("t"), instance_id="i")
    c.advance(3_000)
    static = joined.now.member_id
    c.sync(static, 1, {}, instance_id="i")
    c.new_member(protocols=offer("t"))  # begins a round of joins
    assert c.is_in(GroupState.PREPARING_REBALANCE)
    c.enter("new", ["t"], instance_id="i")
    c.settle("new")
    (other,) = [m for m in c.consumers.members if m != "new"]
    while c.consumers.state_name != "Stable":
        rejoin(c, other)
        c.settle("new")
    answer = c.join(protocols=offer("t"), instance_id="i")
    assert ErrorCode.NONE == answer.now.error_code
    assert c.is_in(GroupState.STABLE)
    members = set(c.group.members)
    assert other in members

    for _ in range(12):
        c.advance(5_000)
        for member in list(c.group.members.values()):
            c.heartbeat(member.member_id, c.group.generation_id)

    assert c.is_in(GroupState.STABLE)
    assert members == set(c.group.members)


# A classic member in place of the last, static, consumer


def test_classic_member_replacing_the_last_consumer_downgrades_the_group() -> None:
    c, a = static_mixed()
    epoch = c.consumers.group_epoch
    before = c.consumers.members_in_order()

    answer = c.join(protocols=offer("t"), instance_id="i").now

    new = answer.member_id
    assert (ErrorCode.NONE, epoch) == (answer.error_code, answer.generation_id)
    assert {a, new} == set(c.group.members)
    assert GroupState.STABLE is c.group.state
    renamed = [new if member_id == "new" else member_id for member_id in before]
    replaced = ["-8 new", "-7 new", "-5 new", f"5 {new}", f"7 {new}", f"8 {new}"]
    assert replaced == c.last[:6]
    tombstones = [f"-8 {each}" for each in renamed] + [f"-7 {each}" for each in renamed]
    tombstones += ["-6", *(f"-5 {each}" for each in renamed), "-4", "-3", "2"]
    assert tombstones == c.last[-len(tombstones) :]
    (assigned,) = assignment_of(c.group.members[new].assignment).assigned_partitions
    assert ("t", [0, 1, 2, 3]) == (assigned.topic, sorted(assigned.partitions))
    assert {"i": new} == c.group.static_members
    assert {"heartbeat"} == {timeout.value for timeout, _, _ in c.queue._timers}


def test_sync_returns_the_assignment_of_the_replaced_consumer() -> None:
    c, _ = static_mixed()
    answer = c.join(protocols=offer("t"), instance_id="i").now

    synced = c.sync(answer.member_id, answer.generation_id, instance_id="i").now

    (assigned,) = assignment_of(synced.assignment).assigned_partitions
    assert [0, 1, 2, 3] == sorted(assigned.partitions)


def test_changed_topics_rebalance_the_downgraded_group() -> None:
    c, _ = static_mixed()

    answer = c.join(protocols=offer("t", "u"), instance_id="i").now

    assert ErrorCode.NONE == answer.error_code
    assert GroupState.PREPARING_REBALANCE is c.group.state


OTHER_METADATA = (("other", consumer_metadata(["t"])), (offer("t")[0][0], b""))


@pytest.mark.parametrize(
    ("options", "protocols"),
    [
        ({"group_consumer_migration_policy": "upgrade"}, offer("t")),
        ({"group_max_size": 1}, offer("t")),
        ({}, OTHER_METADATA),
    ],
    ids=["policy", "size", "malformed metadata"],
)
def test_replacement_of_the_last_consumer_may_keep_the_consumer_group(
    options: dict[str, Any], protocols: Offer
) -> None:
    c, a = static_mixed(**options)

    answer = c.join(protocols=protocols, instance_id="i").now

    assert not is_classic(c)
    assert {a, answer.member_id} == set(c.consumers.members)


# Refused appends


def test_downgrade_that_cannot_be_written_leaves_the_consumer_group() -> None:
    c, ids = mixed()
    before = c.consumers
    c.append_error = ErrorCode.NOT_LEADER_OR_FOLLOWER

    c.go("new")

    assert before is c.consumers
    assert {*ids, "new"} == set(before.members)


def test_timeouts_continue_after_a_failed_downgrade() -> None:
    c, ids = mixed()
    c.append_error = ErrorCode.MESSAGE_TOO_LARGE
    c.go("new")
    c.append_error = None

    c.advance(9_999)
    assert {*ids, "new"} == set(c.consumers.members)
    c.advance(1)
    assert {"new"} == set(c.consumers.members)
    c.advance(35_000)
    assert not c.consumers.members


def test_replacement_that_cannot_be_written_is_refused() -> None:
    c, a = static_mixed()
    c.append_error = ErrorCode.NOT_LEADER_OR_FOLLOWER

    answer = c.join(protocols=offer("t"), instance_id="i").now

    assert (ErrorCode.NOT_COORDINATOR, "") == (answer.error_code, answer.member_id)
    assert {a, "new"} == set(c.consumers.members)
    assert {"i": "new"} == c.consumers.static_members
    c.append_error = None
    c.advance(60_000)
    assert not c.consumers.members


def test_member_that_joins_during_a_failed_downgrade_is_told() -> None:
    c, ids = mixed()
    c.is_slow = True
    c.go("new")
    parked = c.join(ids[0], protocols=offer("t"))
    assert parked.is_parked

    c.commit(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    assert ErrorCode.NONE != parked.now.error_code
    assert not is_classic(c)


# Up and down again


def test_downgraded_group_may_be_upgraded_again() -> None:
    c, ids = mixed()
    epoch = c.consumers.group_epoch
    c.go("new")

    c.enter("newer", ["t"])

    assert {*ids, "newer"} == set(c.consumers.members)
    assert epoch + 1 == c.consumers.group_epoch


@pytest.mark.parametrize(
    ("member_id", "error", "refusal"),
    [
        ("", None, None),
        ("", ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_COORDINATOR),
        ("a", None, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
    ids=["new member", "failed write", "known member id"],
)
def test_new_classic_member_replaces_an_empty_consumer_group(
    member_id: str, error: ErrorCode | None, refusal: ErrorCode | None
) -> None:
    c = ConsumerCoordination()
    c.enter("new", ["t"])
    c.go("new")
    c.append_error = error

    answer = c.join(member_id, protocols=offer("t"), version=3)

    is_replaced = refusal is None
    assert is_replaced == is_classic(c) == (["-6", "-4", "-3", "2"] == c.last)
    assert refusal == (None if answer.is_parked else answer.now.error_code)
