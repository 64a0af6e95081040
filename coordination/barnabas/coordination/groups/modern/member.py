"""
What members of the later protocols have in common.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final, Protocol, Self

JOINING: Final = 0
"""
The epoch of a member that joins.
"""
LEAVING: Final = -1
"""
The epoch of a member that leaves.
"""
LEAVING_FOR_A_WHILE: Final = -2
"""
The epoch of a static member that has left, and is going to come back; only consumer groups have
static members yet.
"""
NOT_SENT: Final = -1
"""
A timeout that a heartbeat does not repeat.
"""
UNKNOWN_STATE: Final = 127
"""
The state of a member that a later release has written.
"""


class ModernMember(Protocol):
    """
    A member at one moment. Its records make it, see ``ModernGroup``.
    """

    @property
    def member_id(self) -> str: ...
    @property
    def member_epoch(self) -> int: ...
    @property
    def previous_member_epoch(self) -> int: ...


class StoredState(IntEnum):
    """
    States of members by the numbers in their records.
    """

    @classmethod
    def of(cls, number: int) -> Self:
        """
        The state of a record.
        """
        return cls(number if number in cls._value2member_map_ else UNKNOWN_STATE)
