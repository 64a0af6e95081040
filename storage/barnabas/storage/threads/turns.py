"""
How a thread that works for long lets other threads run.

::

    cleaner     work | offer | work | offer          | rest | work | offer | ...
                                    ^ another waits
    event loop                        its turn ........

One thread of a process at a time runs Python. Another one that wants its turn waits for the switch
interval, and then asks for it; the working thread notices that between two steps of the
interpreter. Two things make the wait long for an event loop, which waits a thousand times a second:
the interval is 5 ms, and compiled code notices nothing until it calls a function that is not.

So the interval is short during long work, and compiled code offers the turn a few times in a
millisecond. That costs next to nothing if no thread waits. ``benchmarks/cleaner.py`` measures the
latency of a producer beside a cleaner.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from types import TracebackType
from typing import Any, Final, TypeVar

from barnabas.storage.clock import offer_turn, rest_for_a_moment, seconds_now

T = TypeVar("T")

_SWITCH_SECONDS: Final = 0.000_1
"""As long as a step of the cleaner in compiled code, see ``batch_filter.RECORDS_PER_STEP``."""
_ANOTHER_RAN_SECONDS: Final = 0.000_02
"""An offer that took longer has let another thread run."""


class ThreadTurns:
    """
    The turns of one thread that works for long.
    """

    def __init__(
        self,
        offer: Callable[[], None] = offer_turn,
        rest: Callable[[], None] = rest_for_a_moment,
        now: Callable[[], float] = seconds_now,
    ) -> None:
        """
        Args:
            offer: lets another thread run if one waits, and comes back when it is our turn again.
            rest: comes back after a moment.
            now: the time in seconds.
        """
        self._offer: Any = offer
        self._rest: Any = rest
        self._now: Any = now

    def offer(self) -> None:
        """
        Let another thread have its turn if one waits for it.

        The other thread's work does not end with its next system call, at which this thread would
        get the turn again: the rest gives it some time.
        """
        before: float = self._now()
        self._offer()
        after: float = self._now()
        if after - before > _ANOTHER_RAN_SECONDS:
            self._rest()


def offered(items: Iterable[T], turns: ThreadTurns) -> Iterator[T]:
    """
    The *items*, with a turn for others before each.
    """
    for item in items:
        turns.offer()
        yield item


class ShortTurns:
    """
    The switch interval of the process, which is short while any thread is inside.

    Safe from any thread.
    """

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._inside = 0
        self._usual_seconds = 0.0

    def __enter__(self) -> None:
        with self._guard:
            if self._inside == 0:
                self._usual_seconds = sys.getswitchinterval()
                sys.setswitchinterval(min(self._usual_seconds, _SWITCH_SECONDS))
            self._inside += 1

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._guard:
            self._inside -= 1
            if self._inside == 0:
                sys.setswitchinterval(self._usual_seconds)


SHORT_TURNS: Final = ShortTurns()
"""There is one interval in a process."""
