"""
The one place where the storage engine reads the time.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from importlib.machinery import BuiltinImporter
from typing import Any, Final, Protocol


def _copy_of_time() -> Any:
    """
    The module ``time`` in a copy of its own.

    Tests replace functions of the module, and libraries such as freezegun replace each reference to
    them in other modules as well. A broker in the process of a test keeps its time: nobody else
    knows the functions of the copy.
    """
    spec = BuiltinImporter.find_spec("time")
    if spec is None:
        return time
    module = BuiltinImporter.create_module(spec)
    assert module is not None
    BuiltinImporter.exec_module(module)
    return module


_TIME: Final = _copy_of_time()

time_ns: Final[Callable[[], int]] = _TIME.time_ns
thread_seconds: Final[Callable[[], float]] = _TIME.thread_time
perf_counter: Final[Callable[[], float]] = _TIME.perf_counter
sleep: Final[Callable[[float], None]] = _TIME.sleep
gmtime: Final[Callable[[float], time.struct_time]] = _TIME.gmtime
localtime: Final[Callable[[float], time.struct_time]] = _TIME.localtime
strftime: Final[Callable[[str, time.struct_time], str]] = _TIME.strftime


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


seconds_now: Final[Callable[[], float]] = _TIME.monotonic
"""``SystemClock.monotonic``, without a function of ours in which another thread could run."""


class SystemClock:
    """
    Real time.
    """

    monotonic = staticmethod(seconds_now)

    def now_ms(self) -> int:
        return time_ns() // 1_000_000

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
    sleep(0)
