from __future__ import annotations

import threading
import time

from barnabas.storage.clock import SystemClock


def test_wall_clock_is_in_milliseconds() -> None:
    before = time.time_ns() // 1_000_000

    now = SystemClock().now_ms()

    assert before <= now <= time.time_ns() // 1_000_000


def test_wait_ends_with_its_timeout_or_the_event() -> None:
    """
    The result tells which.
    """
    clock, event = SystemClock(), threading.Event()

    began = clock.monotonic()
    assert not clock.wait(event, 0.001)
    assert clock.monotonic() - began >= 0.001
    event.set()
    assert clock.wait(event, 3600)


def test_wait_accepts_timeouts_beyond_the_platform_limit() -> None:
    """
    Some options use such values for never.
    """
    event = threading.Event()
    event.set()

    assert SystemClock().wait(event, (2**63 - 1) / 1000)
