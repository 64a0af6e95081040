"""
The next assignment of a member on its way to its target (Kafka's ``CurrentAssignmentBuilder`` of
streams groups).

::

            gives up what the target has not    gets what no process has that must not
    STABLE ----------------> UNREVOKED_TASKS ----------------------------> STABLE
       |                      (its epoch stays)    |                         ^
       |                                           | others still have       |
       +-------------------------------------------+ some tasks              |
                                                   v                         |
                                           UNRELEASED_TASKS -----------------+
                                          (it has the new epoch)

An active task moves only after its member has shown, by a heartbeat that lists what it owns, that
it gave the task up. A process never has a task in two roles.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeAlias

from barnabas.coordination.groups.assignors.tasks import Tasks, TasksTuple
from barnabas.coordination.groups.streams.member import (
    NO_ASSIGNED_TASKS,
    AssignedTasks,
    MemberState,
    PassiveTasks,
    StreamsGroupMember,
)
from barnabas.coordination.groups.streams.task_owners import Task, TaskOwners
from barnabas.protocol.errors import FencedMemberEpoch
from barnabas.protocol.structs import NamedTuple, replace

IsUnreleased: TypeAlias = Callable[[Task], bool]
"""
Says whether a process has a task that must not have it when the member gets it.
"""


class Goal(NamedTuple):
    """
    What a member is reconciled with.
    """

    epoch: int  # of the target assignment
    target: TasksTuple
    owners: TaskOwners  # of the group, with the member itself
    owned: TasksTuple | None  # what the member says it owns; None: not said


def reconciled(member: StreamsGroupMember, goal: Goal) -> StreamsGroupMember:
    """
    The member after its next step; the same object if there is none.

    Raises:
        FencedMemberEpoch: its state is one of a later release, and it still owns tasks.
    """
    match member.state:
        case MemberState.STABLE:
            if member.member_epoch == goal.epoch:
                return member
            return _next_assignment(member, goal, member.member_epoch)
        case MemberState.UNREVOKED_TASKS:
            if _still_owns(member.pending_revocation, goal.owned):
                return member
            return _next_assignment(member, goal, member.member_epoch + 1)
        case MemberState.UNRELEASED_TASKS:
            return _next_assignment(member, goal, member.member_epoch)
        case _:
            if goal.owned is None or any(goal.owned):
                raise FencedMemberEpoch(
                    "The streams group member is in a unknown state. The member must abandon all"
                    " its tasks and rejoin."
                )
            return _next_assignment(member, goal, goal.epoch)


def _still_owns(given_up: AssignedTasks, owned: TasksTuple | None) -> bool:
    """
    Whether the member may still own some of these tasks.
    """
    return owned is None or any(
        not set(partitions).isdisjoint(of_role.get(subtopology_id, ()))
        for said, of_role in zip(owned, given_up.by_role, strict=True)
        for subtopology_id, partitions in said.items()
    )


class _Difference:
    """
    The way from the tasks of one role to the target.
    """

    __slots__ = ("has_unreleased", "kept", "new", "revoked")

    def __init__(
        self, current: Mapping[str, Collection[int]], target: Tasks, is_unreleased: IsUnreleased
    ) -> None:
        self.kept: dict[str, frozenset[int]] = {}
        self.revoked: dict[str, frozenset[int]] = {}
        self.new: dict[str, frozenset[int]] = {}
        self.has_unreleased = False
        for subtopology_id in dict.fromkeys((*target, *current)):
            has = frozenset(current.get(subtopology_id, ()))
            wanted = frozenset(target.get(subtopology_id, ()))
            missing = wanted - has
            free = frozenset(each for each in missing if not is_unreleased((subtopology_id, each)))
            self.has_unreleased |= len(free) < len(missing)
            for result, tasks in (
                (self.kept, has & wanted),
                (self.revoked, has - wanted),
                (self.new, free),
            ):
                if tasks:
                    result[subtopology_id] = tasks

    def with_new(self) -> PassiveTasks:
        """
        What is kept, and what is new.
        """
        nothing: frozenset[int] = frozenset()
        return {
            subtopology_id: self.kept.get(subtopology_id, nothing)
            | self.new.get(subtopology_id, nothing)
            for subtopology_id in dict.fromkeys((*self.kept, *self.new))
        }


def _next_assignment(member: StreamsGroupMember, goal: Goal, epoch: int) -> StreamsGroupMember:
    """
    The member at *epoch* if it has to give tasks up, otherwise at the epoch of the target.
    """
    owners, process_id = goal.owners, member.process_id
    current, target = member.assigned, goal.target

    def is_unreleased_active(task: Task) -> bool:
        return owners.is_active(task) or owners.has_passive(process_id, task)

    def is_unreleased(task: Task) -> bool:
        return owners.has_active(process_id, task) or owners.has_passive(process_id, task)

    active = _Difference(current.active, target.active, is_unreleased_active)
    standby = _Difference(current.standby, target.standby, is_unreleased)
    warmup = _Difference(current.warmup, target.warmup, is_unreleased)

    def with_epochs(tasks: PassiveTasks) -> dict[str, dict[int, int]]:
        """
        Tasks that the member has with the epochs at which it got them, new ones with the target's.
        """
        return {
            subtopology_id: {
                each: current.active.get(subtopology_id, {}).get(each, goal.epoch)
                for each in sorted(partitions)
            }
            for subtopology_id, partitions in tasks.items()
        }

    revoked = AssignedTasks(with_epochs(active.revoked), standby.revoked, warmup.revoked)
    if not revoked.is_empty and _still_owns(revoked, goal.owned):
        return _at_epoch(
            member,
            epoch,
            state=MemberState.UNREVOKED_TASKS,
            assigned=AssignedTasks(with_epochs(active.kept), standby.kept, warmup.kept),
            pending_revocation=revoked,
        )
    has_unreleased = active.has_unreleased or standby.has_unreleased or warmup.has_unreleased
    return _at_epoch(
        member,
        goal.epoch,
        state=MemberState.UNRELEASED_TASKS if has_unreleased else MemberState.STABLE,
        assigned=AssignedTasks(
            with_epochs(active.with_new()), standby.with_new(), warmup.with_new()
        ),
        pending_revocation=NO_ASSIGNED_TASKS,
    )


def _at_epoch(member: StreamsGroupMember, epoch: int, **changes: Any) -> StreamsGroupMember:
    return replace(member, member_epoch=epoch, previous_member_epoch=member.member_epoch, **changes)
