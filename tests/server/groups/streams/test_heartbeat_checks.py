"""
The checks of StreamsGroupHeartbeat, in Kafka's order and words.
"""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.protocol.errors import (
    FencedMemberEpoch,
    GroupIdNotFound,
    GroupMaxSizeReached,
    InvalidRequest,
    StreamsInvalidTopology,
    UnknownMemberId,
    UnknownServerError,
)
from barnabas.protocol.messages.streams_group_heartbeat import (
    KeyValue,
    StreamsGroupHeartbeatRequest,
    TaskIds,
    TaskOffset,
)
from barnabas.server.groups.streams.heartbeats import check_heartbeat
from tests.support.coordination import GROUP
from tests.support.refusals import refusal
from tests.support.some import some
from tests.support.streams_groups import StreamsCoordination
from tests.support.streams_programs import (
    COUNTER,
    READER,
    first_heartbeat,
    internal,
    part,
    topology,
)

TASK = [TaskIds(subtopology_id="0", partitions=[0])]
OFFSET = [TaskOffset(subtopology_id="0", partition=0, offset=0)]
NOTHING_TOLD: dict[str, Any] = {
    "rebalance_timeout_ms": -1,
    "topology": None,
    "active_tasks": None,
    "standby_tasks": None,
    "warmup_tasks": None,
}


def request(**facts: Any) -> StreamsGroupHeartbeatRequest:
    """
    A full first request, but for *facts*.
    """
    return first_heartbeat(GROUP, READER, **{"process_id": None, "client_tags": None} | facts)


