"""
A member of a streams group (KIP-1071).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from types import MappingProxyType
from typing import ClassVar, Final, TypeAlias

from barnabas.coordination.groups.modern.member import NOT_SENT, UNKNOWN_STATE, StoredState
from barnabas.protocol.structs import NamedTuple, struct

NO_TOPOLOGY_EPOCH: Final = -1

ActiveTasks: TypeAlias = Mapping[str, Mapping[int, int]]
"""
Partitions by subtopology, each with the member epoch at which the member got it. No subtopology is
empty.
"""
PassiveTasks: TypeAlias = Mapping[str, frozenset[int]]
"""
The standby or warm-up tasks of a member. No subtopology is empty.
"""


class AssignedTasks(NamedTuple):
    """
    Tasks that a member has (Kafka's ``TasksTupleWithEpochs``).
    """

    active: ActiveTasks = MappingProxyType({})
    standby: PassiveTasks = MappingProxyType({})
    warmup: PassiveTasks = MappingProxyType({})

    @property
    def is_empty(self) -> bool:
        return not (self.active or self.standby or self.warmup)

    @property
    def by_role(self) -> Iterator[Mapping[str, Collection[int]]]:
        """
        Active, standby and warm-up tasks, without epochs.
        """
        yield self.active
        yield self.standby
        yield self.warmup


NO_ASSIGNED_TASKS: Final = AssignedTasks()


class MemberState(StoredState):
    """
    How far a member is with its assignment (Kafka's class of this name).
    """

    STABLE = 1  # it has its target assignment
    UNREVOKED_TASKS = 2  # it has to give tasks up
    UNRELEASED_TASKS = 3  # it waits for tasks that others still have
    UNKNOWN = UNKNOWN_STATE


class UserEndpoint(NamedTuple):
    """
    The address at which a member answers interactive queries.
    """

    host: str
    port: int


@struct(kw_only=True)
class StreamsGroupMember:
    """
    A member at one moment (Kafka's class of this name). Its records make it, see ``StreamsGroup``.

    Invariants:

    1. ``assigned`` and ``pending_revocation`` have no task in common.
    """

    is_classic: ClassVar[bool] = False

    member_id: str
    member_epoch: int = 0
    previous_member_epoch: int = 0
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = NOT_SENT
    client_id: str = ""
    client_host: str = ""
    topology_epoch: int = NO_TOPOLOGY_EPOCH
    process_id: str = ""
    user_endpoint: UserEndpoint | None = None
    client_tags: Mapping[str, str] = MappingProxyType({})
    state: MemberState = MemberState.STABLE
    assigned: AssignedTasks = NO_ASSIGNED_TASKS
    pending_revocation: AssignedTasks = NO_ASSIGNED_TASKS

    @property
    def is_revoking(self) -> bool:
        """
        Whether it has to give tasks up.
        """
        return self.state is MemberState.UNREVOKED_TASKS

    def is_reconciled_to(self, assignment_epoch: int) -> bool:
        """
        Whether it has the target assignment of that epoch.
        """
        return self.state is MemberState.STABLE and self.member_epoch == assignment_epoch

    def epoch_of(self, subtopology_id: str, partition: int) -> int | None:
        """
        The epoch at which it got an active task that it has, or has to give up; None if it does not
        have it.
        """
        for tasks in (self.assigned, self.pending_revocation):
            epoch = tasks.active.get(subtopology_id, {}).get(partition)
            if epoch is not None:
                return epoch
        return None
