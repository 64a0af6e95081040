"""
When a target assignment is computed, by which assignor, and from what.
"""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

import pytest

from barnabas.coordination.groups.assignors import uniform_assignor
from barnabas.coordination.groups.assignors.errors import PartitionAssignorError
from barnabas.coordination.groups.assignors.spec import Assignment, GroupSpec, SubscriptionType
from barnabas.coordination.groups.consumer.assignors import ASSIGNORS
from barnabas.coordination.groups.consumer.records import member_record, target_epoch_record
from barnabas.coordination.groups.modern.records import ModernRecord
from barnabas.coordination.groups.modern.target import Assignor
from barnabas.protocol.errors import ErrorCode, UnknownServerError
from barnabas.protocol.structs import replace
from tests.support.consumer_groups import ConsumerCoordination
from tests.support.coordination import GROUP
from tests.support.modern_groups import number_of


class Recorder:
    def __init__(self) -> None:
        self.specs: list[GroupSpec] = []

    def __call__(self, spec: GroupSpec, counts: Mapping[UUID, int]) -> Mapping[str, Assignment]:
        self.specs.append(spec)
        return uniform_assignor.assign(spec, counts)

    @property
    def is_homogeneous(self) -> bool:
        return self.specs[-1].subscription_type is SubscriptionType.HOMOGENEOUS


@pytest.fixture
def recorders(monkeypatch: pytest.MonkeyPatch) -> dict[str, Recorder]:
    recorders = {"uniform": Recorder(), "range": Recorder()}
    for name, recorder in recorders.items():
        monkeypatch.setitem(ASSIGNORS, name, Assignor(name, recorder))
    return recorders


# The interval


def test_next_assignment_waits_for_the_assignment_interval() -> None:
    c = ConsumerCoordination.of("a", interval_ms=1000)
    c.advance(400)
    epoch = c.enter("b", ["t"]).member_epoch
    assert ["5 b", "3", "8 b"] == c.last

    c.advance(599)
    c.beat("b", epoch)
    assert (3, 2) == (c.consumers.group_epoch, c.consumers.assignment_epoch)
    c.advance(1)
    c.beat("b", epoch)

    assert (3, 3) == (c.consumers.group_epoch, c.consumers.assignment_epoch)
    assert c.now_ms == c.consumers.assignment_timestamp_ms


@pytest.mark.parametrize(
    ("interval_ms", "is_time_known"),
    [(10_000, False), (0, True)],
    ids=["unknown time", "interval of 0"],
)
def test_assignment_of_unknown_time_or_without_an_interval_does_not_wait(
    interval_ms: int, is_time_known: bool
) -> None:
    # Classic groups and releases before Kafka 4.3 write no time.
    c = ConsumerCoordination(interval_ms=interval_ms)
    assert 2 == c.enter("a", ["t"]).member_epoch
    time_ms = c.now_ms + 10_000 if is_time_known else 0
    c.write_records([target_epoch_record(GROUP, 2, time_ms)])

    assert 3 == c.enter("b", ["t"]).member_epoch


def test_changed_assignment_interval_applies_at_once() -> None:
    c = ConsumerCoordination(interval_ms=10_000)
    c.enter("a", ["t"])
    epoch = c.enter("b", ["t"]).member_epoch

    c.set_config(consumer_assignment_interval_ms=0)

    assert 2 == epoch
    assert 3 == c.beat("b", epoch).member_epoch


def test_several_changes_make_one_assignment() -> None:
    c = ConsumerCoordination({"t": 3}, interval_ms=1000)
    for member_id in ("a", "b", "c"):
        c.enter(member_id, ["t"])
    c.advance(1000)

    c.settle("a", "b", "c")

    epochs = [
        record.value.assignment_epoch
        for batch in c.batches
        for record in batch
        if isinstance(record, ModernRecord) and number_of(record) == "6"
    ]
    assert [2, 4] == epochs


# The assignor


def test_assignor_with_most_votes_is_used(recorders: dict[str, Recorder]) -> None:
    c = ConsumerCoordination()
    c.enter("a", ["t"])
    assert 1 == len(recorders["uniform"].specs)

    c.enter("b", ["t"], assignor="range")
    assert 1 == len(recorders["range"].specs)
    c.enter("c", ["t"], assignor="uniform")
    c.enter("d", ["t"], assignor="range")

    assert {"a", "b", "c", "d"} == set(recorders["range"].specs[-1].members)
    assert "range" == c.consumers.preferred_assignor


@pytest.mark.parametrize(("first", "second"), [("range", "uniform"), ("uniform", "range")])
def test_changed_vote_counts_and_a_tie_is_broken_as_in_kafka(
    recorders: dict[str, Recorder], first: str, second: str
) -> None:
    c = ConsumerCoordination()
    epoch = c.enter("a", ["t"], assignor=first).member_epoch

    c.beat("a", epoch, assignor=second, topics=["t", "u"])
    assert (1, 1) == (len(recorders[first].specs), len(recorders[second].specs))
    c.enter("b", ["t"], assignor=first)

    # The order of a ``HashMap`` with both names decides.
    assert (2, 1) == (len(recorders["uniform"].specs), len(recorders["range"].specs))


def test_first_configured_assignor_is_the_default(recorders: dict[str, Recorder]) -> None:
    c = ConsumerCoordination(group_consumer_assignors=("range", "uniform"))

    c.enter("a", ["t"])

    assert 1 == len(recorders["range"].specs)