@pytest.mark.parametrize(
    ("facts", "sentence"),
    [
        ({"instance_id": "", "member_id": ""}, "Static membership is not yet supported."),
        ({"task_offsets": OFFSET}, "TaskOffsets are not supported yet."),
        ({"task_end_offsets": OFFSET}, "TaskEndOffsets are not supported yet."),
        ({"warmup_tasks": TASK, "member_id": ""}, "WarmupTasks are not supported yet."),
        ({"member_id": " ", "group_id": ""}, "MemberId can't be empty."),
        ({"group_id": "\n", "rack_id": ""}, "GroupId can't be empty."),
        ({"rack_id": "", "rebalance_timeout_ms": -1}, "RackId can't be empty."),
        (
            {"rebalance_timeout_ms": -1, "active_tasks": TASK},
            "RebalanceTimeoutMs must be provided in first request.",
        ),
        ({"active_tasks": TASK}, "ActiveTasks must be empty when (re-)joining."),
        ({"standby_tasks": TASK}, "StandbyTasks must be empty when (re-)joining."),
        ({"topology": None}, "Topology must be non-null when (re-)joining."),
        ({"member_epoch": -2}, "InstanceId can't be null."),
        (
            {"member_epoch": -3},
            "MemberEpoch is -3, but must be greater than or equal to -2.",
        ),
        ({"warmup_tasks": None}, "If one task-type is non-null, all must be non-null."),
        ({"member_epoch": 1}, "Topology can only be provided when (re-)joining."),
    ],
)
def test_a_request_that_no_group_takes_is_refused(facts: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        check_heartbeat(request(**facts))

    assert sentence == str(refused.value)


def test_a_changelog_must_not_say_how_many_partitions_it_has() -> None:
    program = topology(part("0", ["t"], changelogs=[internal("c", 3)]))

    with pytest.raises(StreamsInvalidTopology) as refused:
        check_heartbeat(request(topology=program))

    expected = "Changelog topic c must have an undefined partition count, but it is set to 3."
    assert expected == str(refused.value)


def test_requests_of_members_that_stay_and_leave_pass() -> None:
    for epoch in (1, -1):
        check_heartbeat(request(**NOTHING_TOLD | {"member_epoch": epoch}))


def test_a_group_that_does_not_exist_is_not_found() -> None:
    c = StreamsCoordination()

    assert (GroupIdNotFound, f"Streams group {GROUP} not found.") == refusal(lambda: c.beat("m", 1))
    assert (GroupIdNotFound, f"Group {GROUP} not found.") == refusal(lambda: c.go("m"))


def test_a_classic_group_with_members_is_no_streams_group() -> None:
    c = StreamsCoordination()
    c.stable()

    expected = (GroupIdNotFound, f"Group {GROUP} is not a streams group.")
    assert [expected] * 3 == [
        refusal(lambda: c.enter("m")),
        refusal(lambda: c.beat("m", 1)),
        refusal(lambda: c.go("m")),
    ]


def test_a_full_group_takes_nobody() -> None:
    """
    Not even a member that joins again, as in Kafka.
    """
    c = StreamsCoordination(group_streams_max_size=1)
    c.create("t", 1)
    c.enter("a")

    expected = (
        GroupMaxSizeReached,
        "The streams group has reached its maximum capacity of 1 members.",
    )
    assert [expected] * 2 == [refusal(lambda: c.enter("b")), refusal(lambda: c.enter("a"))]
    c.report("a")


def test_a_member_is_known_and_at_its_epoch() -> None:
    c = StreamsCoordination()
    c.create("t", 2)
    c.enter("a")
    c.enter("b")
    c.settle("a", "b")

    unknown = f"Member x is not a member of group {GROUP}."
    assert (UnknownMemberId, unknown) == refusal(lambda: c.beat("x", 3))
    assert (UnknownMemberId, unknown) == refusal(lambda: c.go("x"))
    error, sentence = refusal(lambda: c.beat("a", 9))
    assert FencedMemberEpoch is error
    assert "greater member epoch (9) than the one known by the group coordinator (3)" in sentence


def test_the_epoch_before_is_accepted_with_tasks_that_the_member_has() -> None:
    """
    The answer with the epoch may have been lost.
    """
    c = StreamsCoordination()
    c.create("t", 2)
    c.enter("a")
    c.enter("b")
    c.settle("a", "b")
    (mine,) = c.active("a")["0"]

    assert 3 == c.beat("a", 2, active={"0": [mine]}).member_epoch
    for owned in ({"0": [1 - mine]}, {"1": [0]}, None):
        error, _ = refusal(lambda owned=owned: c.beat("a", 2, active=owned))
        assert FencedMemberEpoch is error


def test_tasks_that_the_topology_does_not_have_are_refused() -> None:
    c = StreamsCoordination()
    c.create("t", 2)
    c.enter("a")

    missing = "Subtopology 7 does not exist in the topology."
    assert (InvalidRequest, missing) == refusal(lambda: c.beat("a", 2, active={"7": [0]}))
    beyond = "Task 2 for subtopology 0 is invalid. Number of tasks for this subtopology: 2"
    assert (InvalidRequest, beyond) == refusal(lambda: c.beat("a", 2, standby={"0": [2]}))


def test_tags_that_are_there_twice_are_refused() -> None:
    c = StreamsCoordination()
    tags = [KeyValue(key="a", value=value) for value in "bc"]

    assert UnknownServerError is refusal(lambda: c.enter("a", client_tags=tags))[0]


def test_a_topology_stays_as_the_first_member_brought_it() -> None:
    c = StreamsCoordination()
    c.create("t", 2)
    c.create("t-changelog", 2)
    later = topology(part("0", ["t"]), epoch=4)
    c.enter("a", later)

    updates = (InvalidRequest, "Topology updates are not supported yet.")
    assert updates == refusal(lambda: c.enter("b", topology(part("0", ["t"]), epoch=5)))
    other = topology(*COUNTER.subtopologies, epoch=4)
    assert updates == refusal(lambda: c.enter("b", other))
    c.enter("b", later)


def test_a_member_with_an_older_topology_is_told() -> None:
    """
    Whatever its topology says.
    """
    c = StreamsCoordination()
    c.create("t", 2)
    c.enter("a", topology(part("0", ["t"]), epoch=4))

    answer = c.enter("b", topology(part("x", ["u"]), epoch=3))

    (status,) = some(answer.status or ())
    expected = "The member's topology epoch 3 is behind the group's topology epoch 4."
    assert (0, expected) == (status.status_code, status.status_detail)
    assert answer.active_tasks is not None
