"""
The schedule of Python's collector of cycles, which never visits the objects of a large request.

A collection visits all objects of its generations and all that they refer to: a list of 100,000
structs takes 10 to 40 ms, though it is young and no garbage. While large requests are served,
nothing is collected; reference counts free nearly everything. The objects that are left afterwards
are set aside without a visit (``gc.freeze``), and a full collection visits them when no client is
served::

    served:   | small ... | large     large | small ...            | none        |
    collects: | as Python |                 | as Python, but what  | everything  |
                                            | large ones have left |             |
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from typing import Final, Protocol

from barnabas.storage.clock import perf_counter

COLLECT_AFTER: Final = 20_000
"""
New objects after which the young generation is collected. A request makes a few dozen, hardly any
of them in cycles, so that this is once in some hundred requests.
"""
THRESHOLDS: Final = (10, 10)
"""
The collections of a generation before one of the next: Python's own thresholds.
"""
LOOK_EVERY_S: Final = 1.0
"""
The time between two checks for a quiet moment.
"""
MANY: Final = 2_000_000
"""
After so many objects were set aside, or a fourth of all (Python's own rule) if that is more, a full
collection does not wait for a quiet moment.
"""
BLOCKS: Final = 8
"""
Blocks of memory for each object that makes a fourth: about every second block is an object that the
collector visits. To count the objects would take a fourth of the time of a full collection.
"""
SHORT_S: Final = 0.05
"""
A full collection that takes longer, as with 10,000 partitions, waits also in a quiet moment until a
fourth of the objects are new: the next client waits for it.
"""


class EventLoop(Protocol):
    """
    The timers of an event loop.
    """

    def call_later(self, delay: float, callback: Callable[[], object], /) -> object:
        """
        Call *callback* after *delay* seconds.
        """


class Collector:
    """
    Decides when cycles are collected.

    Used on the event loop's thread only.
    """

    def __init__(self, loop: EventLoop, activity: Callable[[], int] = lambda: 0) -> None:
        """
        Args:
            activity: returns another number whenever a client was served since the last call.
        """
        self.longest_s = 0.0
        """The duration of the longest full collection."""
        self._loop = loop
        self._activity = activity
        self._before = 0
        self._is_busy = False
        self._is_looking = False
        self._last_s = 0.0
        self._set_aside = 0
        self._blocks = 0

    def start(self) -> None:
        """
        Collect everything once, and from now on new objects only: those of the start live as long
        as the process, and may be very many.
        """
        self._collect_all()
        gc.set_threshold(COLLECT_AFTER, *THRESHOLDS)
        if not self._is_busy:
            gc.enable()

    def be_busy(self, is_busy: bool) -> None:
        """
        Stop collecting while large requests are served, or start again.
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
        Use the moment between two large requests, of which more may wait.
        """
        self._set_new_aside(MANY)
        if self._is_too_much:
            self._collect_all()

    def empty_free_lists(self) -> None:
        """
        Free what Python keeps of freed objects for new ones: of tuples alone up to 40,000, spread
        over all the memory that there was.
        """
        self._set_new_aside(0)
        gc.collect()  # No objects are visited, but only a full collection empties the lists.
        self._look_later()

    @property
    def _is_too_much(self) -> bool:
        return self._set_aside >= MANY and self._is_a_fourth

    @property
    def _is_a_fourth(self) -> bool:
        return self._set_aside * BLOCKS >= self._blocks

    def _set_new_aside(self, least: int) -> None:
        """
        Set all objects aside if at least *least* are new.
        """
        # The count of the youngest generation: objects made, less those that were freed.
        new = gc.get_count()[0]
        if new >= least:
            gc.freeze()
            self._set_aside += new

    def _look_later(self) -> None:
        if not self._is_looking and self._set_aside and not self._is_busy:
            self._is_looking = True
            self._loop.call_later(LOOK_EVERY_S, self._look)

    def _look(self) -> None:
        self._is_looking = False
        if self._is_busy:
            return
        before, self._before = self._before, self._activity()
        if before != self._before and not self._is_too_much:
            self._look_later()
        elif self._last_s <= SHORT_S or self._is_a_fourth:
            self._collect_all()

    def _collect_all(self) -> None:
        began = perf_counter()
        gc.unfreeze()
        gc.collect()
        gc.freeze()
        self._blocks = sys.getallocatedblocks()
        self._set_aside = 0
        self._last_s = perf_counter() - began
        self.longest_s = max(self.longest_s, self._last_s)
