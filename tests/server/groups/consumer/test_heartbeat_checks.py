"""
The checks of ConsumerGroupHeartbeat that depend on epochs and partitions of members, and on Java's
idea of blanks. test_group_answers.py compares the others with Apache Kafka.
"""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.protocol.errors import (
    FencedMemberEpoch,
    GroupIdNotFound,
    GroupMaxSizeReached,
)
from barnabas.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
)
from barnabas.server.groups.consumer.heartbeats import check_heartbeat
from tests.support.consumer_groups import CALLER, ConsumerCoordination
from tests.support.coordination import GROUP
from tests.support.refusals import refusal


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


@pytest.mark.parametrize("blank", ["\u2003", "\xa0", "\x85"])
def test_strings_are_trimmed_as_in_java(blank: str) -> None:
    """
    ``String.trim`` takes away no spaces but those of ASCII.
    """
    check_heartbeat(request(member_id=blank, rack_id=blank), 1, ["uniform"])


@pytest.mark.parametrize("regex", ["", "a.*"])
def test_pattern_counts_as_a_subscription(regex: str) -> None:
    told = request(subscribed_topic_names=None, subscribed_topic_regex=regex)

    check_heartbeat(told, 1, ["uniform"])


@pytest.mark.parametrize("epoch", [1, -1, -2])
def test_classic_group_with_members_is_no_consumer_group(epoch: int) -> None:
    c = ConsumerCoordination()
    c.stable()

    kind, sentence = refusal(lambda: c.beat("m", epoch, instance_id="i"))

    assert (GroupIdNotFound, f"Group {GROUP} is not a consumer group.") == (kind, sentence)


def test_members_of_a_full_group_continue() -> None:
    c = ConsumerCoordination(group_consumer_max_size=1)
    epoch = c.enter("a").member_epoch

    assert epoch == c.beat("a", epoch).member_epoch
    assert epoch == c.enter("a").member_epoch


def test_full_group_refuses_another_id_of_a_static_member() -> None:
    c = ConsumerCoordination(group_consumer_max_size=1)
    c.enter("a", instance_id="i")
    c.go("a", -2, instance_id="i")

    kind, _ = refusal(lambda: c.enter("b", instance_id="i"))

    assert GroupMaxSizeReached is kind


def test_previous_epoch_without_partitions_is_fenced() -> None:
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


def test_previous_epoch_with_partitions_of_the_member_is_accepted() -> None:
    """
    The response with the current epoch may have been lost.
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


def test_previous_epoch_with_partitions_of_others_is_fenced() -> None:
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


def test_epoch_before_the_previous_one_is_fenced() -> None:
    c = ConsumerCoordination()
    c.topics.put("t", 1)
    for count in (2, 3, 4):
        c.enter("a", ["t"])
        c.grow("t", count)
    c.enter("a", ["t"])
    assert c.member("a").previous_member_epoch > 1

    kind, _ = refusal(lambda: c.beat("a", 1, owned={}))

    assert FencedMemberEpoch is kind


def test_known_member_may_join_again() -> None:
    c = ConsumerCoordination()
    topic_id = c.topics.put("t", 1)
    epoch = c.enter("a", ["t"]).member_epoch

    again = c.enter("a", ["t"])

    assert epoch == again.member_epoch
    assert again.assignment is not None
    assert {topic_id: [0]} == c.assigned("a")


def test_member_of_version_0_without_an_id_gets_one() -> None:
    c = ConsumerCoordination()

    answer = c.enter("", caller=CALLER._replace(version=0))

    assert answer.member_id
    assert [answer.member_id] == list(c.consumers.members)


# Static members.


def test_epochs_of_static_members_are_checked() -> None:
    c = ConsumerCoordination()
    epoch = c.enter("a", ["t"], instance_id="i").member_epoch

    for wrong in (epoch + 1, epoch - 1):
        kind, _ = refusal(lambda e=wrong: c.beat("a", e, instance_id="i"))
        assert FencedMemberEpoch is kind
