"""
How far a long job is, in one line that is written over and over.
"""

from __future__ import annotations

from typing import Final, TextIO

from barnabas.storage.clock import Clock
from barnabas.storage.explain.units import duration, rounded_size

_WIDTH: Final = 30


class ProgressBar:
    """
    A bar on a terminal; nothing at all anywhere else.
    """

    def __init__(self, what: str, total_bytes: int, stream: TextIO, clock: Clock) -> None:
        self._what = what
        self._total = total_bytes
        self._stream = stream
        self._clock = clock
        self._since = clock.monotonic()
        self._done = 0
        self._shows = stream.isatty() and total_bytes > 0
        self._draw()

    def close(self) -> None:
        """
        Leave the line as it is; what follows comes on the next one.
        """
        if self._shows:
            self._stream.write("\n")

    def advance(self, done_bytes: int) -> None:
        """
        So many more bytes are done.
        """
        self._done += done_bytes
        self._draw()

    def _draw(self) -> None:
        if self._shows:
            # What the line before had more than this one is wiped out.
            self._stream.write(f"\r{self._line()}\x1b[K")
            self._stream.flush()

    def _line(self) -> str:
        share = min(1.0, self._done / self._total)
        filled = int(share * _WIDTH)
        bar = "#" * filled + "." * (_WIDTH - filled)
        line = f"{self._what} [{bar}] {share:4.0%} of {rounded_size(self._total)}"
        seconds = self._clock.monotonic() - self._since
        if not self._done or seconds <= 0:
            return line
        speed = self._done / seconds
        left_ms = int((self._total - self._done) / speed * 1000)
        left = f", {duration(left_ms // 1000 * 1000)} left" if left_ms >= 1000 else ""
        return f"{line}, {rounded_size(int(speed))}/s{left}"
