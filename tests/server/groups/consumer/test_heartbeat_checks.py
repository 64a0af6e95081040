"""
The checks of ConsumerGroupHeartbeat, in Kafka's order and words.
"""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.protocol.errors import (
    FencedInstanceId,
    FencedMemberEpoch,
    GroupIdNotFound,
    GroupMaxSizeReached,
    InvalidRegularExpression,
    InvalidRequest,
    UnknownMemberId,
    UnreleasedInstanceId,
    UnsupportedAssignor,
)
from barnabas.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    TopicPartitions,
)
from barnabas.server.groups.consumer.heartbeats import check_heartbeat
from tests.support.consumer_groups import CALLER, ConsumerCoordination
from tests.support.coordination import GROUP, TOPIC_ID
from tests.support.refusals import refusal

NOTHING_TOLD: dict[str, Any] = {
    "rebalance_timeout_ms": -1,
    "topic_partitions": None,
    "subscribed_topic_names": None,
}


def request(**facts: Any) -> ConsumerGroupHeartbeatRequest:
    """
    A full first request, but for *facts*.
    """
    given: dict[str, Any] = {
        "group_id": GROUP,
        "member_id": "m",
        "member_epoch": 0,
        "rebalance_timeout_ms": 1000,
        "subscribed_topic_names": [],
        "topic_partitions": [],
    }
    return ConsumerGroupHeartbeatRequest(**given | facts)


def refused_request(version: int = 1, **facts: Any) -> str:
    with pytest.raises(InvalidRequest) as refused:
        check_heartbeat(request(**facts), version, ["uniform", "range"])
    return str(refused.value)


@pytest.mark.parametrize("empty", ["", " ", "\t\n", "\x00\x1f "])
@pytest.mark.parametrize(
    ("field", "name"),
    [
        ("member_id", "MemberId"),
        ("group_id", "GroupId"),
        ("instance_id", "InstanceId"),
        ("rack_id", "RackId"),
    ],
)
def test_texts_cannot_be_empty(field: str, name: str, empty: str) -> None:
    assert f"{name} can't be empty." == refused_request(1, **{field: empty})


@pytest.mark.parametrize("blank", ["\u2003", "\xa0", "\x85"])
def test_texts_are_trimmed_as_java_does(blank: str) -> None:
    """
    ``String.trim`` takes away no spaces but those of ASCII.
    """
    check_heartbeat(request(member_id=blank, rack_id=blank), 1, ["uniform"])


@pytest.mark.parametrize(
    ("version", "epoch", "is_refused"),
    [(0, 0, False), (0, 1, True), (0, -1, True), (0, -2, False), (1, 0, True), (1, -2, True)],
)
def test_a_member_of_v0_gets_its_id_with_the_first_answer(
    version: int, epoch: int, is_refused: bool
) -> None:
    facts: dict[str, Any] = {"member_id": "", "member_epoch": epoch, "instance_id": "i"}

    if is_refused:
        assert "MemberId can't be empty." == refused_request(version, **facts)
    else:
        check_heartbeat(request(**facts), version, ["uniform"])


@pytest.mark.parametrize(
    ("facts", "sentence"),
    [
        ({"rebalance_timeout_ms": -1}, "RebalanceTimeoutMs must be provided in first request."),
        ({"topic_partitions": None}, "TopicPartitions must be empty when (re-)joining."),
        (
            {"topic_partitions": [TopicPartitions(topic_id=TOPIC_ID, partitions=[0])]},
            "TopicPartitions must be empty when (re-)joining.",
        ),
        (
            {"subscribed_topic_names": None},
            "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when"
            " (re-)joining.",
        ),
        ({"member_epoch": -3} | NOTHING_TOLD, "MemberEpoch is invalid."),
        ({"member_epoch": -2} | NOTHING_TOLD, "InstanceId can't be null."),
    ],
)
def test_a_first_request_is_full(facts: dict[str, Any], sentence: str) -> None:
    assert sentence == refused_request(**facts)


def test_checks_have_an_order() -> None:
    """
    The first of several mistakes is the one that is named.
    """
    mistakes: list[tuple[str, Any, Any]] = [
        ("MemberId", "member_id", ""),
        ("GroupId", "group_id", ""),
        ("InstanceId", "instance_id", ""),
        ("RackId", "rack_id", ""),
        ("RebalanceTimeoutMs", "rebalance_timeout_ms", -1),
        ("TopicPartitions", "topic_partitions", None),
        ("Either SubscribedTopicNames", "subscribed_topic_names", None),
    ]
    for first, (name, _, _) in enumerate(mistakes):
        facts = {field: value for _, field, value in mistakes[first:]}

        assert refused_request(**facts, server_assignor="none").startswith(name)


