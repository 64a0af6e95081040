"""
How far a long job is, in one line that is written over and over, or in a few lines of a log.
"""

from __future__ import annotations

from typing import Final, TextIO

from barnabas.storage.clock import Clock
from barnabas.storage.explain.units import duration, rounded_size

_WIDTH: Final = 30
_SECONDS_BETWEEN_LINES: Final = 30.0


class ProgressBar:
    """
    A bar on a terminal; elsewhere, as in the log of a service, a line every 30 seconds.
    """

    def __init__(self, what: str, total_bytes: int, stream: TextIO, clock: Clock) -> None:
        self._what = what
        self._total = total_bytes
        self._stream = stream
        self._clock = clock
        self._since = clock.monotonic()
        self._done = 0
        self._is_terminal = stream.isatty()
        self._shows = total_bytes > 0
        self._next_line = self._since + _SECONDS_BETWEEN_LINES
        self._draw()

    def close(self) -> None:
        """
        Leave the line as it is; what follows comes on the next one.
        """
        if self._shows and self._is_terminal:
            self._stream.write("\n")

    def advance(self, done_bytes: int) -> None:
        """
        So many more bytes are done.
        """
        self._done += done_bytes
        self._draw()

    def _draw(self) -> None:
        if not self._shows:
            return
        if self._is_terminal:
            # What the line before had more than this one is wiped out.
            self._stream.write(f"\r{self._line()}\x1b[K")
        elif self._clock.monotonic() >= self._next_line:
            self._next_line = self._clock.monotonic() + _SECONDS_BETWEEN_LINES
            self._stream.write(f"{self._line()}\n")
        self._stream.flush()

    def _line(self) -> str:
        share = min(1.0, self._done / self._total)
        filled = int(share * _WIDTH)
        bar = f"[{'#' * filled}{'.' * (_WIDTH - filled)}] " if self._is_terminal else ""
        line = f"{self._what} {bar}{share:4.0%} of {rounded_size(self._total)}"
        seconds = self._clock.monotonic() - self._since
        if not self._done or seconds <= 0:
            return line
        speed = self._done / seconds
        left_ms = int((self._total - self._done) / speed * 1000)
        left = f", {duration(left_ms // 1000 * 1000)} left" if left_ms >= 1000 else ""
        return f"{line}, {rounded_size(int(speed))}/s{left}"
