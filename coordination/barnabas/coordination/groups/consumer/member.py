"""
A member of a consumer group (KIP-848).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias
from uuid import UUID

from barnabas.coordination.groups.modern.member import (
    LEAVING_FOR_A_WHILE,
    NOT_SENT,
    UNKNOWN_STATE,
    StoredState,
)
from barnabas.protocol.structs import struct

Assigned: TypeAlias = Mapping[UUID, Mapping[int, int]]
"""
Partitions of topics, each with the member epoch at which the member got it. No topic is empty.
"""

NOTHING_ASSIGNED: Final[Assigned] = {}


class MemberState(StoredState):
    """
    How far a member is with its assignment (Kafka's class of this name).
    """

    STABLE = 0  # it has its target assignment
    UNREVOKED_PARTITIONS = 1  # it has to give partitions up
    UNRELEASED_PARTITIONS = 2  # it waits for partitions that others still have
    UNKNOWN = UNKNOWN_STATE


@struct(kw_only=True)
class ClassicMember:
    """
    What a member of a consumer group sends that still uses the classic protocol.
    """

    session_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]
    """Name and metadata of each, in the member's order."""


@struct(kw_only=True)
class ConsumerGroupMember:
    """
    A member at one moment (Kafka's class of this name). Its records make it, see ``ConsumerGroup``.

    Invariants:

    1. ``assigned`` and ``pending_revocation`` have no partition in common.
    """

    member_id: str
    member_epoch: int = 0
    previous_member_epoch: int = -1
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = NOT_SENT
    client_id: str = ""
    client_host: str = ""
    topic_names: frozenset[str] = frozenset()
    topic_regex: str = ""
    server_assignor: str | None = None
    state: MemberState = MemberState.STABLE
    assigned: Assigned = NOTHING_ASSIGNED
    pending_revocation: Assigned = NOTHING_ASSIGNED
    classic: ClassicMember | None = None

    @property
    def is_classic(self) -> bool:
        """
        Whether it uses the classic protocol.
        """
        return self.classic is not None

    @property
    def is_revoking(self) -> bool:
        """
        Whether it has to give partitions up.
        """
        return self.state is MemberState.UNREVOKED_PARTITIONS

    @property
    def has_left_for_a_while(self) -> bool:
        """
        Whether it is a static member that has left, and is going to come back.
        """
        return self.member_epoch == LEAVING_FOR_A_WHILE

    def is_reconciled_to(self, assignment_epoch: int) -> bool:
        """
        Whether it has the target assignment of that epoch.
        """
        return self.state is MemberState.STABLE and self.member_epoch == assignment_epoch

    def epoch_of(self, topic_id: UUID, partition: int) -> int | None:
        """
        The epoch at which it got a partition that it has, or has to give up; None if it does not
        have it.
        """
        for partitions in (self.assigned, self.pending_revocation):
            epoch = partitions.get(topic_id, {}).get(partition)
            if epoch is not None:
                return epoch
        return None
