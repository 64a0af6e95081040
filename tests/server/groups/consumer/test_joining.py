"""
Members of consumer groups that join, stay and leave: epochs, records, answers.
"""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.protocol.errors import ErrorCode, FencedMemberEpoch, GroupIdNotFound, UnknownMemberId
from barnabas.protocol.structs import replace
from barnabas.server.groups.consumer.member import MemberState
from barnabas.server.groups.consumer.records import current_record
from barnabas.server.groups.share.group import ShareGroup
from barnabas.server.groups.streams.group import StreamsGroup
from tests.support.consumer_groups import CALLER, ConsumerCoordination, told
from tests.support.coordination import GROUP


def test_first_member_begins_epoch_2() -> None:
    c = ConsumerCoordination()
    topic_id = c.create("t", 2)

    answer = c.enter("a", ["t"])

    assert (ErrorCode.NONE, "a", 2) == (answer.error_code, answer.member_id, answer.member_epoch)
    assert {topic_id: [0, 1]} == told(answer)
    assert 5000 == answer.heartbeat_interval_ms
    assert ("Stable", 2, 2) == (
        c.consumers.state_name,
        c.consumers.group_epoch,
        c.consumers.assignment_epoch,
    )


def test_join_writes_member_epoch_target_and_assignment() -> None:
    c = ConsumerCoordination()
    c.create("t", 2)

    c.enter("a", ["t"])

    assert ["5 a", "3", "7 a", "6", "8 a"] == c.last
    assert (2, c.now_ms) == (c.last_value(6).assignment_epoch, c.last_value(6).assignment_timestamp)
    assert (2, c.subscribed.hash({"t"})) == (c.last_value(3).epoch, c.last_value(3).metadata_hash)


def test_member_without_topics_begins_no_epoch() -> None:
    c = ConsumerCoordination()

    answer = c.enter("a", [])

    assert (1, {}) == (answer.member_epoch, told(answer))
    assert ["5 a", "8 a"] == c.last


def test_only_members_with_a_changed_target_get_a_record() -> None:
    c = ConsumerCoordination()
    c.create("t", 1)
    c.enter("a", ["t"])

    c.enter("b", ["t"])

    assert ["5 b", "3", "7 b", "6", "8 b"] == c.last


def test_member_fields_of_the_request_are_kept() -> None:
    c = ConsumerCoordination()

    c.enter("a", ["u", "t"], rack_id="r", assignor="range", instance_id="i", timeout_ms=321)

    member = c.member("a")
    assert ("r", "range", "i", 321) == (
        member.rack_id,
        member.server_assignor,
        member.instance_id,
        member.rebalance_timeout_ms,
    )
    assert ("client", "/127.0.0.1") == (member.client_id, member.client_host)
    assert ["t", "u"] == c.last_value(5).subscribed_topic_names


def test_omitted_member_fields_stay() -> None:
    c = ConsumerCoordination()
    epoch = c.enter("a", ["t"], rack_id="r", assignor="range", timeout_ms=321).member_epoch
    before = c.member("a")

    c.beat("a", epoch, owned={})

    assert before == c.member("a")


@pytest.mark.parametrize(
    "change",
    [
        {"rack_id": "r"},
        {"assignor": "range"},
        {"timeout_ms": 5},
        {"caller": CALLER._replace(client_id="c")},
        {"caller": CALLER._replace(client_host="/h")},
    ],
    ids=["rack", "assignor", "timeout", "client", "host"],
)
def test_change_other_than_topics_begins_no_epoch(change: dict[str, Any]) -> None:
    c = ConsumerCoordination()
    epoch = c.enter("a", ["t"]).member_epoch
    c.beat("a", epoch)

    answer = c.beat("a", epoch, **change)

    assert ["5 a"] == c.last
    assert epoch == answer.member_epoch


def test_heartbeat_without_changes_writes_nothing() -> None:
    c = ConsumerCoordination()
    c.create("t", 1)
    epoch = c.enter("a", ["t"]).member_epoch
    c.beat("a", epoch)
    before = list(c.batches)

    answer = c.beat("a", epoch)

    assert before == c.batches
    assert (epoch, 5000, None) == (
        answer.member_epoch,
        answer.heartbeat_interval_ms,
        answer.assignment,
    )


def test_heartbeat_fast_path_agrees_with_the_full_path() -> None:
    """
    A heartbeat that repeats what is known has the answer of one that says nothing.
    """
    c = ConsumerCoordination()
    topic_id = c.create("t", 1)
    epoch = c.enter("a", ["t"], rack_id="r", assignor="range").member_epoch
    c.beat("a", epoch)
    before = list(c.batches)
    short = c.beat("a", epoch)

    changes: list[dict[str, Any]] = [
        {"owned": {topic_id: [0]}},
        {"topics": ["t"]},
        {"rack_id": "r"},
        {"assignor": "range"},
        {"timeout_ms": 60_000},
    ]
    for facts in changes:
        assert short == c.beat("a", epoch, **facts)
    assert before == c.batches


@pytest.mark.parametrize(
    ("left_out", "is_told"),
    [(None, True), ("timeout_ms", False), ("topics", False), ("owned", False)],
)
def test_full_heartbeat_returns_the_assignment(left_out: str | None, is_told: bool) -> None:
    c = ConsumerCoordination()
    topic_id = c.create("t", 1)
    epoch = c.enter("a", ["t"]).member_epoch
    facts: dict[str, Any] = {"timeout_ms": 60_000, "topics": ["t"], "owned": {topic_id: [0]}}
    facts.pop(left_out or "", None)

    answer = c.beat("a", epoch, **facts)

    assert ({topic_id: [0]} if is_told else None) == told(answer)


