"""
The log of the brokers in this process.
"""

from __future__ import annotations

import logging
from collections import deque
from copy import copy
from typing import Final

from barnabas.server.log_setup import TextFormatter
from barnabas.testing.real_time import real_ms

MOST_LINES: Final = 1000
"""
The lines that are kept of the log of a broker.
"""


class LogCapture:
    """
    Keeps the last ``MOST_LINES`` lines of the ``barnabas`` loggers, from INFO on.

    Brokers that run in one process at the same time share their lines.
    """

    def __init__(self) -> None:
        self._lines: deque[str] = deque(maxlen=MOST_LINES)

    @property
    def text(self) -> str:
        """
        The lines, oldest first.
        """
        return "\n".join(self._lines)

    def keep(self, line: str) -> None:
        """
        Add a line.
        """
        self._lines.append(line)

    def attach(self) -> None:
        """
        Begin to keep lines. Without effect if it has begun.
        """
        _TAP.add(self)

    def detach(self) -> None:
        """
        Keep no more lines.
        """
        _TAP.remove(self)


class _Tap(logging.Handler):
    """
    Hands the events of the ``barnabas`` loggers to all captures.

    The level of the ``barnabas`` logger is lowered for the captures only: the handlers of the root
    logger get the events that they would get without it. So a logger that nobody else knows stands
    between the two. A logger that does not propagate would not do: pytest gives each of those its
    handlers.
    """

    def __init__(self) -> None:
        super().__init__()
        self.setFormatter(TextFormatter())
        self._logger = logging.getLogger("barnabas")
        self._between = logging.Logger("barnabas.testing")
        self._between.propagate = False
        self._between.addHandler(self)
        self._captures: list[LogCapture] = []
        self._level = logging.NOTSET

    def add(self, capture: LogCapture) -> None:
        if capture in self._captures:
            return
        self._captures.append(capture)
        if len(self._captures) == 1:
            self._level = self._logger.level
            if not self._logger.isEnabledFor(logging.INFO):
                self._logger.setLevel(logging.INFO)
            self._logger.parent = self._between

    def remove(self, capture: LogCapture) -> None:
        if capture not in self._captures:
            return
        self._captures.remove(capture)
        if not self._captures:
            self._logger.parent = logging.root
            self._logger.setLevel(self._level)

    def emit(self, record: logging.LogRecord) -> None:
        line = self.format(_in_real_time(record))
        for capture in tuple(self._captures):
            capture.keep(line)
        if record.levelno >= (self._level or logging.root.level):
            logging.root.callHandlers(record)


def _in_real_time(record: logging.LogRecord) -> logging.LogRecord:
    """
    The event with the time of the machine, which a test may have frozen for ``logging``.
    """
    now_ms = real_ms()
    found = copy(record)
    found.created, found.msecs = now_ms / 1000, float(now_ms % 1000)
    return found


_TAP: Final = _Tap()
