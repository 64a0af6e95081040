"""
The counters of clients that have a quota.

A client chooses its id freely, and with a quota for the default client id each new one gets a
counter of its own. So one that has been idle for as long as it remembers is dropped, which changes
nothing, and of more than ``MOST_COUNTERS`` the one that was idle for longest.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Final, Generic, TypeVar

from barnabas.coordination.text_memory import shortened
from barnabas.server.security.quotas.limits import QuotaLimits, Share

MOST_COUNTERS: Final = 10_000
"""
The most counters of one kind of quotas.
"""
MOST_AT_ONCE: Final = 2
"""
How many idle counters a new one may drop: more than one, so that their number goes down.
"""

C = TypeVar("C")


class QuotaCounter(Generic[C]):
    """
    What those who are counted together have done, and may do.
    """

    __slots__ = ("counted", "limit", "used_ms")

    def __init__(self, counted: C, limit: float, now_ms: int) -> None:
        self.counted = counted
        self.limit = limit
        self.used_ms = now_ms


class Counters(Generic[C]):
    """
    The counters of one kind of quotas, by who is counted together.

    Invariants:

    1. They are in the order of their last use.
    2. There are at most ``MOST_COUNTERS``, and none without a limit. None keeps a long name.
    """

    __slots__ = ("_by_share", "_idle_ms", "_limits", "_make", "_shortened")

    def __init__(
        self,
        limits: QuotaLimits,
        make: Callable[[float, int], C],
        idle_ms: Callable[[QuotaCounter[C]], float],
    ) -> None:
        """
        Args:
            make: makes one for a limit, at a time in ms.
            idle_ms: after so long without use a counter is like a new one.
        """
        self._limits = limits
        self._make = make
        self._idle_ms = idle_ms
        self._by_share: OrderedDict[Share, QuotaCounter[C]] = OrderedDict()
        self._shortened: set[Share] = set()
        """The shares with names that are digests of longer ones."""

    def __len__(self) -> int:
        return len(self._by_share)

    def __iter__(self) -> Iterator[Share]:
        return iter(self._by_share)

    def of(self, user: str, client_id: str, now_ms: int) -> QuotaCounter[C] | None:
        """
        The counter of a client; None if it has no limit.
        """
        share = self._limits.share_of(user, client_id)
        known_as = shortened(share[0]), shortened(share[1])
        counter = self._by_share.get(known_as)
        if counter is not None:
            counter.used_ms = now_ms
            self._by_share.move_to_end(known_as)
            return counter
        limit = self._limits.limit_of(share)
        if limit is None:
            return None
        self._make_room(now_ms)
        counter = QuotaCounter(self._make(limit, now_ms), limit, now_ms)
        self._by_share[known_as] = counter
        if known_as != share:
            self._shortened.add(known_as)
        return counter

    def _make_room(self, now_ms: int) -> None:
        there = self._by_share
        for _ in range(min(MOST_AT_ONCE, len(there))):
            oldest = next(iter(there.values()))
            is_idle = now_ms - oldest.used_ms >= self._idle_ms(oldest)
            if not (is_idle or len(there) >= MOST_COUNTERS):
                return
            self._shortened.discard(there.popitem(last=False)[0])

    def limits_changed(self) -> None:
        """
        Go by the limits as they are now.
        """
        for share in self._shortened:
            del self._by_share[share]  # the limit is that of a name that is not known any more
        self._shortened.clear()
        for share in list(self._by_share):
            limit = self._limits.limit_of(share)
            if limit is None:
                del self._by_share[share]
            else:
                self._by_share[share].limit = limit
