"""
The budgets of memory that all groups of a broker have.
"""

from __future__ import annotations

from typing import Final

from barnabas.coordination.coordinator_runtime.memory import MemoryBudget

MEMBERS_BYTES: Final = 128 * 1024 * 1024


class GroupMemory:
    """
    Two budgets, so that neither members nor offsets are refused because of the others.
    """

    __slots__ = ("kept", "members")

    def __init__(self, kept_bytes: int) -> None:
        """
        Args:
            kept_bytes: ``barnabas.max.coordinator.bytes``.
        """
        self.members = MemoryBudget("Members of groups", MEMBERS_BYTES)
        """A member stays for its session, up to ``group.max.session.timeout.ms``."""
        self.kept = MemoryBudget("Groups and committed offsets", kept_bytes)
        """Both stay without members, until ``offsets.retention.minutes`` are over."""
