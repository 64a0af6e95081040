"""
A consumer group as the sum of its records, and what others see of it.
"""

from __future__ import annotations

import pytest

from barnabas.coordination.groups.consumer.describing import describe, described_error
from barnabas.coordination.groups.consumer.group import ConsumerGroup
from barnabas.coordination.groups.consumer.member import (
    ClassicMember,
    ConsumerGroupMember,
    MemberState,
)
from barnabas.coordination.groups.consumer.records import (
    current_record,
    epoch_record,
    member_record,
    member_tombstones,
    regex_record,
    regex_tombstone,
    target_epoch_record,
    target_record,
)
from barnabas.coordination.groups.modern.records import ModernRecord
from barnabas.coordination.groups.modern.subscriptions import ResolvedRegex
from barnabas.coordination.groups.records import decode_record
from barnabas.coordination.steps import finished
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.internal_topics.group_records import consumer as schemas
from barnabas.protocol.structs import replace
from tests.support.attributes import assert_has
from tests.support.consumer_groups import ConsumerCoordination, classic
from tests.support.coordination import GROUP, TOPIC_ID

FULL = ConsumerGroupMember(
    member_id="m",
    member_epoch=7,
    previous_member_epoch=6,
    instance_id="i",
    rack_id="r",
    rebalance_timeout_ms=123,
    client_id="c",
    client_host="/h",
    topic_names=frozenset({"u", "t"}),
    topic_regex="x.*",
    server_assignor="range",
    state=MemberState.UNREVOKED_PARTITIONS,
    assigned={TOPIC_ID: {3: 5, 1: 6}},
    pending_revocation={TOPIC_ID: {2: 4}},
    classic=ClassicMember(session_timeout_ms=9, protocols=(("range", b"\0\1"), ("own", b""))),
)


def group_of(*records: ModernRecord) -> ConsumerGroup:
    group = ConsumerGroup(GROUP)
    for record in records:
        decoded = decode_record(*record.encode())
        assert isinstance(decoded, ModernRecord)
        group.apply(decoded)
    return group


def test_member_is_rebuilt_from_its_two_records() -> None:
    records = [member_record(GROUP, FULL), current_record(GROUP, FULL)]

    for order in (records, records[::-1]):
        assert FULL == group_of(*order).members["m"]


def test_member_without_an_assignment_has_epoch_0() -> None:
    member = group_of(member_record(GROUP, FULL)).members["m"]

    assert_has(
        member, member_epoch=0, previous_member_epoch=-1, state=MemberState.STABLE, assigned={}
    )


@pytest.mark.parametrize(("epoch", "since"), [(7, 7), (0, 0), (-2, 0)])
@pytest.mark.parametrize("epochs", [None, [4]])
def test_partitions_of_older_records_have_the_epoch_of_their_member(
    epoch: int, since: int, epochs: list[int] | None
) -> None:
    # Records before Kafka 4.3 have no epochs of partitions; a list of another length is ignored.
    key = schemas.ConsumerGroupCurrentMemberAssignmentKey(group_id=GROUP, member_id="m")
    value = schemas.ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=epoch,
        previous_member_epoch=6,
        state=0,
        assigned_partitions=[
            schemas.TopicPartitions(topic_id=TOPIC_ID, partitions=[1, 2], assignment_epochs=epochs)
        ],
        partitions_pending_revocation=[],
    )

    member = group_of(ModernRecord(key, value)).members["m"]

    assert {TOPIC_ID: {1: since, 2: since}} == member.assigned


def test_tombstones_of_unknown_members_change_nothing() -> None:
    group = group_of(epoch_record(GROUP, 5, 9))

    for record in (
        *member_tombstones(GROUP, "m"),
        regex_tombstone(GROUP, "x"),
    ):
        group.apply(record)

    assert {} == group.members
    assert {} == group.targets
    assert not group.is_deleted


def test_member_without_a_current_assignment_owns_nothing() -> None:
    group = group_of(member_record(GROUP, FULL), current_record(GROUP, FULL))
    assert [True, True, True, False] == [group.is_taken(TOPIC_ID, p) for p in (1, 2, 3, 4)]

    group.apply(member_tombstones(GROUP, "m")[0])

    assert_has(
        group.members["m"],
        member_epoch=-1,
        previous_member_epoch=-1,
        assigned={},
        pending_revocation={},
    )
    assert {} == group.owners


def test_moved_partition_is_not_released_by_old_records_of_its_last_owner() -> None:
    # A replaced static member is removed after the new one has its partitions.
    other = replace(FULL, member_id="n", pending_revocation={})
    group = group_of(
        current_record(GROUP, FULL), current_record(GROUP, other), *member_tombstones(GROUP, "m")
    )

    assert {TOPIC_ID: {1: "n", 3: "n"}} == group.owners


def test_target_epochs_are_forgotten_with_the_target() -> None:
    group = group_of(target_epoch_record(GROUP, 5, 99))
    assert (5, 99) == (group.assignment_epoch, group.assignment_timestamp_ms)

    group.apply(group.tombstones()[0])

    assert (-1, 0) == (group.assignment_epoch, group.assignment_timestamp_ms)


