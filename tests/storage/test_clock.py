"""
Real time.
"""

from __future__ import annotations

import threading
import time

from barnabas.storage.clock import SystemClock


def test_the_wall_clock_is_in_milliseconds() -> None:
    """
    It is that of the system.
    """
    before = time.time_ns() // 1_000_000

    now = SystemClock().now_ms()

    assert before <= now <= time.time_ns() // 1_000_000


def test_waiting_ends_with_the_time_or_the_event() -> None:
    """
    It says which of them it was.
    """
    clock, event = SystemClock(), threading.Event()

    began = clock.monotonic()
    assert not clock.wait(event, 0.001)
    assert clock.monotonic() - began >= 0.001
    event.set()
    assert clock.wait(event, 3600)


def test_one_may_wait_for_ever() -> None:
    """
    Intervals that mean "never" are larger than what the platform can wait for.
    """
    event = threading.Event()
    event.set()

    assert SystemClock().wait(event, (2**63 - 1) / 1000)
