from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.coordination.groups.assignors.errors import TaskAssignorError
from barnabas.coordination.groups.assignors.sticky_assignor import assign
from barnabas.coordination.groups.assignors.tasks import (
    StreamsMemberSpec,
    SubtopologySpec,
    Tasks,
    TasksTuple,
)

STATEFUL = {"0": SubtopologySpec(2, is_stateful=True)}


def member(
    process_id: str, active: Tasks | None = None, standby: Tasks | None = None
) -> StreamsMemberSpec:
    return StreamsMemberSpec(process_id, TasksTuple(active or {}, standby or {}))


def active(assignments: Mapping[str, TasksTuple]) -> dict[str, Tasks]:
    return {member_id: tasks.active for member_id, tasks in assignments.items()}


def standby(assignments: Mapping[str, TasksTuple]) -> dict[str, Tasks]:
    return {member_id: tasks.standby for member_id, tasks in assignments.items()}


class TestActiveTasks:
    def test_tasks_of_removed_subtopologies_are_forgotten(self) -> None:
        members = {"m0": member("p0", {"9": [0], "0": [7]}, {"9": [0]})}

        assert {"m0": {"0": (0, 1)}} == active(assign(members, STATEFUL))


class TestStandbyTasks:
    def test_standby_tasks_stay_where_they_are(self) -> None:
        members = {
            "m0": member("p0", {"0": [1]}, {"0": [0]}),
            "m1": member("p1", {"0": [0]}),
            "m2": member("p2", {}, {"0": [1]}),
        }

        assignments = assign(members, STATEFUL, 1)

        assert all(spec.target is assignments[m] for m, spec in members.items())


def _ids(tasks: Tasks) -> set[tuple[str, int]]:
    return {(subtopology, number) for subtopology, numbers in tasks.items() for number in numbers}


def test_tasks_without_members_are_an_error() -> None:
    with pytest.raises(TaskAssignorError, match="no members"):
        assign({}, STATEFUL)
    assert {} == assign({}, {})


def test_warmup_task_is_removed() -> None:
    spec = StreamsMemberSpec("p0", TasksTuple({"0": (0, 1)}, {}, {"0": (0,)}))

    assert {"m0": TasksTuple({"0": (0, 1)})} == assign({"m0": spec}, STATEFUL)


@given(
    st.lists(
        st.tuples(st.integers(0, 6), st.integers(0, 3), st.booleans()), min_size=1, max_size=15
    ),
    st.lists(st.tuples(st.integers(1, 9), st.booleans()), min_size=1, max_size=3),
    st.integers(0, 2),
)
def test_members_that_come_and_go_keep_the_task_assignment_balanced(
    steps: list[tuple[int, int, bool]], subtopologies: list[tuple[int, bool]], replicas: int
) -> None:
    topology = {f"{at}": SubtopologySpec(*each) for at, each in enumerate(subtopologies)}
    members: dict[str, StreamsMemberSpec] = {}
    for at, process, is_there in steps:
        if is_there:
            members.setdefault(f"m{at}", member(f"p{process}"))
        else:
            members.pop(f"m{at}", None)
        if not members:
            continue
        assignments = assign(members, topology, replicas)
        members = {m: s._replace(target=assignments[m]) for m, s in members.items()}

        by_process: dict[str, list[tuple[str, int]]] = {}
        for spec in members.values():
            tasks = [*_ids(spec.target.active), *_ids(spec.target.standby)]
            by_process.setdefault(spec.process_id, []).extend(tasks)
        assert all(len(tasks) == len(set(tasks)) for tasks in by_process.values())
        everything = [task for tasks in by_process.values() for task in tasks]
        for subtopology, (task_count, is_stateful) in topology.items():
            standbys = min(replicas, len(by_process) - 1) if is_stateful else 0
            for number in range(task_count):
                assert 1 + standbys == everything.count((subtopology, number))
        actives = [task for s in members.values() for task in _ids(s.target.active)]
        assert len(actives) == len(set(actives)) == sum(s.task_count for s in topology.values())
