"""
Members of streams groups join, get tasks, pass them on, and leave.
"""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.coordination.groups.modern.records import ModernRecord
from barnabas.coordination.groups.streams.member import (
    AssignedTasks,
    MemberState,
    StreamsGroupMember,
)
from barnabas.coordination.groups.streams.statuses import StatusCode
from barnabas.coordination.groups.streams.task_owners import TaskOwners
from barnabas.protocol.errors import ErrorCode, FencedMemberEpoch
from barnabas.protocol.internal_topics.group_records import streams as schemas
from tests.support.coordination import GROUP
from tests.support.some import some
from tests.support.streams_groups import (
    REBALANCE_TIMEOUT_MS,
    StreamsCoordination,
    as_lists,
    statuses,
    streams_facts,
)
from tests.support.streams_programs import COUNTER, internal, part, topology

SESSION_MS = 45_000


def test_first_member_gets_all_tasks_at_once() -> None:
    c = StreamsCoordination({"t": 3})

    answer = c.enter("a")

    assert ["19 a", "23", "17", "21 a", "20", "22 a"] == c.last
    assert (2, 5000, []) == (answer.member_epoch, answer.heartbeat_interval_ms, answer.status)
    assert answer.active_tasks is not None
    assert [("0", [0, 1, 2])] == [(e.subtopology_id, e.partitions) for e in answer.active_tasks]
    assert ([], []) == (answer.standby_tasks, answer.warmup_tasks)
    assert "Stable" == c.streams.state_name
    assert 0 == c.streams.validated_topology_epoch


def test_task_moves_once_its_member_has_confirmed_the_revocation() -> None:
    c = StreamsCoordination.of("a")
    assert {} == as_lists({e.subtopology_id: e.partitions for e in c.enter("b").active_tasks or ()})
    assert MemberState.UNRELEASED_TASKS is c.member("b").state

    answer = c.beat("a", 2)
    assert 2 == answer.member_epoch
    assert MemberState.UNREVOKED_TASKS is c.member("a").state
    assert 1 == len(c.active("a")["0"])
    assert "Reconciling" == c.streams.state_name
    c.report("b")
    assert {} == c.active("b")

    assert 3 == c.report("a").member_epoch
    c.report("b")
    assert [0, 1] == sorted(c.active("a")["0"] + c.active("b")["0"])
    assert "Stable" == c.streams.state_name


def test_standby_task_is_in_another_process_than_the_active_task() -> None:
    c = StreamsCoordination({"t": 2}, group={"streams_num_standby_replicas": 1})
    c.enter("a", COUNTER, process="p")
    c.create_missing()
    c.enter("b", COUNTER, process="p")
    c.settle("a", "b")
    assert ({}, {}) == (c.standby("a"), c.standby("b"))

    c.enter("c", COUNTER, process="q")
    c.settle("a", "b", "c")

    assert ({}, {"0": [0, 1]}) == (c.active("c"), c.standby("c"))
    assert ({}, {}) == (c.standby("a"), c.standby("b"))


def test_process_owns_a_task_until_its_last_member_revokes_it() -> None:
    # Two members of a process have the same standby once one of them has moved there.
    owners = TaskOwners()
    tasks = AssignedTasks(standby={"0": frozenset({1})})
    first, second = (
        StreamsGroupMember(member_id=name, process_id="p", assigned=tasks) for name in "ab"
    )
    owners.add(first)
    owners.add(second)

    owners.remove(first)
    assert owners.has_passive("p", ("0", 1))
    owners.remove(second)
    assert not owners.has_passive("p", ("0", 1))
    assert not owners.standby


def test_changed_number_of_standbys_begins_an_epoch() -> None:
    c = StreamsCoordination({"t": 2})
    c.enter("a", COUNTER)
    c.create_missing()
    c.enter("b", COUNTER)
    c.settle("a", "b")
    epoch = c.streams.group_epoch

    c.set_options(streams_num_standby_replicas=1)
    c.report("a")

    assert epoch + 1 == c.streams.group_epoch
    assert {"num.standby.replicas": "1"} == c.streams.assignment_configs
    c.settle("a", "b")
    assert (c.active("a"), c.active("b")) == (c.standby("b"), c.standby("a"))


