"""
The one place where the storage engine reads the time.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Final, Protocol


class Clock(Protocol):
    """
    The time, and how a thread waits.
    """

    def now_ms(self) -> int:
        """
        Wall clock: milliseconds since 1970 UTC. It may jump.
        """

    def monotonic(self) -> float:
        """
        Seconds since some moment. It never decreases; only differences mean anything.
        """

    def wait(self, event: threading.Event, seconds: float) -> bool:
        """
        Block until *event* is set or *seconds* of this clock have passed; whether it is set.
        """


seconds_now: Final[Callable[[], float]] = time.monotonic
"""``SystemClock.monotonic``, without a function of ours in which another thread could run."""


class SystemClock:
    """
    Real time.
    """

    monotonic = staticmethod(seconds_now)

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def wait(self, event: threading.Event, seconds: float) -> bool:
        # An interval of "never" is larger than the longest wait of the platform.
        return event.wait(min(seconds, threading.TIMEOUT_MAX))


def offer_turn() -> None:
    """
    Let another thread run if one has asked for it, see ``turns``.

    The call alone does it: the interpreter looks for a request of another thread whenever a
    function begins. A compiled function would not do.
    """


def rest_for_a_moment() -> None:
    """
    Let other threads run for some 50 microseconds, which is as short as a system lets one sleep.
    """
    time.sleep(0)
