"""
Work that goes on in threads beside everything else.
"""

from __future__ import annotations

import logging
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
