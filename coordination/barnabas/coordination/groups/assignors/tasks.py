"""
What the assignor of tasks is told of a streams group (KIP-1071), and what it answers.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Final, TypeAlias

from barnabas.protocol.structs import NamedTuple

Tasks: TypeAlias = Mapping[str, Collection[int]]
"""
Partitions by subtopology: each is a task.
"""

_NO_TASKS: Final[Tasks] = MappingProxyType({})


class TasksTuple(NamedTuple):
    """
    The tasks of a member (Kafka's ``TasksTuple``).
    """

    active: Tasks = _NO_TASKS
    standby: Tasks = _NO_TASKS
    warmup: Tasks = _NO_TASKS


NO_TASKS: Final = TasksTuple()


class StreamsMemberSpec(NamedTuple):
    """
    A member: its process, and its target assignment so far (``AssignmentMemberSpec``).
    """

    process_id: str
    target: TasksTuple = NO_TASKS
    instance_id: str | None = None
    rack_id: str | None = None
    client_tags: Mapping[str, str] = MappingProxyType({})
    """Kafka's assignor uses neither these nor the ids above."""


class SubtopologySpec(NamedTuple):
    """
    A subtopology: how many tasks it has, and whether they have state, which standbys can keep.
    """

    task_count: int
    is_stateful: bool