def test_group_has_no_tasks_until_its_internal_topics_exist() -> None:
    c = StreamsCoordination({"t": 2})

    answer = c.enter("a", COUNTER)

    assert [StatusCode.MISSING_INTERNAL_TOPICS] == statuses(answer)
    assert ["t-changelog"] == list(c.missing)
    assert "NotReady" == c.streams.state_name
    assert -1 == c.streams.validated_topology_epoch
    assert [] == answer.active_tasks
    assert [StatusCode.MISSING_INTERNAL_TOPICS] == statuses(c.report("a"))
    c.create_missing()
    c.settle("a")
    assert [] == statuses(c.report("a"))
    assert {"0": [0, 1]} == c.active("a")
    assert "Stable" == c.streams.state_name


def test_source_topic_that_disappears_and_returns_changes_the_group() -> None:
    c = StreamsCoordination()
    assert [StatusCode.MISSING_SOURCE_TOPICS] == statuses(c.enter("a"))
    assert "NotReady" == c.streams.state_name

    c.create("t", 2)
    c.settle("a")
    assert {"0": [0, 1]} == c.active("a")
    c.grow("t", 3)
    c.settle("a")
    assert {"0": [0, 1, 2]} == c.active("a")
    c.delete("t")
    assert [StatusCode.MISSING_SOURCE_TOPICS] == statuses(c.report("a"))
    c.settle("a")
    assert {} == c.active("a")
    assert "NotReady" == c.streams.state_name


def test_first_assignment_waits_for_the_initial_rebalance_delay() -> None:
    c = StreamsCoordination({"t": 2}, group={"streams_initial_rebalance_delay_ms": 3000})
    answer = c.enter("a")
    assert ([StatusCode.ASSIGNMENT_DELAYED], 1) == (statuses(answer), answer.member_epoch)
    c.advance(1000)
    c.enter("b")
    assert "Assigning" == c.streams.state_name

    c.advance(1999)
    assert [StatusCode.ASSIGNMENT_DELAYED] == statuses(c.report("a"))
    c.advance(1)

    assert ["21 a", "21 b", "20"] == sorted(c.last, key=lambda each: ("20" in each, each))
    assert [] == statuses(c.report("a"))
    c.settle("a", "b")
    assert [0, 1] == sorted(c.active("a")["0"] + c.active("b")["0"])


@pytest.mark.parametrize("returns", [False, True])
def test_initial_delay_ends_for_a_group_that_was_empty_meanwhile(returns: bool) -> None:
    c = StreamsCoordination({"t": 2}, group={"streams_initial_rebalance_delay_ms": 3000})
    c.enter("a")
    c.go("a")
    c.advance(2000)
    if returns:
        c.enter("a")
    before = len(c.batches)

    c.advance(1000)

    assert returns == (len(c.batches) > before)
    if returns:
        assert [] == statuses(c.report("a"))
        assert {"0": [0, 1]} == c.active("a")


def test_deleting_a_group_does_not_end_the_delay_of_its_successor() -> None:
    c = StreamsCoordination.of("a", group={"streams_initial_rebalance_delay_ms": 3000})
    c.go("a")
    c.advance(2000)
    changes, _ = c.state.deleting.delete_groups([GROUP])
    c.write(changes)
    c.enter("a")
    c.report("a")

    c.advance(2999)
    assert [StatusCode.ASSIGNMENT_DELAYED] == statuses(c.report("a"))
    c.advance(1)
    assert [] == statuses(c.report("a"))
    assert {"0": [0, 1]} == c.active("a")


def test_topology_that_becomes_valid_begins_an_epoch() -> None:
    c = StreamsCoordination.of("a")
    c.streams.validated_topology_epoch = -1
    assert "NotReady" == c.streams.state_name

    c.report("a")

    assert (3, 0) == (c.streams.group_epoch, c.streams.validated_topology_epoch)


def test_assignments_are_at_least_an_interval_apart() -> None:
    c = StreamsCoordination.of("a", group={"streams_assignment_interval_ms": 1000})

    answer = c.enter("b")
    assert [StatusCode.ASSIGNMENT_DELAYED] == statuses(answer)
    assert "Assigning" == c.streams.state_name
    c.advance(999)
    assert [StatusCode.ASSIGNMENT_DELAYED] == statuses(c.report("b"))
    c.advance(1)
    assert [] == statuses(c.report("b"))


