"""
What was refused, in the log of the broker.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from barnabas.storage.clock import Clock

logger = logging.getLogger(__name__)

LINES_PER_SECOND: Final = 10
MOST_LINES_AT_ONCE: Final = 100


class Audit:
    """
    Logs refusals, each in a line, at a rate that cannot fill a disk: ``LINES_PER_SECOND`` in the
    long run, and ``MOST_LINES_AT_ONCE`` after a quiet time. The next line after that says how many
    are left out.
    """

    __slots__ = ("_clock", "_left_out", "_lines", "_since")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lines = float(MOST_LINES_AT_ONCE)
        self._since = clock.monotonic()
        self._left_out = 0

    def refused(self, message: str, *args: object) -> None:
        """
        Log a refusal; *message* and *args* as for ``logging``.
        """
        now = self._clock.monotonic()
        earned = (now - self._since) * LINES_PER_SECOND
        self._lines = min(float(MOST_LINES_AT_ONCE), self._lines + earned)
        self._since = now
        if self._lines < 1.0:
            self._left_out += 1
            return
        self._lines -= 1.0
        if self._left_out:
            logger.warning("%d refusals are not logged, there are too many", self._left_out)
            self._left_out = 0
        logger.warning(message, *args)