def test_votes_for_assignors_unknown_to_this_broker_do_not_count(
    recorders: dict[str, Recorder],
) -> None:
    c = ConsumerCoordination()
    c.enter("a", ["t"])
    c.write_records([member_record(GROUP, replace(c.member("a"), server_assignor="org.Own"))])

    c.enter("b", ["t"])

    assert {"a", "b"} == set(recorders["uniform"].specs[-1].members)


def test_failing_assignor_fails_the_heartbeat(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(spec: GroupSpec, counts: Mapping[UUID, int]) -> Mapping[str, Assignment]:
        raise PartitionAssignorError("no idea")

    monkeypatch.setitem(ASSIGNORS, "uniform", Assignor("uniform", fail))
    c = ConsumerCoordination()

    with pytest.raises(UnknownServerError) as failed:
        c.enter("a", ["t"])

    assert "Failed to compute a new target assignment for epoch 2: no idea" == str(failed.value)
    assert ErrorCode.UNKNOWN_SERVER_ERROR == failed.value.code
    assert not c.batches


# The specification


def test_assignor_sees_targets_rather_than_current_assignments(
    recorders: dict[str, Recorder],
) -> None:
    c = ConsumerCoordination()
    topic_id = c.create("t", 2)
    c.enter("a", ["t"])
    c.enter("b", ["t"])
    assert {topic_id: [0, 1]} == c.assigned("a")

    c.enter("c", ["t"])

    seen = recorders["uniform"].specs[-1].members["a"].target
    assert 1 == len(seen[topic_id])


def test_assignor_sees_a_replaced_member_once(recorders: dict[str, Recorder]) -> None:
    c = ConsumerCoordination()
    topic_id = c.create("t", 2)
    c.enter("a", ["t"], instance_id="i", rack_id="r")
    c.go("a", -2, instance_id="i")
    c.grow("t", 3)

    c.enter("b", ["t"], instance_id="i")

    (member,) = recorders["uniform"].specs[-1].members.values()
    assert [0, 1] == sorted(member.target[topic_id])
    assert ("i", "r") == (member.instance_id, member.rack_id)
    assert ["b"] == list(recorders["uniform"].specs[-1].members)


def test_unknown_topics_are_not_assigned(recorders: dict[str, Recorder]) -> None:
    c = ConsumerCoordination()
    topic_id = c.create("t", 2)

    c.enter("a", ["t", "missing"])

    assert {topic_id} == set(recorders["uniform"].specs[-1].members["a"].subscribed_topic_ids)


@pytest.mark.parametrize(
    ("subscriptions", "is_homogeneous"),
    [
        ([(["t"], ""), (["t"], "")], True),
        ([(["t", "u"], ""), (["t"], "")], False),
        ([([], ""), (["t"], "")], False),
        ([(["t", "missing"], ""), (["t", "missing"], "")], True),
        ([([], "t|u"), ([], "t|u")], True),
        ([([], "t"), ([], "t|u")], False),
        ([([], "t"), (["t"], "")], False),
        ([(["t"], "t|u"), ([], "t|u")], False),
        ([(["t"], "t"), (["t"], "t")], False),
    ],
)
def test_subscriptions_of_equal_kind_are_homogeneous(
    subscriptions: list[tuple[list[str], str]],
    is_homogeneous: bool,
    recorders: dict[str, Recorder],
) -> None:
    c = ConsumerCoordination({"t": 2, "u": 2})
    for number, (names, regex) in enumerate(subscriptions):
        c.enter(f"m{number}", names, regex=regex)
        c.executor.do()
        c.advance(10_001)
        c.beat("m0", c.member("m0").member_epoch)
        c.executor.do()
    c.grow("t", 3)

    c.beat("m0", c.member("m0").member_epoch)

    assert is_homogeneous is recorders["uniform"].is_homogeneous


def test_assignor_sees_the_new_topics_of_a_member(
    recorders: dict[str, Recorder],
) -> None:
    c = ConsumerCoordination({"t": 1})
    other_id = c.create("u", 1)
    epoch = c.enter("a", ["t"]).member_epoch

    c.beat("a", epoch, topics=["u"])

    assert recorders["uniform"].is_homogeneous
    assert {other_id} == set(recorders["uniform"].specs[-1].members["a"].subscribed_topic_ids)


def test_assignor_sees_topic_names_in_request_order(
    recorders: dict[str, Recorder],
) -> None:
    # Two names in one bin of a ``HashSet`` keep the order of their arrival.
    c = ConsumerCoordination()
    ids = {name: c.create(name, 1) for name in ("Aa", "BB")}

    for names in (["Aa", "BB"], ["BB", "Aa"]):
        c.enter("a", names)
        seen = recorders["uniform"].specs[-1].members["a"].subscribed_topic_ids
        assert [ids[name] for name in names] == list(seen)
        c.go("a")


def test_member_without_topics_is_counted_when_the_group_next_checks_its_topics(
    recorders: dict[str, Recorder],
) -> None:
    # As in Kafka: the members that were counted last were all of one kind.
    c = ConsumerCoordination({"t": 2}, interval_ms=1000)
    c.enter("a", ["t"])
    c.enter("b", ["t"])
    c.beat("a", 2)
    c.advance(1000)

    c.enter("d", [])

    assert {"a", "b", "d"} == set(recorders["uniform"].specs[-1].members)
    assert recorders["uniform"].is_homogeneous
    c.grow("t", 3)
    c.advance(1000)
    c.beat("d", c.member("d").member_epoch)
    assert not recorders["uniform"].is_homogeneous
