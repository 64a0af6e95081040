"""
Members of consumer groups that join, stay and leave: epochs, records, answers.
"""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.coordination.groups.consumer.member import MemberState
from barnabas.coordination.groups.consumer.records import current_record
from barnabas.coordination.groups.share.group import ShareGroup
from barnabas.coordination.groups.streams.group import StreamsGroup
from barnabas.protocol.errors import ErrorCode, FencedMemberEpoch, GroupIdNotFound
from barnabas.protocol.structs import replace
from tests.support.attributes import assert_has
from tests.support.consumer_groups import CALLER, ConsumerCoordination, told
from tests.support.coordination import GROUP


def test_first_member_begins_epoch_2() -> None:
    c = ConsumerCoordination()
    topic_id = c.create("t", 2)

    answer = c.enter("a", ["t"])

    assert_has(
        answer, error_code=ErrorCode.NONE, member_id="a", member_epoch=2, heartbeat_interval_ms=5000
    )
    assert {topic_id: [0, 1]} == told(answer)
    assert ["5 a", "3", "7 a", "6", "8 a"] == c.last
    assert (2, c.now_ms) == (c.last_value(6).assignment_epoch, c.last_value(6).assignment_timestamp)
    assert (2, c.subscribed.hash({"t"})) == (c.last_value(3).epoch, c.last_value(3).metadata_hash)
    assert "Stable" == c.consumers.state_name


def test_member_without_topics_begins_no_epoch() -> None:
    c = ConsumerCoordination()

    answer = c.enter("a", [])

    assert (1, {}) == (answer.member_epoch, told(answer))
    assert ["5 a", "8 a"] == c.last


def test_only_members_with_a_changed_target_get_a_record() -> None:
    c = ConsumerCoordination.of("a", partitions=1)

    c.enter("b", ["t"])

    assert ["5 b", "3", "7 b", "6", "8 b"] == c.last


def test_member_fields_of_the_request_are_kept() -> None:
    c = ConsumerCoordination()

    c.enter("a", ["u", "t"], rack_id="r", assignor="range", instance_id="i", timeout_ms=321)

    member = c.member("a")
    assert_has(
        member, rack_id="r", server_assignor="range", instance_id="i", rebalance_timeout_ms=321
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


@pytest.mark.parametrize(
    "repeated",
    [{"topics": ["t"]}, {"rack_id": "r"}, {"assignor": "range"}, {"timeout_ms": 60_000}, {}],
    ids=["topics", "rack", "assignor", "timeout", "partitions"],
)
def test_heartbeat_fast_path_agrees_with_the_full_path(repeated: dict[str, Any]) -> None:
    c = ConsumerCoordination()
    topic_id = c.create("t", 1)
    epoch = c.enter("a", ["t"], rack_id="r", assignor="range").member_epoch
    c.beat("a", epoch)
    before = list(c.batches)
    short = c.beat("a", epoch)

    assert short == c.beat("a", epoch, **(repeated or {"owned": {topic_id: [0]}}))
    assert before == c.batches


@pytest.mark.parametrize(
    ("left_out", "is_told"),
    [(None, True), ("timeout_ms", False), ("topics", False), ("owned", False)],
)
def test_full_heartbeat_returns_the_assignment(left_out: str | None, is_told: bool) -> None:
    c = ConsumerCoordination.of("a", partitions=1)
    topic_id = c.topic_id()
    epoch = c.epoch("a")
    facts: dict[str, Any] = {"timeout_ms": 60_000, "topics": ["t"], "owned": {topic_id: [0]}}
    facts.pop(left_out or "", None)

    answer = c.beat("a", epoch, **facts)

    assert ({topic_id: [0]} if is_told else None) == told(answer)


def test_heartbeat_with_a_pattern_is_full_too() -> None:
    c = ConsumerCoordination()
    epoch = c.enter("a", [], regex="").member_epoch

    assert {} == told(c.beat("a", epoch, timeout_ms=60_000, regex="", owned={}))


def test_changed_assignment_is_returned_once() -> None:
    c = ConsumerCoordination.of("a", partitions=1)
    topic_id = c.topic_id()
    epoch = c.epoch("a")
    c.grow("t", 2)

    assert {topic_id: [0, 1]} == told(c.beat("a", epoch))
    assert None is told(c.beat("a", epoch + 1))


def test_last_leaving_member_leaves_a_group_without_topics() -> None:
    c = ConsumerCoordination.of("a", partitions=1)

    c.go("a")

    assert 0 == c.consumers.metadata_hash
    assert "Empty" == c.consumers.state_name
    assert not c.consumers.owners


@pytest.mark.parametrize("is_simple", [False, True])
def test_empty_classic_group_is_replaced_and_its_offsets_are_kept(is_simple: bool) -> None:
    c = ConsumerCoordination()
    c.commit_offsets({("t", 0): 5})
    if not is_simple:
        (member_id,) = c.stable()
        c.leave(member_id)

    answer = c.enter("a", ["t"])

    assert ["-2", "5 a", "3", "7 a", "6", "8 a"] == c.last
    assert 2 == answer.member_epoch
    assert [(GROUP, "t", 0)] == [key[:3] for key in sorted(c.state.offsets.committed)]


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
    c = ConsumerCoordination.of("a")
    topic_id = c.topic_id()
    epoch = c.epoch("a")
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