@pytest.mark.parametrize("regex", ["", "a.*"])
def test_a_pattern_is_a_subscription(regex: str) -> None:
    told = request(subscribed_topic_names=None, subscribed_topic_regex=regex)

    check_heartbeat(told, 1, ["uniform"])


@pytest.mark.parametrize("epoch", [0, 1, -1])
@pytest.mark.parametrize("assignor", ["", "Uniform", "cooperative-sticky"])
def test_only_configured_assignors_can_be_asked_for(epoch: int, assignor: str) -> None:
    with pytest.raises(UnsupportedAssignor) as refused:
        check_heartbeat(
            request(member_epoch=epoch, server_assignor=assignor), 1, ["uniform", "range"]
        )

    assert (
        f"ServerAssignor {assignor} is not supported. Supported assignors: uniform, range."
        == str(refused.value)
    )


@pytest.mark.parametrize("epoch", [1, -1, -2])
def test_only_epoch_0_makes_a_group(epoch: int) -> None:
    c = ConsumerCoordination()

    kind, sentence = refusal(lambda: c.beat("m", epoch, instance_id="i"))

    assert GroupIdNotFound is kind
    assert sentence == (
        f"Consumer group {GROUP} not found." if epoch > 0 else f"Group {GROUP} not found."
    )
    assert not c.batches


@pytest.mark.parametrize("epoch", [1, -1, -2])
def test_a_classic_group_is_no_consumer_group_to_members(epoch: int) -> None:
    c = ConsumerCoordination()
    c.stable()

    kind, sentence = refusal(lambda: c.beat("m", epoch, instance_id="i"))

    assert (GroupIdNotFound, f"Group {GROUP} is not a consumer group.") == (kind, sentence)


def test_the_size_of_a_group_is_limited() -> None:
    c = ConsumerCoordination(group_consumer_max_size=1)
    c.enter("a")

    kind, sentence = refusal(lambda: c.enter("b"))

    assert GroupMaxSizeReached is kind
    assert "The consumer group has reached its maximum capacity of 1 members." == sentence
    assert ["a"] == list(c.consumers.members)


def test_a_full_group_names_its_size_before_the_member_is_looked_for() -> None:
    c = ConsumerCoordination(group_consumer_max_size=1)
    c.enter("a")

    kind, _ = refusal(lambda: c.beat("b", 5))

    assert GroupMaxSizeReached is kind


def test_members_of_a_full_group_go_on() -> None:
    c = ConsumerCoordination(group_consumer_max_size=1)
    epoch = c.enter("a").member_epoch

    assert epoch == c.beat("a", epoch).member_epoch
    assert epoch == c.enter("a").member_epoch


def test_a_full_group_takes_no_other_id_for_a_static_member() -> None:
    c = ConsumerCoordination(group_consumer_max_size=1)
    c.enter("a", instance_id="i")
    c.go("a", -2, instance_id="i")

    kind, _ = refusal(lambda: c.enter("b", instance_id="i"))

    assert GroupMaxSizeReached is kind


def test_an_unknown_member_has_to_join() -> None:
    c = ConsumerCoordination()
    c.enter("a")

    for epoch in (1, -1):
        kind, sentence = refusal(lambda e=epoch: c.beat("b", e))
        assert (UnknownMemberId, f"Member b is not a member of group {GROUP}.") == (kind, sentence)


def test_an_epoch_that_the_member_has_not_reached_is_fenced() -> None:
    c = ConsumerCoordination()
    epoch = c.enter("a").member_epoch

    kind, sentence = refusal(lambda: c.beat("a", epoch + 1))

    assert FencedMemberEpoch is kind
    assert sentence == (
        f"The consumer group member has a greater member epoch ({epoch + 1}) than the one known by"
        f" the group coordinator ({epoch}). The member must abandon all its partitions and rejoin."
    )


def test_the_previous_epoch_is_fenced_without_partitions() -> None:
    c = ConsumerCoordination()
    c.topics.put("t", 2)
    c.enter("a", ["t"])
    c.enter("b", ["t"])
    c.settle("a", "b")
    epoch = c.member("a").member_epoch

    kind, sentence = refusal(lambda: c.beat("a", epoch - 1))

    assert FencedMemberEpoch is kind
    assert sentence == (
        f"The consumer group member has a smaller member epoch ({epoch - 1}) than the one known by"
        f" the group coordinator ({epoch}). The member must abandon all its partitions and rejoin."
    )


