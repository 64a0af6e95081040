"""
Two members of one consumer group, each in a thread of its own.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from tests.interop.clients.base import PATIENCE, Seen


class SharedCount:
    """
    How much two members have seen together, and whether that is enough.
    """

    def __init__(self, wanted: int) -> None:
        self._wanted = wanted
        self._seen = 0
        self._lock = threading.Lock()
        self._deadline = time.monotonic() + PATIENCE

    def add(self, more: int) -> None:
        """
        Count *more* records.
        """
        with self._lock:
            self._seen += more

    @property
    def is_reached(self) -> bool:
        """
        Whether the members may leave.

        Raises:
            TimeoutError: they should long have been able to.
        """
        if self._seen >= self._wanted:
            return True
        if time.monotonic() > self._deadline:
            raise TimeoutError(f"{self._seen} of {self._wanted} records after {PATIENCE:.0f} s")
        return False


def two_members(
    member: Callable[[SharedCount], list[Seen]], count: int
) -> tuple[list[Seen], list[Seen]]:
    """
    Run *member* twice at once until both have seen *count* records together.
    """
    enough = SharedCount(count)
    with ThreadPoolExecutor(2) as threads:
        one, two = threads.submit(member, enough), threads.submit(member, enough)
        return one.result(), two.result()
