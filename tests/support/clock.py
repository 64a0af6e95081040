"""
A clock for tests of single storage objects: it stands still until it is moved.
"""

from __future__ import annotations

import threading


class StillClock:
    """
    A clock that a test sets. Threads cannot wait for it; they need ``ManualClock``.
    """

    def __init__(self, start_ms: int = 1_700_000_000_000) -> None:
        self._now_ms = start_ms
        self._seconds = 0.0

    def now_ms(self) -> int:
        return self._now_ms

    def monotonic(self) -> float:
        return self._seconds

    def wait(self, event: threading.Event, seconds: float) -> bool:
        raise AssertionError("nothing waits in these tests")

    def advance(self, ms: int) -> None:
        self._now_ms += ms
        self._seconds += ms / 1000
