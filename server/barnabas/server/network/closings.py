"""
The lines of the log that say why connections were closed.

A peer that is refused connects again, and could fill a disk with lines.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from barnabas.server.clock import ServerClock
    from barnabas.server.requests.client import Client

logger = logging.getLogger(__name__)

WINDOW_S: Final = 10.0
MOST_LINES: Final = 100
"""
So many lines are written in a window. The others are counted, and one line says how many they were.
"""


class Closings:
    """
    The closings of a broker's connections.
    """

    __slots__ = ("_clock", "_lines", "_silent")

    def __init__(self, clock: ServerClock) -> None:
        self._clock = clock
        self._lines = 0
        self._silent = 0

    def note(self, client: Client, reason: str) -> None:
        """
        The connection of *client* is closed for a *reason*.
        """
        if not self._lines:
            self._clock.call_later(WINDOW_S, self._end_window)
        self._lines += 1
        if self._lines <= MOST_LINES:
            logger.info("closing the connection of %s: %s", client, reason)
        else:
            self._silent += 1

    def _end_window(self) -> None:
        if self._silent:
            logger.info(
                "closed %d further connections in %.0f s, the last lines say why",
                self._silent,
                WINDOW_S,
            )
        self._lines = self._silent = 0