def test_member_that_does_not_revoke_its_tasks_in_time_is_fenced() -> None:
    c = StreamsCoordination({"t": 2})
    c.enter("a")
    c.enter("b")
    for _ in range(3):
        c.beat("a", 2)
        c.report("b")
        c.advance(REBALANCE_TIMEOUT_MS // 3)

    assert ["b"] == list(c.streams.members)


def test_shutdown_request_is_passed_to_all_members_until_the_group_is_empty() -> None:
    c = StreamsCoordination({"t": 2})
    c.enter("a")
    c.enter("b")
    answer = c.beat("a", 2, shutdown_application=True)
    assert [StatusCode.SHUTDOWN_APPLICATION] == statuses(answer)
    c.go("a", shutdown_application=True)

    (status,) = some(c.report("b").status or ())
    assert (
        "Streams group member a encountered a fatal error and requested a shutdown for the entire"
        " application." == status.status_detail
    )
    c.go("b")
    assert [] == statuses(c.enter("a"))


def test_empty_classic_group_becomes_a_streams_group_and_back() -> None:
    c = StreamsCoordination({"t": 2})
    (classic,) = c.stable()
    c.leave(classic)
    c.commit_offsets({("t", 0): 5})

    c.enter("a")
    assert "-2" == c.last[0]
    assert "streams" == c.streams.type.value
    c.go("a")
    c.join(version=3)
    assert ["-20", "-17", "-23", "2"] == c.last
    assert c.state.offsets.is_known(GROUP, "t", 0)


def test_tombstones_of_a_streams_group_are_in_kafkas_order() -> None:
    c = StreamsCoordination.of("a")
    assert [(GROUP, ErrorCode.NON_EMPTY_GROUP)] == c.state.deleting.delete_groups([GROUP])[1]
    c.go("a")

    changes, _ = c.state.deleting.delete_groups([GROUP])
    c.write(changes)

    assert ["-20", "-17", "-23"] == c.last
    assert c.state.groups.get(GROUP) is None
    assert {} == streams_facts(c.replayed())


def test_tasks_of_several_subtopologies_are_shared_by_the_members() -> None:
    program = topology(
        part("0", ["t"], sinks=["r"]),
        part("1", repartition=[internal("r", 2)], changelogs=[internal("c")]),
    )
    c = StreamsCoordination({"t": 2})
    c.enter("a", program)
    c.create_missing()
    c.enter("b", program)
    c.settle("a", "b")

    counts = {each: sum(map(len, c.active(each).values())) for each in "ab"}
    assert {"a": 2, "b": 2} == counts


def test_tasks_in_records_before_kafka_4_3_have_the_epoch_of_their_member() -> None:
    c = StreamsCoordination.of("a")
    (current,) = [
        record
        for record in c.batches[-1]
        if isinstance(record, ModernRecord) and record.key.api.key == 22
    ]
    tasks = schemas.CurrentTaskIds(subtopology_id="0", partitions=[0, 1])
    value: Any = current.value
    c.state.apply(
        ModernRecord(current.key, type(value)(**_fields(value) | {"active_tasks": [tasks]})), 0, -1
    )

    assert {"0": {0: 2, 1: 2}} == c.member("a").assigned.active


def _fields(value: Any) -> dict[str, Any]:
    return {name: getattr(value, name) for name in type(value).__annotations__ if name != "api"}


def test_member_in_an_unknown_state_starts_over() -> None:
    c = StreamsCoordination.of("a")
    member = c.member("a")
    c.streams.members["a"] = type(member)(
        **{
            name: getattr(member, name)
            for name in ("member_id", "member_epoch", "process_id", "assigned", "topology_epoch")
        },
        state=MemberState.of(9),
        client_id="client",
        client_host="/127.0.0.1",
        rebalance_timeout_ms=REBALANCE_TIMEOUT_MS,
    )

    with pytest.raises(FencedMemberEpoch, match="unknown state"):
        c.beat("a", 2)
    c.beat("a", 2, active={})
    assert MemberState.STABLE is c.member("a").state