def test_heartbeat_with_a_pattern_is_full_too() -> None:
    c = ConsumerCoordination()
    epoch = c.enter("a", [], regex="").member_epoch

    assert {} == told(c.beat("a", epoch, timeout_ms=60_000, regex="", owned={}))


def test_changed_assignment_is_returned_once() -> None:
    c = ConsumerCoordination()
    topic_id = c.create("t", 1)
    epoch = c.enter("a", ["t"]).member_epoch
    c.grow("t", 2)

    assert {topic_id: [0, 1]} == told(c.beat("a", epoch))
    assert None is told(c.beat("a", epoch + 1))


def test_leaving_removes_the_member_and_begins_an_epoch() -> None:
    c = ConsumerCoordination()
    c.create("t", 1)
    c.enter("a", ["t"])
    c.enter("b", ["t"])

    answer = c.go("a")

    assert ("a", -1, 0, None) == (
        answer.member_id,
        answer.member_epoch,
        answer.heartbeat_interval_ms,
        answer.assignment,
    )
    assert ["-8 a", "-7 a", "-5 a", "3"] == c.last
    assert (4, c.subscribed.hash({"t"})) == (c.last_value(3).epoch, c.last_value(3).metadata_hash)
    assert ["b"] == list(c.consumers.members)


def test_last_leaving_member_leaves_a_group_without_topics() -> None:
    c = ConsumerCoordination()
    c.create("t", 1)
    c.enter("a", ["t"])

    c.go("a")

    assert 0 == c.consumers.metadata_hash
    assert "Empty" == c.consumers.state_name
    assert not c.consumers.owners


def test_member_that_has_left_is_unknown() -> None:
    c = ConsumerCoordination()
    c.enter("a")
    c.go("a")

    with pytest.raises(UnknownMemberId):
        c.go("a")


def test_group_without_members_continues_with_its_epoch() -> None:
    c = ConsumerCoordination()
    c.enter("a", ["t"])
    c.go("a")

    assert 4 == c.enter("b", ["t"]).member_epoch


def test_empty_classic_group_is_replaced() -> None:
    c = ConsumerCoordination()
    (member_id,) = c.stable()
    c.leave(member_id)

    answer = c.enter("a", ["t"])

    assert ["-2", "5 a", "3", "7 a", "6", "8 a"] == c.last
    assert 2 == answer.member_epoch


def test_simple_group_keeps_its_offsets_when_a_consumer_joins() -> None:
    c = ConsumerCoordination()
    c.commit_offsets({("t", 0): 5})

    c.enter("a", ["t"])

    assert ["-2", "5 a", "3", "7 a", "6", "8 a"] == c.last
    assert [(GROUP, "t", 0)] == [key[:3] for key in sorted(c.state.offsets.committed)]


def test_refused_join_creates_no_group() -> None:
    c = ConsumerCoordination()
    c.append_error = ErrorCode.NOT_LEADER_OR_FOLLOWER

    c.enter("a")

    assert None is c.state.groups.get(GROUP)


def test_group_state_follows_epochs_and_members() -> None:
    c = ConsumerCoordination(interval_ms=1000)
    topic_id = c.create("t", 2)
    a = c.enter("a", ["t"]).member_epoch
    assert "Stable" == c.consumers.state_name

    b = c.enter("b", ["t"])
    assert "Assigning" == c.consumers.state_name
    assert (a, {}) == (b.member_epoch, told(b))

    c.advance(1000)
    c.beat("b", b.member_epoch)
    assert "Reconciling" == c.consumers.state_name

    c.beat("a", a, owned={topic_id: [0, 1]})
    assert MemberState.UNREVOKED_PARTITIONS is c.member("a").state
    assert "Reconciling" == c.consumers.state_name
    c.settle("a", "b")
    assert "Stable" == c.consumers.state_name

    c.go("a")
    c.go("b")
    assert "Empty" == c.consumers.state_name


@pytest.mark.parametrize("group_class", [ShareGroup, StreamsGroup])
def test_group_of_another_protocol_cannot_be_joined(
    group_class: type[ShareGroup | StreamsGroup],
) -> None:
    c = ConsumerCoordination()
    c.state.groups.put(GROUP, group_class(GROUP))

    with pytest.raises(GroupIdNotFound, match=f"Group {GROUP} is not a consumer group"):
        c.enter("a")


def test_member_in_an_unknown_state_is_fenced() -> None:
    """
    It joins again with what it has given up, and gets its target.
    """
    c = ConsumerCoordination()
    topic_id = c.create("t", 2)
    epoch = c.enter("a", ["t"]).member_epoch
    strange = replace(c.member("a"), state=MemberState.UNKNOWN)
    c.state.apply(current_record(GROUP, strange), 0, -1)

    for owned in (None, {topic_id: [0]}):
        with pytest.raises(FencedMemberEpoch) as refused:
            c.beat("a", epoch, owned=owned)
        assert str(refused.value) == (
            "The consumer group member is in a unknown state. The member must abandon all its"
            " partitions and rejoin."
        )
    assert {topic_id: [0, 1]} == told(c.enter("a", ["t"]))
    assert MemberState.STABLE is c.member("a").state
