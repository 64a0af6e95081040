"""
When Python's collector of cycles looks at what: never at the many objects of a large request.

A collection visits all objects of its generations, and all that they refer to: one list of 100,000
structs keeps it for 10 to 40 ms, though it is young and no garbage. So while large requests are
served nothing is collected; reference counts free nearly everything. What is left when they have
ended is set aside, unseen (``gc.freeze``), and a full collection looks at that in a moment when
nobody asks for anything::

    served:   | small ... | large     large | small ...            | nobody      |
    collects: | as Python |                 | as Python, but what  | everything  |
                                            | large ones have left |             |
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from time import perf_counter
from typing import Final, Protocol

COLLECT_AFTER: Final = 20_000
"""
New objects after which the young ones are looked at. A request makes a few dozen, hardly any of
them in cycles.
"""
THRESHOLDS: Final = (10, 10)
"""
Collections of the young before one of the older, and so on: Python's.
"""
LOOK_EVERY_S: Final = 1.0
MANY: Final = 2_000_000
"""
After so many objects were set aside, all are looked at without waiting for a quiet moment. Python
does so for a fourth of what there is; the larger number counts.
"""
PART: Final = 4


class Timers(Protocol):
    """
    What calls later: an event loop.
    """

    def call_later(self, delay: float, callback: Callable[[], object], /) -> object:
        """
        Call back once, after *delay* seconds.
        """


class Collector:
    """
    Decides when cycles are collected. Used on one thread only.
    """

    def __init__(self, timers: Timers, activity: Callable[[], int] = lambda: 0) -> None:
        """
        Args:
            activity: another number whenever somebody was served.
        """
        self.longest_s = 0.0
        """How long the longest full collection has taken."""
        self._timers = timers
        self._activity = activity
        self._before = 0
        self._is_busy = False
        self._is_looking = False
        self._set_aside = 0
        self._all = 0

    def start(self) -> None:
        """
        Look at everything once, and from now on only at what comes: what a start makes lives as
        long as the process, and there may be very much of it.
        """
        self._collect_all()
        gc.set_threshold(COLLECT_AFTER, *THRESHOLDS)
        if not self._is_busy:
            gc.enable()

    def be_busy(self, is_busy: bool) -> None:
        """
        Large requests are served from now on, or no longer.
        """
        self._is_busy = is_busy
        if is_busy:
            gc.disable()
        else:
            self._set_new_aside(COLLECT_AFTER)
            gc.enable()
        self._look_later()

    def pause(self) -> None:
        """
        No large request is being served at this moment, though the next ones may wait.
        """
        self._set_new_aside(MANY)
        if self._is_too_much:
            self._collect_all()

    @property
    def _is_too_much(self) -> bool:
        return self._set_aside >= max(MANY, self._all // PART)

    def _set_new_aside(self, least: int) -> None:
        """
        Look no more at what there is, if *least* objects have come that did not go.
        """
        # The youngest generation counts what is made less what is freed.
        new = gc.get_count()[0]
        if new >= least:
            gc.freeze()
            self._set_aside += new

    def _look_later(self) -> None:
        if not self._is_looking and self._set_aside and not self._is_busy:
            self._is_looking = True
            self._timers.call_later(LOOK_EVERY_S, self._look)

    def _look(self) -> None:
        self._is_looking = False
        if self._is_busy:
            return
        before, self._before = self._before, self._activity()
        if before == self._before or self._is_too_much:
            self._collect_all()
        self._look_later()

    def _collect_all(self) -> None:
        began = perf_counter()
        gc.unfreeze()
        gc.collect()
        gc.freeze()
        self._all = gc.get_freeze_count()
        self._set_aside = 0
        self.longest_s = max(self.longest_s, perf_counter() - began)