def test_group_tombstones_are_in_kafkas_order() -> None:
    group = group_of(
        epoch_record(GROUP, 5, 9),
        member_record(GROUP, FULL),
        regex_record(GROUP, "x.*", ResolvedRegex(frozenset(), 1, 2)),
    )

    numbers = [record.key.api.key for record in group.tombstones()]

    assert [8, 7, 6, 5, 16, 4, 3] == numbers
    assert all(record.value is None for record in group.tombstones())


def test_a_deleted_group_is_deleted() -> None:
    group = group_of(epoch_record(GROUP, 5, 9))

    for record in group.tombstones():
        group.apply(record)

    assert group.is_deleted


def test_group_subscribes_to_names_and_matches() -> None:
    group = group_of(
        member_record(GROUP, FULL),
        regex_record(GROUP, "x.*", ResolvedRegex(frozenset({"x1"}), 1, 2)),
    )

    assert {"t", "u", "x1"} == group.subscribed_topics
    assert [True, True, False] == [group.is_subscribed_to(name) for name in ("t", "x1", "x2")]


# What others see


def test_a_group_is_described() -> None:
    c = ConsumerCoordination()
    topic_id = c.create("t", 2)
    c.enter("a", ["t"], rack_id="r", instance_id="i")
    c.enter("b", ["t", "u"], assignor="range", regex="x")
    c.beat("a", 2)

    shown = finished(describe(c.consumers, c.topics, "uniform"))

    assert (ErrorCode.NONE, GROUP, "Reconciling", 3, 3, "range") == (
        shown.error_code,
        shown.group_id,
        shown.group_state,
        shown.group_epoch,
        shown.assignment_epoch,
        shown.assignor_name,
    )
    a, b = sorted(shown.members, key=lambda member: member.member_id)
    assert ("a", "i", "r", 2, "client", "/127.0.0.1", ["t"], "", 1) == (
        a.member_id,
        a.instance_id,
        a.rack_id,
        a.member_epoch,
        a.client_id,
        a.client_host,
        a.subscribed_topic_names,
        a.subscribed_topic_regex,
        a.member_type,
    )
    # It still has what it is to give up.
    assert c.member("a").pending_revocation
    ((shown_id, name, partitions),) = [
        (each.topic_id, each.topic_name, each.partitions) for each in a.assignment.topic_partitions
    ]
    assert (topic_id, "t", [0, 1]) == (shown_id, name, sorted(partitions))
    (target,) = a.target_assignment.topic_partitions
    assert 1 == len(target.partitions)
    assert (["t", "u"], "x", []) == (
        b.subscribed_topic_names,
        b.subscribed_topic_regex,
        b.assignment.topic_partitions,
    )


def test_empty_group_shows_the_default_assignor() -> None:
    c = ConsumerCoordination()
    c.enter("a")
    c.go("a")

    shown = finished(describe(c.consumers, c.topics, "range"))

    assert ("Empty", "range", []) == (shown.group_state, shown.assignor_name, shown.members)


def test_classic_members_are_described_as_such() -> None:
    c = ConsumerCoordination({"t": 1})
    (a,) = classic(c, [0])
    c.enter("new", ["u"])

    shown = finished(describe(c.consumers, c.topics, "uniform"))

    assert {a: 0, "new": 1} == {member.member_id: member.member_type for member in shown.members}


def test_deleted_topics_are_not_described() -> None:
    c = ConsumerCoordination.of("a", partitions=1)
    c.topics.remove("t")

    (member,) = finished(describe(c.consumers, c.topics, "uniform")).members

    assert [] == member.assignment.topic_partitions
    assert [] == member.target_assignment.topic_partitions


def test_group_that_cannot_be_described_has_an_error() -> None:
    shown = described_error(GROUP, ErrorCode.GROUP_ID_NOT_FOUND, "why")

    assert_has(
        shown, group_id=GROUP, error_code=69, error_message="why", group_state="", members=[]
    )


def test_described_assignor_is_the_one_with_most_votes() -> None:
    c = ConsumerCoordination()
    for member_id, assignor in (("a", "range"), ("b", "uniform"), ("c", "range"), ("d", None)):
        c.enter(member_id, ["t"], assignor=assignor)

    assert "range" == c.consumers.preferred_assignor


def test_largest_number_of_members_is_remembered() -> None:
    # The order of Kafka's map depends on it.
    group = group_of(
        *(member_record(GROUP, replace(FULL, member_id=each)) for each in ("a", "b", "c")),
        *member_tombstones(GROUP, "b"),
        member_record(GROUP, replace(FULL, member_id="a")),
    )

    assert (3, 2) == (group.largest_size, len(group.members))


def test_member_waits_for_partitions_that_others_own() -> None:
    member = replace(FULL, assigned={TOPIC_ID: {1: 6}}, pending_revocation={})
    other = replace(
        FULL, member_id="n", instance_id=None, assigned={TOPIC_ID: {2: 6}}, pending_revocation={}
    )
    group = group_of(
        current_record(GROUP, member),
        current_record(GROUP, other),
        target_record(GROUP, "m", {TOPIC_ID: (1, 2)}),
    )
    assert group.waits_for_others(group.members["m"])

    group.apply(member_tombstones(GROUP, "n")[0])

    assert not group.waits_for_others(group.members["m"])
