"""
The schedule of Python's collector of cycles, which never visits the objects of a large request.

A collection visits all objects of its generations and all that they refer to: a list of 100,000
structs takes 10 to 40 ms, though it is young and no garbage. While large requests are served,
nothing is collected; reference counts free nearly everything. The objects that are left afterwards
are set aside without a visit (``gc.freeze``). A full collection visits them when no client is
served, if it is short or if a fourth of the memory may be garbage::

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
If so many blocks of memory may be garbage, or a fourth of all (Python's own rule) if that is more,
a full collection does not wait for a quiet moment.
"""
LONG_S: Final = 10.0
"""
Such blocks may be garbage if they were there for so long: requests that wait for their turn are
gone by then, also those of clients that have left.
"""
HELD_BYTES_OF_A_BLOCK: Final = 4
"""
While requests hold memory, one block for so many bytes of it is taken for an object in use: decoded
texts, and the objects of an answer that is being made, take several times what is counted.
"""
SHORT_S: Final = 0.05
"""
A full collection that takes longer, as with 10,000 partitions, waits also in a quiet moment until a
fourth of the memory may be garbage: the next client waits for it.
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

    def __init__(
        self,
        loop: EventLoop,
        activity: Callable[[], int] = lambda: 0,
        held_bytes: Callable[[], int] = lambda: 0,
    ) -> None:
        """
        Args:
            activity: returns another number whenever a client was served since the last call.
            held_bytes: returns the memory of requests and of answers that peers have not read.
        """
        self.longest_s = 0.0
        """The duration of the longest full collection."""
        self._loop = loop
        self._activity = activity
        self._held_bytes = held_bytes
        self._before = 0
        self._is_busy = False
        self._is_looking = False
        self._last_s = 0.0
        self._has_set_aside = False
        self._growth = 0  # at the last look
        self._fewest_blocks = sys.getallocatedblocks()
        self._least_growth = 0  # since the time in ``_since``
        self._since = perf_counter()

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
            self._note_fewest()
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
        if self._is_too_much():
            self._collect_all()

    def empty_free_lists(self) -> None:
        """
        Free what Python keeps of freed objects for new ones: of tuples alone up to 40,000, spread
        over all the memory that there was.
        """
        self._set_new_aside(0)
        gc.collect()  # No objects are visited, but only a full collection empties the lists.
        self._look_later()

    def _note_fewest(self) -> int:
        """
        Note the fewest blocks of memory since the last full collection, and return how many there
        are beyond these.
        """
        blocks = sys.getallocatedblocks()
        self._fewest_blocks = min(self._fewest_blocks, blocks)
        return blocks - self._fewest_blocks

    def _is_garbage(self, growth: int, least: int) -> bool:
        """
        Return true if *least* blocks may be garbage, and a fourth of all.
        """
        in_use = self._held_bytes() // HELD_BYTES_OF_A_BLOCK
        return growth - in_use >= max(least, self._fewest_blocks // 4)

    def _is_too_much(self) -> bool:
        growth = self._note_fewest()
        self._least_growth = min(self._least_growth, growth)
        now = perf_counter()
        if now - self._since < LONG_S:
            return False
        least = self._least_growth
        self._least_growth, self._since = growth, now
        return self._is_garbage(least, MANY)

    def _use_quiet_moment(self) -> None:
        """
        Collect if that is short, or if a fourth of the memory may be garbage: what was there at the
        last look as well.
        """
        before, self._growth = self._growth, self._note_fewest()
        # It visits more objects than the last one.
        expected_s = self._last_s * (1 + self._growth / self._fewest_blocks)
        if expected_s <= SHORT_S or self._is_garbage(min(before, self._growth), 0):
            self._collect_all()
        elif self._is_garbage(self._growth, 0):
            self._look_later()

    def _set_new_aside(self, least: int) -> None:
        """
        Set all objects aside if at least *least* are new.
        """
        # The count of the youngest generation: objects made, less those that were freed.
        new = gc.get_count()[0]
        if new >= least:
            gc.freeze()
            self._has_set_aside = True

    def _look_later(self) -> None:
        if not self._is_looking and self._has_set_aside and not self._is_busy:
            self._is_looking = True
            self._loop.call_later(LOOK_EVERY_S, self._look)

    def _look(self) -> None:
        self._is_looking = False
        if self._is_busy:
            return
        before, self._before = self._before, self._activity()
        if self._is_too_much():
            self._collect_all()
        elif before != self._before:
            self._look_later()
        else:
            self._use_quiet_moment()

    def _collect_all(self) -> None:
        began = perf_counter()
        gc.unfreeze()
        gc.collect()
        gc.freeze()
        self._fewest_blocks = sys.getallocatedblocks()
        self._has_set_aside = False
        self._growth = self._least_growth = 0
        self._since = perf_counter()
        self._last_s = self._since - began
        self.longest_s = max(self.longest_s, self._last_s)
