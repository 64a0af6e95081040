"""
Timeouts of groups and their members.
"""

from __future__ import annotations

from enum import Enum
from typing import TypeAlias


class Timeout(Enum):
    """
    The events that a group waits for.
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
