"""
Timeouts of groups and their members.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

from enum import StrEnum
from typing import TypeAlias


class Timeout(StrEnum):
    """
    The events that a group waits for. Strings, since each heartbeat looks some of them up.
    """

    SESSION = "session"  # the next heartbeat of a member
    HEARTBEAT = "heartbeat"  # the same, in a classic group
    JOIN = "join"  # the JoinGroups of the members
    SYNC = "sync"  # the SyncGroups of the members
    REBALANCE = "rebalance"  # the revocation of partitions by a member
    INITIAL_REBALANCE = "initial rebalance"  # more members of a streams group that was empty


TimerKey: TypeAlias = tuple[Timeout, str, str]
"""
The timeout, its group id, and its member id; "" for all members.
"""
