"""
A process of a streams application while tasks are assigned (Kafka's ``ProcessState``).
"""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.coordination.groups.assignors.java_order.hash_order import HashOrder
from barnabas.coordination.groups.assignors.java_order.priority_queue import PriorityQueue
from barnabas.coordination.java_strings import string_hash
from barnabas.protocol.structs import NamedTuple


class TaskId(NamedTuple):
    """
    A task. Tasks compare by partition, then by subtopology.
    """

    partition: int
    subtopology: int
    """The number of the subtopology among all of them, by id."""


class ProcessState:
    """
    The members of one process, their tasks, and the load of the process: tasks for each member.

    No two members of a process may have the same task.
    """

    __slots__ = ("_by_load", "_task_count", "active", "load", "standby", "task_counts", "tasks")

    def __init__(self, member_ids: Sequence[str]) -> None:
        """
        Args:
            member_ids: at least one, in the order of the group.
        """
        self.load = 0.0
        self._task_count = 0
        self.task_counts = dict.fromkeys(HashOrder(string_hash, keys=member_ids), 0)
        self.tasks: set[TaskId] = set()
        self.active: dict[str, list[TaskId]] = {member_id: [] for member_id in member_ids}
        self.standby: dict[str, list[TaskId]] = {member_id: [] for member_id in member_ids}
        self._by_load: PriorityQueue[str] | None = None

    def add_task(self, member_id: str, task: TaskId, *, is_active: bool) -> int:
        """
        Give a task to a member, and return how many it has now.
        """
        self._by_load = None
        return self._add(member_id, task, is_active)

    def add_task_to_least_loaded(self, task: TaskId, *, is_active: bool) -> int:
        """
        Give a task to the member with the fewest, and return how many that has now.
        """
        if self._by_load is None:
            self._by_load = PriorityQueue(self.task_counts.__getitem__, self.task_counts)
        member_id = self._by_load.poll()
        assert member_id is not None, "a process has members"
        count = self._add(member_id, task, is_active)
        self._by_load.add(member_id)
        return count

    def _add(self, member_id: str, task: TaskId, is_active: bool) -> int:
        (self.active if is_active else self.standby)[member_id].append(task)
        self.tasks.add(task)
        self.task_counts[member_id] += 1
        self._task_count += 1
        self.load = self._task_count / len(self.task_counts)
        return self.task_counts[member_id]
