"""
The checks of StreamsGroupHeartbeat that depend on the members of a group. test_group_answers.py
compares the others with Apache Kafka.
"""

from __future__ import annotations

from barnabas.protocol.errors import (
    FencedMemberEpoch,
    GroupIdNotFound,
    InvalidRequest,
    UnknownMemberId,
    UnknownServerError,
)
from barnabas.protocol.messages.streams_group_heartbeat import KeyValue
from tests.support.coordination import GROUP
from tests.support.refusals import refusal
from tests.support.some import some
from tests.support.streams_groups import StreamsCoordination
from tests.support.streams_programs import COUNTER, part, topology


def test_classic_group_with_members_is_no_streams_group() -> None:
    c = StreamsCoordination()
    c.stable()

    expected = (GroupIdNotFound, f"Group {GROUP} is not a streams group.")
    assert [expected] * 3 == [
        refusal(lambda: c.enter("m")),
        refusal(lambda: c.beat("m", 1)),
        refusal(lambda: c.go("m")),
    ]


def test_member_must_be_known_and_at_its_epoch() -> None:
    c = StreamsCoordination.of("a", "b")

    unknown = f"Member x is not a member of group {GROUP}."
    assert (UnknownMemberId, unknown) == refusal(lambda: c.beat("x", 3))
    assert (UnknownMemberId, unknown) == refusal(lambda: c.go("x"))
    error, sentence = refusal(lambda: c.beat("a", 9))
    assert FencedMemberEpoch is error
    assert "greater member epoch (9) than the one known by the group coordinator (3)" in sentence


def test_previous_epoch_with_tasks_of_the_member_is_accepted() -> None:
    # The response with the current epoch may have been lost.
    c = StreamsCoordination.of("a", "b")
    (mine,) = c.active("a")["0"]

    assert 3 == c.beat("a", 2, active={"0": [mine]}).member_epoch
    for owned in ({"0": [1 - mine]}, {"1": [0]}, None):
        error, _ = refusal(lambda owned=owned: c.beat("a", 2, active=owned))
        assert FencedMemberEpoch is error


def test_unknown_tasks_are_refused() -> None:
    c = StreamsCoordination.of("a")

    missing = "Subtopology 7 does not exist in the topology."
    assert (InvalidRequest, missing) == refusal(lambda: c.beat("a", 2, active={"7": [0]}))
    beyond = "Task 2 for subtopology 0 is invalid. Number of tasks for this subtopology: 2"
    assert (InvalidRequest, beyond) == refusal(lambda: c.beat("a", 2, standby={"0": [2]}))


def test_duplicate_tags_are_refused() -> None:
    c = StreamsCoordination()
    tags = [KeyValue(key="a", value=value) for value in "bc"]

    assert UnknownServerError is refusal(lambda: c.enter("a", client_tags=tags))[0]


def test_topology_of_the_first_member_is_kept() -> None:
    c = StreamsCoordination({"t": 2, "t-changelog": 2})
    later = topology(part("0", ["t"]), epoch=4)
    c.enter("a", later)

    updates = (InvalidRequest, "Topology updates are not supported yet.")
    assert updates == refusal(lambda: c.enter("b", topology(part("0", ["t"]), epoch=5)))
    other = topology(*COUNTER.subtopologies, epoch=4)
    assert updates == refusal(lambda: c.enter("b", other))
    c.enter("b", later)


def test_member_with_an_older_topology_epoch_is_told() -> None:
    c = StreamsCoordination({"t": 2})
    c.enter("a", topology(part("0", ["t"]), epoch=4))

    answer = c.enter("b", topology(part("x", ["u"]), epoch=3))

    (status,) = some(answer.status or ())
    expected = "The member's topology epoch 3 is behind the group's topology epoch 4."
    assert (0, expected) == (status.status_code, status.status_detail)
    assert answer.active_tasks is not None
