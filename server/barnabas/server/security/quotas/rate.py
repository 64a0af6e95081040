"""
Rates over the last few windows, and how long a client that exceeds one has to wait.

The formulas are those of Kafka's ``Rate``, ``SampledStat`` and ``QuotaUtils``::

    samples    | 3 | 0 | 5 | 2 |      one for each window in which something was recorded
               ^               ^
               oldest start    now    rate = sum / elapsed, at least (num - 1) windows

A client that was quiet may therefore use (num - 1) windows at once. One sample more than windows is
kept, which overlaps the beginning of the time that counts.
"""

from __future__ import annotations

import math
from array import array
from typing import TYPE_CHECKING, Final

from barnabas.protocol.structs import NamedTuple
from barnabas.storage.units import INT_MAX

if TYPE_CHECKING:
    from barnabas.storage.clock import Clock

MS: Final = 1000.0


class Windows(NamedTuple):
    """
    How many windows a rate looks at, and how long each is.
    """

    num: int
    size_ms: int

    @property
    def span_ms(self) -> int:
        """
        What is older than this counts no more.
        """
        return self.num * self.size_ms


class Rate:
    """
    What was recorded within the last windows, per second.

    Invariants:

    1. ``_total`` is the sum of ``_values``.
    2. ``_first_start`` is the least of ``_starts``, and no entry of ``_lasts`` is less than
       ``_first_last``.

    Times are in ms and do not go back.
    """

    __slots__ = (
        "_current",
        "_first_last",
        "_first_start",
        "_lasts",
        "_starts",
        "_total",
        "_values",
        "_windows",
    )

    def __init__(self, windows: Windows, now_ms: int) -> None:
        self._windows = windows
        self._current = 0
        # Arrays take a third of the memory, and there may be very many rates.
        self._values = array("d", (0.0,))
        self._starts = array("q", (now_ms,))
        self._lasts = array("q", (now_ms,))
        self._total = 0.0
        self._first_start = now_ms
        self._first_last = now_ms

    def record(self, value: float, now_ms: int) -> None:
        """
        Count *value*; a negative one is taken off again.
        """
        if now_ms - self._starts[self._current] >= self._windows.size_ms:
            self._advance(now_ms)
        current = self._current
        self._values[current] += value
        self._lasts[current] = now_ms
        self._total += value

    def _advance(self, now_ms: int) -> None:
        """
        Begin another sample, in the place of the oldest one once there are enough.
        """
        self._current = (self._current + 1) % (self._windows.num + 1)
        if self._current >= len(self._values):
            self._values.append(0.0)
            self._starts.append(now_ms)
            self._lasts.append(now_ms)
        else:
            self._reset(self._current, now_ms)
        self._sum_up()

    def _reset(self, index: int, now_ms: int) -> None:
        self._values[index] = 0.0
        self._starts[index] = self._lasts[index] = now_ms

    def _sum_up(self) -> None:
        # Not by subtraction, which would let fractions drift.
        self._total = math.fsum(self._values)
        self._first_start = min(self._starts)
        self._first_last = min(self._lasts)

    def window_ms(self, now_ms: int) -> int:
        """
        The time that the rate is taken over.
        """
        windows = self._windows
        if now_ms - self._first_last >= windows.span_ms:
            for index, last in enumerate(self._lasts):
                if now_ms - last >= windows.span_ms:
                    self._reset(index, now_ms)
            self._sum_up()
        elapsed = now_ms - self._first_start
        missing = windows.num - 1 - elapsed // windows.size_ms
        if missing > 0:
            elapsed += missing * windows.size_ms
        return max(elapsed, 1)

    def per_second(self, now_ms: int) -> float:
        """
        The rate.
        """
        window_ms = self.window_ms(now_ms)  # First: it drops what counts no more.
        return self._total / (window_ms / MS)

    def throttle_ms(self, limit: float, now_ms: int) -> int:
        """
        How long to be quiet for the rate to come down to the *limit*; 0 if it is not above.
        """
        window_ms = self.window_ms(now_ms)
        rate = self._total / (window_ms / MS)
        if rate <= limit:
            return 0
        return rounded_ms((rate - limit) / limit * window_ms)


def rounded_ms(value: float) -> int:
    """
    *value* as the wire can carry it; a half is rounded up, as in Java.
    """
    return min(INT_MAX, math.floor(value + 0.5)) if value < INT_MAX else INT_MAX


def now_ms(clock: Clock) -> int:
    """
    The time of *clock* in ms, which never goes back.
    """
    return round(clock.monotonic() * MS)
