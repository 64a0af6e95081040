"""
Work that goes on in threads beside everything else.
"""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Callable

from barnabas.storage.clock import Clock

logger = logging.getLogger(__name__)


def every(
    interval_ms: int,
    work: Callable[[], None],
    stop: threading.Event,
    *,
    clock: Clock,
    delay_ms: int = 0,
) -> None:
    """
    Do *work* again and again until *stop* is set, also finishing the round in progress.

    A round that fails is logged and the next one still happens: one bad log must not end retention
    for the whole broker.

    Args:
        interval_ms: from the end of a round to the next one.
        delay_ms: before the first round.
    """
    if clock.wait(stop, delay_ms / 1000):
        return
    while not stop.is_set():
        try:
            work()
        except Exception:
            logger.exception("%s: a round failed", threading.current_thread().name)
        clock.wait(stop, interval_ms / 1000)


class PeriodicThread:
    """
    A named thread that runs ``every``.

    It is a daemon: a broker that dies does not wait for it. One that stops does, in ``join``.
    """

    def __init__(
        self,
        name: str,
        interval_ms: int,
        work: Callable[[], None],
        *,
        clock: Clock,
        delay_ms: int = 0,
    ) -> None:
        self.name = name
        self._stop = threading.Event()
        self._thread = threading.Thread(
            target=every,
            name=name,
            args=(interval_ms, work, self._stop),
            kwargs={"clock": clock, "delay_ms": delay_ms},
            daemon=True,
        )

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """
        Let the round in progress be the last; returns at once.
        """
        self._stop.set()

    def join(self, seconds: float) -> bool:
        """
        Wait for the last round, at most so long; whether it has ended.
        """
        if self._thread.is_alive():
            self._thread.join(seconds)
        return not self._thread.is_alive()


class Alarm:
    """
    The earliest of the times at which something is to be done.

    Safe from any thread.
    """

    def __init__(self) -> None:
        self.changed = threading.Event()
        """Set when the earliest time has become another one."""
        self._due_ms: int | None = None
        self._guard = threading.Lock()

    def at(self, due_ms: int) -> None:
        """
        Something is to be done at *due_ms*.
        """
        with self._guard:
            if self._due_ms is None or due_ms < self._due_ms:
                self._due_ms = due_ms
                self.changed.set()

    def take(self, now_ms: int) -> float:
        """
        Seconds until the earliest time, which is endless if there is none. A time that has come is
        forgotten: whoever asks goes and does all that is due.
        """
        with self._guard:
            self.changed.clear()
            if self._due_ms is None:
                return math.inf
            if self._due_ms <= now_ms:
                self._due_ms = None
                return 0.0
            return (self._due_ms - now_ms) / 1000


class AlarmThread:
    """
    A named thread that does *work* whenever an alarm goes off, and sleeps in between.

    It is a daemon, as ``PeriodicThread`` is.
    """

    def __init__(self, name: str, alarm: Alarm, work: Callable[[], None], *, clock: Clock) -> None:
        self.name = name
        self._alarm = alarm
        self._work = work
        self._clock = clock
        self._stopped = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def _run(self) -> None:
        while True:
            seconds = self._alarm.take(self._clock.now_ms())
            if self._stopped:
                return
            if seconds > 0:
                self._clock.wait(self._alarm.changed, seconds)
                continue
            try:
                self._work()
            except Exception:
                logger.exception("%s: a round failed", self.name)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """
        Let the round in progress be the last; returns at once.
        """
        self._stopped = True
        self._alarm.changed.set()

    def join(self, seconds: float) -> bool:
        """
        Wait for the last round, at most so long; whether it has ended.
        """
        if self._thread.is_alive():
            self._thread.join(seconds)
        return not self._thread.is_alive()
