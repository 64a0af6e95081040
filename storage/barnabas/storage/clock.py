"""
The one place where the storage engine reads the time.
"""

from __future__ import annotations

import threading
import time
from typing import Final, Protocol

_A_TURN_SECONDS: Final = 0.000_05


class Clock(Protocol):
    """
    What tells the time, and how a thread waits for it to pass.
    """

    def now_ms(self) -> int:
        """
        Wall clock: milliseconds since 1970 UTC. It may jump.
        """

    def monotonic(self) -> float:
        """
        Seconds since some moment. It never goes back; only differences mean anything.
        """

    def wait(self, event: threading.Event, seconds: float) -> bool:
        """
        Block until *event* is set or *seconds* of this clock have passed; whether it is set.
        """


class SystemClock:
    """
    Real time.
    """

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        return time.monotonic()

    def wait(self, event: threading.Event, seconds: float) -> bool:
        # An interval of "never" is larger than what the platform can wait for at once.
        return event.wait(min(seconds, threading.TIMEOUT_MAX))


def let_others_run() -> None:
    """
    Let another thread have its turn, if one waits for it.

    Python takes the turn from a thread only after 5 ms, and from compiled code only when that
    returns. A thread that works for longer therefore offers it every millisecond or so:
    the event loop then goes on after a fraction of a millisecond and not after six. It really has
    to sleep for that: who lets the interpreter's lock go for no time mostly has it again before
    the other one is awake.
    """
    time.sleep(_A_TURN_SECONDS)
