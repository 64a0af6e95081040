"""
The checks of ConsumerGroupHeartbeat that depend on epochs and partitions of members, and on Java's
idea of blanks. test_group_answers.py compares the others with Apache Kafka.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from barnabas.coordination.groups.consumer.heartbeats import check_heartbeat
from barnabas.protocol.errors import FencedMemberEpoch, GroupIdNotFound, GroupMaxSizeReached
from barnabas.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
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
    # ``String.trim`` removes ASCII spaces only.
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
    c = ConsumerCoordination.of("a", "b")
    epoch = c.epoch("a")

    kind, sentence = refusal(lambda: c.beat("a", epoch - 1))

    assert FencedMemberEpoch is kind
    assert sentence == (
        f"The consumer group member has a smaller member epoch ({epoch - 1}) than the one known by"
        f" the group coordinator ({epoch}). The member must abandon all its partitions and rejoin."
    )


OTHER_ID = UUID(int=99)


@pytest.mark.parametrize(
    ("older", "topic_id", "owned", "is_fenced"),
    [
        (1, None, [0], False),
        (1, None, [], False),
        (1, None, [0, 4], True),
        (1, OTHER_ID, [0], True),
        (2, None, [], True),
        (-1, None, [], True),
    ],
    ids=["own", "none", "partition of others", "other topic", "before the previous", "later"],
)
def test_previous_epoch_is_accepted_with_partitions_of_the_member(
    older: int, topic_id: UUID | None, owned: list[int], is_fenced: bool
) -> None:
    # The response with the current epoch may have been lost.
    c = ConsumerCoordination.of("a")
    for count in (3, 4):
        c.grow("t", count)
        c.beat("a", c.epoch("a"))
    epoch = c.epoch("a")
    assert epoch - 1 == c.member("a").previous_member_epoch
    owns = {topic_id or c.topic_id(): owned}

    if is_fenced:
        assert FencedMemberEpoch is refusal(lambda: c.beat("a", epoch - older, owned=owns))[0]
    else:
        assert epoch == c.beat("a", epoch - older, owned=owns).member_epoch


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
