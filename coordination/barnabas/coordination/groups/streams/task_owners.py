"""
The processes that have the tasks of a streams group, in any role.

A task has one active owner. Of its standbys and warm-ups there may be several, but a process has a
task only once, in whatever role.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping
from typing import Final, TypeAlias

from barnabas.coordination.groups.streams.member import (
    AssignedTasks,
    PassiveTasks,
    StreamsGroupMember,
)

Task: TypeAlias = tuple[str, int]
"""
A subtopology and a partition.
"""
NOBODY: Final[Counter[str]] = Counter()


class TaskOwners:
    """
    Processes by task.
    """

    __slots__ = ("active", "standby", "warmup")

    def __init__(self) -> None:
        self.active: dict[Task, str] = {}
        # By the number of its members: a member may change to a process that has the task, too.
        self.standby: defaultdict[Task, Counter[str]] = defaultdict(Counter)
        self.warmup: defaultdict[Task, Counter[str]] = defaultdict(Counter)

    def is_active(self, task: Task) -> bool:
        """
        Whether a process has the task as an active one, or has not given it up yet.
        """
        return task in self.active

    def has_active(self, process_id: str, task: Task) -> bool:
        """
        Whether the process has the task as an active one.
        """
        return self.active.get(task) == process_id

    def has_passive(self, process_id: str, task: Task) -> bool:
        """
        Whether the process has the task as a standby or warm-up.
        """
        return process_id in self.standby.get(task, NOBODY) or process_id in self.warmup.get(
            task, NOBODY
        )

    def add(self, member: StreamsGroupMember) -> None:
        """
        Count what a member has, and what it has to give up.
        """
        for tasks in (member.assigned, member.pending_revocation):
            self.active |= dict.fromkeys(_each(tasks.active), member.process_id)
            for owners, passive in self._passive(tasks):
                for task in _each(passive):
                    owners[task][member.process_id] += 1

    def remove(self, member: StreamsGroupMember) -> None:
        """
        Count it no more.
        """
        for tasks in (member.assigned, member.pending_revocation):
            for task in _each(tasks.active):
                if self.active.get(task) == member.process_id:
                    del self.active[task]
            for owners, passive in self._passive(tasks):
                for task in _each(passive):
                    owners[task] -= Counter((member.process_id,))
                    if not owners[task]:
                        del owners[task]

    def _passive(
        self, tasks: AssignedTasks
    ) -> tuple[tuple[defaultdict[Task, Counter[str]], PassiveTasks], ...]:
        return (self.standby, tasks.standby), (self.warmup, tasks.warmup)


def _each(tasks: Mapping[str, Collection[int]]) -> list[Task]:
    return [
        (subtopology_id, partition)
        for subtopology_id, partitions in tasks.items()
        for partition in partitions
    ]