def test_the_previous_epoch_is_accepted_with_partitions_that_the_member_has() -> None:
    """
    The answer with the present epoch may have been lost.
    """
    c = ConsumerCoordination()
    topic_id = c.topics.put("t", 2)
    c.enter("a", ["t"])
    c.grow("t", 3)
    before = c.member("a").member_epoch
    c.beat("a", before, owned={topic_id: [0, 1]})
    member = c.member("a")
    assert (member.previous_member_epoch, member.member_epoch) == (before, before + 1)

    assert before + 1 == c.beat("a", before, owned={topic_id: [0]}).member_epoch
    assert before + 1 == c.beat("a", before, owned={}).member_epoch


def test_the_previous_epoch_is_fenced_with_partitions_of_others() -> None:
    c = ConsumerCoordination()
    topic_id = c.topics.put("t", 2)
    other_id = c.topics.put("u", 2)
    c.enter("a", ["t"])
    c.grow("t", 3)
    before = c.member("a").member_epoch
    c.beat("a", before, owned={topic_id: [0, 1]})

    for owned in ({topic_id: [0, 3]}, {other_id: [0]}):
        kind, _ = refusal(lambda o=owned: c.beat("a", before, owned=o))
        assert FencedMemberEpoch is kind


def test_an_epoch_before_the_previous_one_is_fenced() -> None:
    c = ConsumerCoordination()
    c.topics.put("t", 1)
    for count in (2, 3, 4):
        c.enter("a", ["t"])
        c.grow("t", count)
    c.enter("a", ["t"])
    assert c.member("a").previous_member_epoch > 1

    kind, _ = refusal(lambda: c.beat("a", 1, owned={}))

    assert FencedMemberEpoch is kind


def test_a_known_member_may_join_again() -> None:
    c = ConsumerCoordination()
    topic_id = c.topics.put("t", 1)
    epoch = c.enter("a", ["t"]).member_epoch

    again = c.enter("a", ["t"])

    assert epoch == again.member_epoch
    assert again.assignment is not None
    assert {topic_id: [0]} == c.assigned("a")


def test_a_member_of_v0_without_an_id_gets_one() -> None:
    c = ConsumerCoordination()

    answer = c.enter("", caller=CALLER._replace(version=0))

    assert answer.member_id
    assert [answer.member_id] == list(c.consumers.members)


# Static members.


def test_an_unknown_instance_has_to_join() -> None:
    c = ConsumerCoordination()
    c.enter("a", instance_id="i")

    for epoch in (2, -1, -2):
        kind, sentence = refusal(lambda e=epoch: c.beat("a", e, instance_id="j"))
        assert (UnknownMemberId, "Instance id j is unknown.") == (kind, sentence)


def test_another_member_of_an_instance_is_fenced() -> None:
    c = ConsumerCoordination()
    c.enter("a", instance_id="i")

    for epoch in (2, -1, -2):
        kind, sentence = refusal(lambda e=epoch: c.beat("b", e, instance_id="i"))
        assert FencedInstanceId is kind
        assert "Static member b with instance id i was fenced by member a." == sentence


def test_an_instance_is_taken_until_its_member_leaves() -> None:
    c = ConsumerCoordination()
    c.enter("a", instance_id="i")

    for member_id in ("a", "b"):
        kind, sentence = refusal(lambda m=member_id: c.enter(m, instance_id="i"))
        assert UnreleasedInstanceId is kind
        assert sentence == (
            f"Static member {member_id} with instance id i cannot join the group because the"
            " instance id is owned by a member."
        )


def test_epochs_of_static_members_are_checked() -> None:
    c = ConsumerCoordination()
    epoch = c.enter("a", ["t"], instance_id="i").member_epoch

    for wrong in (epoch + 1, epoch - 1):
        kind, _ = refusal(lambda e=wrong: c.beat("a", e, instance_id="i"))
        assert FencedMemberEpoch is kind


def test_a_new_pattern_has_to_be_one() -> None:
    c = ConsumerCoordination()

    kind, sentence = refusal(lambda: c.enter("a", None, regex="a[["))

    assert InvalidRegularExpression is kind
    assert sentence.startswith("SubscribedTopicRegex `a[[` is not a valid regular expression: ")
    assert sentence.endswith(".")
    assert c.state.groups.get(GROUP) is None
