"""
What a log has put off.

Removing files, syncing a segment that is full, writing what only a start needs: nobody should wait
for it. Whoever looks after the log calls ``run_due`` from time to time.
"""

from __future__ import annotations

import heapq
import itertools
import threading
from collections import deque
from collections.abc import Callable

from barnabas.storage.clock import Clock
from barnabas.storage.segment_files import run_all

Work = Callable[[], None]


class DeferredWork:
    """
    Work for later, in the order in which it falls due. Safe from any thread.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._guard = threading.Lock()
        self._soon: deque[Work] = deque()
        self._later: list[tuple[int, int, Work]] = []
        self._numbers = itertools.count()

    def soon(self, work: Work) -> None:
        """
        Do *work* at the next occasion.
        """
        with self._guard:
            self._soon.append(work)

    def later(self, delay_ms: int, work: Work) -> None:
        """
        Do *work* once *delay_ms* have passed.
        """
        due_ms = self._clock.now_ms() + delay_ms
        with self._guard:
            heapq.heappush(self._later, (due_ms, next(self._numbers), work))

    @property
    def next_due_ms(self) -> int | None:
        """
        When the first of the work with a delay falls due.
        """
        later = self._later
        return later[0][0] if later else None

    def run_due(self) -> None:
        """
        Do all that is due by now.

        Raises:
            Exception: what the first piece of work that failed raised; all others were done.
        """
        if self._soon or self._later:
            run_all(self._take(self._clock.now_ms()))

    def run_soon(self) -> None:
        """
        Do what has no delay; errors as ``run_due``.
        """
        if self._soon:
            run_all(self._take(None))

    def drop(self) -> None:
        """
        Forget everything.
        """
        with self._guard:
            self._soon.clear()
            self._later.clear()

    def _take(self, now_ms: int | None) -> list[Work]:
        with self._guard:
            due = list(self._soon)
            self._soon.clear()
            while now_ms is not None and self._later and self._later[0][0] <= now_ms:
                due.append(heapq.heappop(self._later)[2])
        return due
