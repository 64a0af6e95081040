"""
Where records that are appended come from.
"""

from __future__ import annotations

from enum import Enum


class AppendOrigin(Enum):
    """
    The source of the records, which decides the checks.
    """

    REPLICATION = "replication"
    """A leader has checked them, or this log has when it first took them."""
    COORDINATOR = "coordinator"
    """A coordinator of this broker: groups, transactions."""
    CLIENT = "client"
    """A producer. Everything is checked."""
    RAFT_LEADER = "raft leader"
    """The metadata log of this broker."""
