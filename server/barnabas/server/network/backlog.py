"""
Requests that wait for their turn: further ones of a connection that has sent many, and large ones.

The first request of a connection is served when it arrives, unless it is large. All others have one
turn of ``TURN_S`` each time the event loop comes round, all connections together, which take it one
after the other::

    loop:     | arrivals | turn of a | arrivals | turn of b | arrivals | turn of a | ...

So no client waits for the 2,500 requests that one read has brought, nor for those of 1,000 peers.
A large request that is done within ``SLOW_S`` leaves the turn to others. Once ``MOST_SLOW`` small
requests have turned out to be slow, the other arrivals of that round wait like further requests.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from typing import Final, Protocol

from barnabas.server.scheduling.turns import SLOW_S
from barnabas.storage.clock import perf_counter

TURN_S: Final = 0.004
"""
How long further requests may hold the event loop each time that it comes round, in seconds.

A producer that pipelines requests of one record, alone, loses 8 % of its rate with 1 ms and 2 %
with 4 ms.
"""

LARGE_BYTES: Final = 4096
"""
The size, in bytes, from which a request is large: decoding it may take longer than a first turn.
"""
MOST_SLOW: Final = 10
"""
How many requests whose first turn is slow (``scheduling/turns.py``) may start each time that the
loop comes round.
"""


class Waiting(Protocol):
    """
    A connection with requests that wait.
    """

    def go_on(self) -> None:
        """
        Serve them, as long as the backlog has time.
        """


class Backlog:
    """
    The connections of one loop whose requests wait for their turn, oldest first.
    """

    __slots__ = ("_began", "_end", "_is_scheduled", "_now", "_slow", "_waiting")

    def __init__(self, now: Callable[[], float] = perf_counter) -> None:
        """
        Args:
            now: a time in seconds.
        """
        self._now = now
        self._began = 0.0  # of the large request that is served
        self._end = 0.0
        self._is_scheduled = False
        self._slow = 0  # since the loop came round
        self._waiting: OrderedDict[Waiting, None] = OrderedDict()

    @property
    def is_busy(self) -> bool:
        """
        Whether somebody has, or has had, further requests in this turn of the loop.
        """
        return self._is_scheduled

    def has_time(self) -> bool:
        """
        Whether a further request may be served before the loop comes round.
        """
        now = self._now()
        if self._is_scheduled:
            return now < self._end
        self._begin(now)
        return True

    @property
    def is_crowded(self) -> bool:
        """
        Return true if no request may start before the loop comes round.
        """
        return self._slow >= MOST_SLOW

    def count_slow(self) -> None:
        """
        Count a request whose first turn was slow.
        """
        self._slow += 1
        if not self._is_scheduled:
            self._begin(self._now())

    def begin_large(self) -> bool:
        """
        Return true if a large request may be served before the loop comes round. The caller then
        calls ``end_large`` once it has served the request.
        """
        self._began = self._now()
        return not self._is_scheduled or self._began < self._end

    def end_large(self) -> None:
        """
        Take the time of the large request from the turn, if it was slow.
        """
        if not self._is_scheduled and self._now() - self._began > SLOW_S:
            self._begin(self._began)

    def add(self, connection: Waiting) -> None:
        """
        Let *connection* go on (``go_on``) when its turn comes.
        """
        self._waiting[connection] = None
        if not self._is_scheduled:
            self._begin(self._now())

    def _begin(self, now: float) -> None:
        self._end = now + TURN_S
        self._is_scheduled = True
        asyncio.get_running_loop().call_soon(self._turn)

    def _turn(self) -> None:
        self._is_scheduled = False
        self._slow = 0
        waiting = self._waiting
        if not waiting:
            return
        self._begin(self._now())
        # Those that come to the end of the line meanwhile have their turn another time.
        for _ in range(len(waiting)):
            waiting.popitem(last=False)[0].go_on()
            if self._now() >= self._end:
                break
