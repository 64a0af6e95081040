"""
Work at no more than a given rate.
"""

from __future__ import annotations

import math
import threading
from typing import Final

from barnabas.storage.clock import Clock

CHECK_INTERVAL: Final = 0.3
"""Seconds for which the rate may be exceeded before it is looked at (Kafka's LogCleaner)."""


class Throttler:
    """
    Makes several threads rest so that together they stay below a rate (Kafka's Throttler).

    Invariants:

    1. From its first period on, the work is at most the rate times the time, plus the work within
       ``CHECK_INTERVAL`` or in one step of each thread.

    Safe from any thread.
    """

    def __init__(self, per_second: float, clock: Clock) -> None:
        """
        Args:
            per_second: the rate, in bytes for example. A rate of 0 stops all work, a negative one
                is no limit.
        """
        self.per_second = per_second
        self._clock = clock
        self._guard = threading.Lock()
        self._period_start = clock.monotonic()
        self._done = 0.0

    def throttle(self, amount: float, wake: threading.Event) -> None:
        """
        Note *amount* of work, and rest as long as the rate is exceeded, or until *wake* is set.
        """
        seconds = self._note(amount)
        if seconds > 0:
            self._clock.wait(wake, seconds)

    def _note(self, amount: float) -> float:
        """
        The seconds to rest. While one thread rests the next period lies in the future, so that all
        others rest until then as well.
        """
        with self._guard:
            self._done += amount
            now = self._clock.monotonic()
            elapsed = now - self._period_start
            if elapsed > CHECK_INTERVAL and self._done > 0:
                needed = self._done / self.per_second if self.per_second else math.inf
                self._period_start = now + max(0.0, needed - elapsed)
                self._done = 0.0
            return self._period_start - now
