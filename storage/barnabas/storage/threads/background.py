"""
Threads for work in the background, on the clock of the broker.
"""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Callable

from barnabas.storage.clock import Clock

logger = logging.getLogger(__name__)


class BackgroundThread:
    """
    A named thread that repeats its work until it is stopped.

    It is a daemon: a broker that dies does not wait for it. A broker that stops does, in ``join``.
    """

    def __init__(
        self,
        name: str,
        run: Callable[[threading.Event], None],
        *,
        wake: Callable[[], None] = lambda: None,
    ) -> None:
        """
        Args:
            run: the work; it returns soon after the event is set.
            wake: ends a wait of *run* that does not end with the event.
        """
        self.name = name
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=run, name=name, args=(self.stopping,), daemon=True)
        self._wake = wake

    def start(self) -> None:
        self.thread.start()

    def stop(self) -> None:
        """
        Let the round in progress be the last; returns at once.
        """
        self.stopping.set()
        self._wake()

    def join(self, seconds: float) -> bool:
        """
        Wait for the end of the last round, at most *seconds*; return whether it has ended.
        """
        if self.thread.is_alive():
            self.thread.join(seconds)
        return not self.thread.is_alive()


def periodic_thread(
    name: str, interval_ms: int, work: Callable[[], None], *, clock: Clock, delay_ms: int = 0
) -> BackgroundThread:
    """
    A thread that does *work* in rounds.

    Args:
        interval_ms: from the end of a round to the next one.
        delay_ms: before the first round.
    """

    def run(stop: threading.Event) -> None:
        wait_ms = delay_ms
        while not clock.wait(stop, wait_ms / 1000):
            _do_round(work)
            wait_ms = interval_ms

    return BackgroundThread(name, run)


def _do_round(work: Callable[[], None]) -> None:
    # One bad log must not end retention for the whole broker.
    try:
        work()
    except Exception:
        logger.exception("%s: a round failed", threading.current_thread().name)


class Alarm:
    """
    The earliest of the times at which work falls due.

    Safe from any thread.
    """

    def __init__(self) -> None:
        self.changed = threading.Event()
        """Set when the earliest time has changed."""
        self._due_ms: int | None = None
        self._guard = threading.Lock()

    def at(self, due_ms: int) -> None:
        """
        Note that work falls due at *due_ms*.
        """
        with self._guard:
            if self._due_ms is None or due_ms < self._due_ms:
                self._due_ms = due_ms
                self.changed.set()

    def take(self, now_ms: int) -> float:
        """
        Seconds until the earliest time, infinite if there is none. A time that has come is
        forgotten: the caller does all that is due.
        """
        with self._guard:
            self.changed.clear()
            if self._due_ms is None:
                return math.inf
            if self._due_ms <= now_ms:
                self._due_ms = None
                return 0.0
            return (self._due_ms - now_ms) / 1000


def alarm_thread(
    name: str, alarm: Alarm, work: Callable[[], None], *, clock: Clock
) -> BackgroundThread:
    """
    A thread that does *work* at the times of *alarm*.
    """

    def run(stop: threading.Event) -> None:
        while True:
            seconds = alarm.take(clock.now_ms())
            if stop.is_set():
                return
            if seconds > 0:
                clock.wait(alarm.changed, seconds)
            else:
                _do_round(work)

    return BackgroundThread(name, run, wake=alarm.changed.set)
