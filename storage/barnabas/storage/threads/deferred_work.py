"""
Work that a log defers.

No caller should wait while files are removed, a full segment is synced, or a file is written that
only a start needs. The owner of the log is called with the time at which work falls due, and calls
``run_due`` then.
"""

from __future__ import annotations

import heapq
import itertools
import threading
from collections.abc import Callable, Iterable
from functools import partial
from typing import Final

from barnabas.storage.clock import Clock
from barnabas.storage.errors import TooManyOpenFiles

DeferredCall = Callable[[], None]

SOON_MS: Final = 100
"""
The longest wait of work without a delay, which lets one round do the work of several logs. A
process that is killed within that time leaves a new log without the id of its topic, which the next
start takes for a stray. Not measured: short for a person, long for a disk.
"""

_numbers: Final = itertools.count()
"""
The order of work that falls due at the same time.
"""


def run_all(actions: Iterable[Callable[[], object]]) -> None:
    """
    Do all of *actions*, also those behind one that fails; then raise the first failure.
    """
    failures = []
    for action in actions:
        try:
            action()
        except Exception as error:
            failures.append(error)
    if failures:
        raise failures[0]


class DeferredWork:
    """
    Work for later, in the order in which it falls due. Safe from any thread.
    """

    __slots__ = ("_clock", "_guard", "_later", "_soon", "_wake_at")

    def __init__(self, clock: Clock, wake_at: Callable[[int], None] = lambda due_ms: None) -> None:
        """
        Args:
            wake_at: called with the time in ms at which to call ``run_due``; again with an earlier
                one.
        """
        self._clock = clock
        self._wake_at = wake_at
        self._guard = threading.Lock()
        self._soon: list[DeferredCall] = []
        self._later: list[tuple[int, int, DeferredCall]] = []

    def soon(self, work: DeferredCall) -> None:
        """
        Do *work* at the next occasion.
        """
        with self._guard:
            is_first = not self._soon
            self._soon.append(work)
        if is_first:
            self._wake_at(self._clock.now_ms() + SOON_MS)

    def later(self, delay_ms: int, work: DeferredCall) -> None:
        """
        Do *work* once *delay_ms* have passed.
        """
        due_ms = self._clock.now_ms() + delay_ms
        with self._guard:
            heapq.heappush(self._later, (due_ms, next(_numbers), work))
            is_first = self._later[0][0] == due_ms
        if is_first:
            self._wake_at(due_ms)

    @property
    def next_due_ms(self) -> int | None:
        """
        When the first of the work with a delay falls due.
        """
        later = self._later
        return later[0][0] if later else None

    def run_due(self) -> None:
        """
        Do all work that is due by now.

        Work that found no descriptor is done at the next occasion.

        Raises:
            Exception: that of the first piece of work that failed; all others were done.
        """
        if self._soon or self._later:
            due = self._take(self._clock.now_ms())
            if (next_due_ms := self.next_due_ms) is not None:
                self._wake_at(next_due_ms)
            run_all(partial(self._try, work) for work in due)

    def run_soon(self) -> None:
        """
        Do the work without a delay; errors as ``run_due``.
        """
        if self._soon:
            run_all(partial(self._try, work) for work in self._take(None))

    def _try(self, work: DeferredCall) -> None:
        try:
            work()
        except TooManyOpenFiles:
            self.soon(work)
            raise

    def drop(self) -> None:
        """
        Drop all work.
        """
        with self._guard:
            self._soon.clear()
            self._later.clear()

    def _take(self, now_ms: int | None) -> list[DeferredCall]:
        with self._guard:
            due, self._soon = self._soon, []
            while now_ms is not None and self._later and self._later[0][0] <= now_ms:
                due.append(heapq.heappop(self._later)[2])
        return due
