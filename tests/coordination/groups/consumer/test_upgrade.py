"""
Classic groups that become consumer groups while they are alive.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, TypeAlias

import pytest

from barnabas.coordination.groups.assignors.java_order.timeline import timeline_order
from barnabas.coordination.groups.classic.group import ClassicGroup
from barnabas.coordination.groups.classic.state import GroupState
from barnabas.coordination.groups.classic.subscriptions import assignment_bytes
from barnabas.coordination.groups.consumer.member import MemberState
from barnabas.coordination.groups.modern.records import ModernRecord, Role
from barnabas.protocol.errors import ErrorCode, GroupIdNotFound, GroupMaxSizeReached
from tests.support.attributes import assert_has
from tests.support.consumer_groups import ROUND_MS, ConsumerCoordination, classic, offer, told
from tests.support.coordination import GROUP
from tests.support.refusals import refusal


def values(c: ConsumerCoordination, role: Role) -> list[Any]:
    records = [record for record in c.batches[-1] if isinstance(record, ModernRecord)]
    return [record.value for record in records if record.role is role]


def before_upgrade(*assigned: list[int], **options: Any) -> tuple[ConsumerCoordination, list[str]]:
    """
    A classic group whose members have these partitions of *t*, before the consumer *new* joins.
    """
    c = ConsumerCoordination({"t": 4}, **options)
    return c, classic(c, *assigned)


def assigned_by_leader(c: ConsumerCoordination, assignment: bytes) -> str:
    member_id, join = c.new_member(protocols=offer("t"))
    c.advance(ROUND_MS)
    c.sync(member_id, join.now.generation_id, {member_id: assignment})
    return member_id


def test_upgraded_group_keeps_members_epoch_and_assignments() -> None:
    c, (a, b) = before_upgrade([0, 1], [2, 3])
    topic_id = c.topic_id()

    c.enter("new", ["t"])

    for member_id, partitions in ((a, [0, 1]), (b, [2, 3])):
        member = c.member(member_id)
        assert_has(member, member_epoch=1, previous_member_epoch=1, state=MemberState.STABLE)
        assert {topic_id: dict.fromkeys(partitions, 1)} == member.assigned
        assert {"t"} == member.topic_names
        assert_has(
            member, rebalance_timeout_ms=60_000, client_id="client", client_host="/127.0.0.1"
        )
        assert member.classic is not None
        assert 10_000 == member.classic.session_timeout_ms
        assert offer("t") == member.classic.protocols
    assert ("new", 2) == (c.member("new").member_id, c.member("new").member_epoch)


def test_upgrade_records_are_in_kafkas_order() -> None:
    c, ids = before_upgrade([0, 1], [2, 3])
    a, b = timeline_order(ids, 2)

    c.enter("new", ["t"])

    made = ["-2", f"5 {a}", f"5 {b}", "3", f"7 {a}", f"7 {b}", "6", f"8 {a}", f"8 {b}"]
    assert made == c.last[: len(made)]
    joined = c.last[len(made) :]
    assert ["5 new", "3"] == joined[:2]
    assert ["6", "8 new"] == joined[-2:]
    first, _ = values(c, Role.EPOCH)
    assert (1, c.subscribed.hash({"t"})) == (first.epoch, first.metadata_hash)
    times = values(c, Role.TARGET_EPOCH)
    assert [(1, 0), (2, c.now_ms)] == [(t.assignment_epoch, t.assignment_timestamp) for t in times]


def test_upgrade_survives_a_replay() -> None:
    c, (a, b) = before_upgrade([0, 1], [2, 3])
    c.enter("new", ["t"])
    before = dict(c.consumers.members)

    c.restart()

    assert before == c.consumers.members
    assert {a, b, "new"} == set(before)


def test_waiting_joins_are_answered_by_an_upgrade() -> None:
    c, (a, _) = before_upgrade([0, 1], [2, 3])
    parked = c.join(a, protocols=offer("t", "u"))
    assert parked.is_parked

    c.enter("new", ["t"])

    assert (ErrorCode.REBALANCE_IN_PROGRESS, a) == (parked.now.error_code, parked.now.member_id)
    assert {a, "new"} < set(c.consumers.members)


def test_waiting_syncs_are_answered_by_an_upgrade() -> None:
    c = ConsumerCoordination({"t": 4})
    joins = [c.new_member(protocols=offer("t")) for _ in range(2)]
    c.advance(ROUND_MS)
    leader = joins[0][1].now.leader
    (follower,) = [member_id for member_id, _ in joins if member_id != leader]
    parked = c.sync(follower, 1)
    assert parked.is_parked

    c.enter("new", ["t"])

    assert ErrorCode.REBALANCE_IN_PROGRESS == parked.now.error_code
    assert {} == c.assigned(follower)


def test_group_in_its_first_join_round_can_be_upgraded() -> None:
    # Kafka fails with UNKNOWN_SERVER_ERROR, as the group has no protocol yet.
    c = ConsumerCoordination({"t": 4})
    member_id, parked = c.new_member(protocols=offer("t"))

    c.enter("new", ["t"])

    assert ErrorCode.REBALANCE_IN_PROGRESS == parked.now.error_code
    assert {member_id, "new"} == set(c.consumers.members)


PLAIN = assignment_bytes([("t", [0])], 0)[:-4]
Arrange: TypeAlias = "Callable[[ConsumerCoordination], object]"
DISABLED = "online upgrade is disabled."
MALFORMED = "the embedded consumer protocol is malformed."
REFUSALS: dict[str, tuple[dict[str, Any], Arrange, str]] = {
    **{
        f"policy {policy}": (
            {"group_consumer_migration_policy": policy},
            lambda c: classic(c, [0]),
            DISABLED,
        )
        for policy in ("disabled", "downgrade", "DOWNGRADE")
    },
    "another protocol type": (
        {},
        lambda c: c.stable(protocol_type="connect"),
        "the group does not use the consumer embedded protocol.",
    ),
    "too many members": (
        {"group_consumer_max_size": 1},
        lambda c: classic(c, [0], [1]),
        "the group size exceeds the consumer group maximum size.",
    ),
    "malformed subscription": ({}, lambda c: c.stable(), MALFORMED),
    "malformed assignment": ({}, lambda c: c.stable(offers=[offer("t")]), MALFORMED),
    # The members would lose the user data.
    "custom assignor with user data": (
        {},
        lambda c: assigned_by_leader(c, PLAIN + b"\0\0\0\1x"),
        "an unsupported custom assignor is in use. Please refer to the documentation or switch to a"
        " default assignor before re-attempting the upgrade.",
    ),
}


@pytest.mark.parametrize(("options", "arrange", "reason"), REFUSALS.values(), ids=list(REFUSALS))
def test_unsuitable_classic_group_is_not_upgraded(
    options: dict[str, Any], arrange: Arrange, reason: str
) -> None:
    c = ConsumerCoordination(**options)
    arrange(c)

    kind, sentence = refusal(lambda: c.enter("new", ["t"]))

    assert GroupIdNotFound is kind
    prefix = f"Cannot upgrade classic group {GROUP} to consumer group because "
    assert prefix + reason == sentence
    assert GroupState.STABLE is c.group.state


@pytest.mark.parametrize("policy", ["upgrade", "bidirectional", "Upgrade"])
def test_migration_policy_may_allow_upgrades(policy: str) -> None:
    c, _ = before_upgrade([0], group_consumer_migration_policy=policy)

    c.enter("new", ["t"])

    assert 2 == len(c.consumers.members)


def test_empty_classic_group_is_replaced_whatever_the_migration_policy() -> None:
    c, (a,) = before_upgrade([0], group_consumer_migration_policy="disabled")
    c.leave(a)

    c.enter("new", ["t"])

    assert ["new"] == list(c.consumers.members)


def test_upgraded_group_at_its_maximum_size_refuses_the_new_member() -> None:
    c, _ = before_upgrade([0], [1], group_consumer_max_size=2)

    with pytest.raises(GroupMaxSizeReached):
        c.enter("new", ["t"])

    assert isinstance(c.state.groups.get(GROUP), ClassicGroup)


def test_empty_user_data_does_not_prevent_the_upgrade() -> None:
    c = ConsumerCoordination()
    a = assigned_by_leader(c, PLAIN + b"\0\0\0\0")

    c.enter("new", ["t"])

    assert a in c.consumers.members


def test_partitions_of_deleted_topics_are_not_taken_over() -> None:
    c = ConsumerCoordination()
    (a,) = classic(c, [0])

    c.enter("new", ["t"])

    assert {} == c.assigned(a)


def test_racks_and_instance_ids_are_taken_over() -> None:
    c = ConsumerCoordination()
    answer = c.join(protocols=offer("t", rack_id="r"), instance_id="i")
    c.advance(ROUND_MS)
    c.sync(answer.now.member_id, 1, {}, instance_id="i")

    c.enter("new", ["t"])

    member = c.member(answer.now.member_id)
    assert ("i", "r") == (member.instance_id, member.rack_id)
    assert {"i": member.member_id} == c.consumers.static_members


def test_consumer_replaces_a_static_classic_member() -> None:
    c = ConsumerCoordination()
    topic_id = c.create("t", 2)
    answer = c.join(protocols=offer("t"), instance_id="i")
    c.advance(ROUND_MS)
    old = answer.now.member_id
    c.sync(old, 1, {old: assignment_bytes([("t", [0, 1])], 3)}, instance_id="i")

    joined = c.enter("new", ["t"], instance_id="i")

    assert {topic_id: [0, 1]} == told(joined)
    assert ["new"] == list(c.consumers.members)
    assert None is c.member("new").classic
    # The subscription is the same: there is no new epoch.
    assert 1 == joined.member_epoch


@pytest.mark.parametrize(("error", "waited_ms"), [(None, 0), (ErrorCode.MESSAGE_TOO_LARGE, 5_000)])
def test_sessions_of_classic_members_continue_after_an_upgrade_or_a_failed_one(
    error: ErrorCode | None, waited_ms: int
) -> None:
    c, (a,) = before_upgrade([0])
    c.advance(waited_ms)
    c.append_error = error
    c.enter("new", ["t"])
    c.append_error = None

    def members() -> Collection[str]:
        group = c.state.groups.get(GROUP)
        assert group is not None
        return group.members

    assert (error is None) == ("new" in members())
    c.advance(9_999 - waited_ms)
    assert a in members()
    c.advance(1)
    assert a not in members()


def test_upgrade_that_cannot_be_written_leaves_the_classic_group() -> None:
    c, (a,) = before_upgrade([0, 1])
    c.append_error = ErrorCode.MESSAGE_TOO_LARGE
    c.enter("new", ["t"])
    c.append_error = None

    assert GroupState.STABLE is c.group.state
    c.heartbeat(a, 1)
    c.advance(9_999)
    assert a in c.group.members


def test_committed_offsets_survive_the_upgrade() -> None:
    c, (a,) = before_upgrade([0])
    c.commit_offsets({("t", 0): 5}, member_id=a, generation_id=1)
    before = sorted(c.state.offsets.committed)

    c.enter("new", ["t"])

    assert before == sorted(c.state.offsets.committed)
    assert before
