"""
``sticky``: tasks of a streams group stay where they are, or go where their state is (KIP-1071,
Kafka's ``StickyTaskAssignor``).

Active tasks come to the members that had them, then to those that had them as standbys, as long as
these are below a quota: the tasks that are left for each member that may still get some. The rest
comes to the least loaded processes. Standby tasks follow with a quota of their own, on processes
that do not have the task.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from barnabas.coordination.groups.assignors.errors import TaskAssignorError
from barnabas.coordination.groups.assignors.java_order.hash_order import HashOrder
from barnabas.coordination.groups.assignors.java_order.hashing import table_size
from barnabas.coordination.groups.assignors.java_order.priority_queue import PriorityQueue
from barnabas.coordination.groups.assignors.process_state import ProcessState, TaskId
from barnabas.coordination.groups.assignors.spec import is_same
from barnabas.coordination.groups.assignors.tasks import (
    StreamsMemberSpec,
    SubtopologySpec,
    Tasks,
    TasksTuple,
)
from barnabas.coordination.java_strings import string_hash, string_rank
from barnabas.protocol.structs import NamedTuple

NAME: Final = "sticky"


def assign(
    members: Mapping[str, StreamsMemberSpec],
    topology: Mapping[str, SubtopologySpec],
    num_standby_replicas: int = 0,
) -> dict[str, TasksTuple]:
    """
    The target assignment of each member; the one that it has, if it is the same.

    Where there are too few processes a task has fewer standbys.

    Args:
        members: by member id, in the order of ``member_order``.
        topology: by subtopology.

    Raises:
        TaskAssignorError: there are tasks, but no members.
    """
    if not members:
        if any(subtopology.task_count for subtopology in topology.values()):
            raise TaskAssignorError("The group has tasks, but no members.")
        return {}
    return _Builder(members, topology, num_standby_replicas).build()


class _Member(NamedTuple):
    """
    A member in its process.
    """

    member_id: str
    process: ProcessState

    @property
    def task_count(self) -> int:
        return self.process.task_counts[self.member_id]


class _Quota:
    """
    How many tasks a member may have: those that are left, over the members that are not full.
    """

    def __init__(self, task_count: int, member_count: int) -> None:
        self._task_count = task_count
        self._member_count = member_count
        self.each = self._compute()

    def _compute(self) -> int:
        return -(-self._task_count // self._member_count) if self._member_count else 0

    def count(self, task_count: int) -> None:
        """
        Take note of a member that has got a task: it is full if it has its quota now.
        """
        if task_count == self.each:
            self._member_count -= 1
            self._task_count -= task_count
            self.each = self._compute()


class _Builder:
    """
    One assignment under way.
    """

    def __init__(
        self,
        members: Mapping[str, StreamsMemberSpec],
        topology: Mapping[str, SubtopologySpec],
        num_standby_replicas: int,
    ) -> None:
        self._specs = members
        self._replicas = num_standby_replicas
        self._subtopology_ids = sorted(topology, key=string_rank)
        self._topology = topology
        self._processes = _processes(members)
        stateful = [t.task_count for t in topology.values() if t.is_stateful]
        active_count = sum(t.task_count for t in topology.values())
        task_count = active_count + num_standby_replicas * sum(stateful)
        self._active_quota = _Quota(active_count, len(members))
        self._quota = _Quota(task_count, len(members))
        self._previous_active: dict[TaskId, _Member] = {}
        self._previous_standby: defaultdict[TaskId, list[_Member]] = defaultdict(list)
        self._remember()

    def _remember(self) -> None:
        """
        Take note of who has which task.
        """
        for member_id, spec in self._specs.items():
            member = _Member(member_id, self._processes[spec.process_id])
            for task in self._known_tasks(spec.target.active):
                self._previous_active[task] = member
            for task in self._known_tasks(spec.target.standby):
                self._previous_standby[task].append(member)

    def _known_tasks(self, tasks: Tasks) -> Iterator[TaskId]:
        for number, subtopology_id in enumerate(self._subtopology_ids):
            for partition in tasks.get(subtopology_id, ()):
                yield TaskId(partition, number)

    def _tasks(self, *, only_stateful: bool) -> list[TaskId]:
        return [
            TaskId(partition, number)
            for number, subtopology_id in enumerate(self._subtopology_ids)
            if self._topology[subtopology_id].is_stateful or not only_stateful
            for partition in range(self._topology[subtopology_id].task_count)
        ]

    def build(self) -> dict[str, TasksTuple]:
        self._assign_active()
        if self._replicas > 0:
            self._assign_standby()
        return {member_id: self._result(member_id, spec) for member_id, spec in self._specs.items()}

    def _result(self, member_id: str, spec: StreamsMemberSpec) -> TasksTuple:
        process, target = self._processes[spec.process_id], spec.target
        active = self._by_subtopology(process.active[member_id])
        standby = self._by_subtopology(process.standby[member_id])
        is_unchanged = (
            is_same(active, target.active)
            and is_same(standby, target.standby)
            and not target.warmup
        )
        return target if is_unchanged else TasksTuple(active, standby)

    def _by_subtopology(self, tasks: Iterable[TaskId]) -> dict[str, tuple[int, ...]]:
        """
        Tasks in the order of the record that Kafka writes of them.
        """
        found: defaultdict[int, list[int]] = defaultdict(list)
        for partition, number in sorted(tasks, key=_by_subtopology_first):
            found[number].append(partition)
        return {self._subtopology_ids[number]: tuple(each) for number, each in found.items()}

    # Active tasks

    def _assign_active(self) -> None:
        tasks = sorted(self._tasks(only_stateful=False))
        tasks = [task for task in tasks if not self._reactivate(task)]
        tasks = [task for task in tasks if not self._activate_standby(task)]
        by_load = self._processes_by_load()
        for task in sorted(tasks, key=_by_subtopology_first):
            process = by_load.poll()
            assert process is not None, "there is a member, and so a process"
            self._count_active(process.add_task_to_least_loaded(task, is_active=True))
            by_load.add(process)

    def _reactivate(self, task: TaskId) -> bool:
        """
        Give the task to the member that had it, and say whether that was possible.
        """
        return self._activate(task, self._previous_active.get(task))

    def _activate_standby(self, task: TaskId) -> bool:
        """
        Give the task to a member that had it as a standby, and say whether that was possible.
        """
        return self._activate(task, _least_loaded(self._previous_standby.get(task, ())))

    def _activate(self, task: TaskId, member: _Member | None) -> bool:
        if member is None or member.task_count >= self._active_quota.each:
            return False
        self._count_active(member.process.add_task(member.member_id, task, is_active=True))
        return True

    def _count_active(self, task_count: int) -> None:
        self._active_quota.count(task_count)
        self._quota.count(task_count)

    # Standby tasks

    def _assign_standby(self) -> None:
        remaining: list[tuple[TaskId, int]] = []
        for task in sorted(self._tasks(only_stateful=True), reverse=True):
            lacking = self._replicas
            while lacking > 0 and self._keep_standby(task):
                lacking -= 1
            if lacking > 0:
                remaining.append((task, lacking))
        by_load = self._processes_by_load()
        for task, lacking in sorted(
            remaining, key=lambda item: _by_subtopology_first(item[0]), reverse=True
        ):
            for _ in range(lacking):
                if not self._add_standby(task, by_load):
                    break

    def _keep_standby(self, task: TaskId) -> bool:
        """
        Give a replica to a process that has the state, and say whether that was possible.
        """
        active = self._previous_active.get(task)
        standby = _least_loaded(self._previous_standby.get(task, ()), task)
        for member in (active, standby):
            if (
                member is not None
                and task not in member.process.tasks
                and member.task_count < self._quota.each
            ):
                count = member.process.add_task(member.member_id, task, is_active=False)
                self._quota.count(count)
                return True
        return False

    def _add_standby(self, task: TaskId, by_load: PriorityQueue[ProcessState]) -> bool:
        """
        Give a replica to the least loaded process without the task, and say whether there is one.
        """
        polled: list[ProcessState] = []
        while (process := by_load.poll()) is not None:
            polled.append(process)
            if task not in process.tasks:
                self._quota.count(process.add_task_to_least_loaded(task, is_active=False))
                break
        for other in reversed(polled):
            by_load.add(other)
        return process is not None

    def _processes_by_load(self) -> PriorityQueue[ProcessState]:
        return PriorityQueue(_load, self._processes.values())


def _processes(members: Mapping[str, StreamsMemberSpec]) -> dict[str, ProcessState]:
    """
    The processes in the order of the map that Kafka makes of them.
    """
    member_ids: defaultdict[str, list[str]] = defaultdict(list)
    for member_id, spec in members.items():
        member_ids[spec.process_id].append(member_id)
    order = HashOrder(string_hash, table_size(len(members)), member_ids)
    return {process_id: ProcessState(member_ids[process_id]) for process_id in order}


def _least_loaded(members: Sequence[_Member], task: TaskId | None = None) -> _Member | None:
    """
    Of the members that had a task as a standby, one of the least loaded.

    As in Kafka, the first of them decides whether there is any: if its process has got the task,
    nobody is found.

    Args:
        task: processes that have got it are passed over.
    """
    if not members:
        return None
    first = found = members[0]
    for member in members[1:]:
        if (
            member.process.load < found.process.load
            and task not in member.process.tasks
            and member.task_count < found.task_count
        ):
            found = member
    return None if task in first.process.tasks else found


def _load(process: ProcessState) -> float:
    return process.load


def _by_subtopology_first(task: TaskId) -> tuple[int, int]:
    return task.subtopology, task.partition
