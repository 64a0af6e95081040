"""
Timeouts of groups and their members.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Protocol, TypeAlias

from barnabas.server.groups.result import CoordinatorResult


class Timeout(Enum):
    """
    The events that a group waits for.
    """

    SESSION = "session"  # the next heartbeat of a member
    JOIN = "join"  # the JoinGroups of the members
    SYNC = "sync"  # the SyncGroups of the members


TimerKey: TypeAlias = tuple[Timeout, str, str]
"""
The timeout, its group id, and its member id; "" for all members.
"""

Operation: TypeAlias = Callable[[int], CoordinatorResult]
"""
Called at the deadline, with the time in ms since the epoch.
"""


class Timers(Protocol):
    """
    The timers of a shard, as its groups use them.
    """

    def schedule(self, key: TimerKey, delay_ms: int, operation: Operation) -> None:
        """
        Run *operation* after *delay_ms*, in place of the one that *key* had.
        """

    def cancel(self, key: TimerKey) -> None:
        """
        Do not run the operation of *key*; without effect if there is none.
        """
