"""
How fast connections may come (Kafka ``SocketServer.ConnectionQuotas``; KIP-612).

Kafka's acceptor of a listener sleeps while connections come faster than
``max.connection.creation.rate``, and the next ones wait behind it. Here they are accepted, and wait
likewise, unread, in the order in which they came::

    accepted --> waits for its turn --> the rate of the broker and of the listener --> its address
                                                                                           |
                      closed, unread, when it has waited <-- too many of its own <---------+
                                                                                           |
                                                                                       welcome

An address that exceeds its own rate (the quota ``connection_creation_rate``) has its connection
closed after the time that it should have waited, and that one does not count.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from barnabas.server.security.quotas.limits import DEFAULT
from barnabas.server.security.quotas.quotas import RateQuotas
from barnabas.server.security.quotas.rate import MS, Rate, Windows, now_ms

if TYPE_CHECKING:
    from barnabas.coordination.clock import ServerClock, Timer
    from barnabas.server.network.connection import Connection

ONE: Final = 1.0


class LimitedRate:
    """
    A rate of new connections and its limit.
    """

    __slots__ = ("_limit", "_rate", "_windows")

    def __init__(self, windows: Windows, now: int) -> None:
        self._windows = windows
        self._rate = Rate(windows, now)
        self._limit: int | None = None

    def limit(self, limit: int | None) -> None:
        """
        Go by this limit from now on; None for none.
        """
        self._limit = limit

    def record(self, now: int) -> int:
        """
        Count a connection, and return how long the next one has to wait, in ms.
        """
        self._rate.record(ONE, now)
        if self._limit is None:
            return 0
        if not self._limit:
            return self._windows.size_ms
        return min(self._rate.throttle_ms(self._limit, now), self._windows.size_ms)

    def take_back(self, now: int) -> None:
        """
        A connection does not count.
        """
        self._rate.record(-ONE, now)


class Turnstile:
    """
    The connections of one listener that wait for their turn; the first of them is counted.
    """

    __slots__ = ("rate", "timer", "waiting")

    def __init__(self, rate: LimitedRate) -> None:
        self.rate = rate
        self.waiting: deque[Connection] = deque()
        self.timer: Timer | None = None


class ConnectionRates:
    """
    The rates of all listeners and addresses.

    Invariants:

    1. While a connection of a listener waits because of a rate, a timer runs, and all later ones of
       the listener wait behind it.
    2. Connections that wait are not read from, and there are no more of them than may be held.
    3. ``_strangers`` has all that are open and were never welcome.
    """

    def __init__(
        self,
        windows: Windows,
        clock: ServerClock,
        *,
        welcome: Callable[[Connection], None],
        may_hold: Callable[[int], bool],
        throttled: Callable[[str, int], None],
    ) -> None:
        """
        Args:
            welcome: called with each connection when it may be served.
            may_hold: returns whether one more connection may wait, beside so many.
            throttled: called for each that has to wait, with the reason and the time in ms.
        """
        self._windows = windows
        self._clock = clock
        self._welcome = welcome
        self._may_hold = may_hold
        self._throttled = throttled
        self._broker = LimitedRate(windows, now_ms(clock))
        self._turnstiles: dict[str, Turnstile] = {}
        self._addresses = RateQuotas(windows, longest_ms=windows.size_ms)
        self._leaving: dict[Connection, Timer] = {}
        self._strangers: set[Connection] = set()

    def __len__(self) -> int:
        """
        How many connections wait.
        """
        waiting = sum(len(turnstile.waiting) for turnstile in self._turnstiles.values())
        return waiting + len(self._leaving)

    def limit(self, total: int | None, by_listener: Mapping[str, int | None]) -> None:
        """
        Go by these rates from now on. What waits has its time to the end.
        """
        self._broker.limit(total)
        for name, limit in by_listener.items():
            self._turnstile(name).rate.limit(limit)

    def limit_address(self, address: str | None, limit: float | None) -> None:
        """
        The rate of an *address*, or of those that have none of their own; None for none.
        """
        self._addresses.change((DEFAULT if address is None else address, None), limit)

    def arrived(self, connection: Connection) -> None:
        """
        A peer has connected.
        """
        self._strangers.add(connection)
        turnstile = self._turnstile(connection.client.listener.name)
        if not turnstile.waiting:
            self._count(connection, turnstile)
        elif self._may_hold(len(self)):
            connection.hold()
            turnstile.waiting.append(connection)
        else:
            connection.close("connections come faster than max.connection.creation.rate")

    def forget(self, connection: Connection) -> bool:
        """
        Forget a connection that is gone; false if it was welcome before.
        """
        if connection not in self._strangers:
            return False
        self._strangers.remove(connection)
        timer = self._leaving.pop(connection, None)
        if timer is not None:
            timer.cancel()
        waiting = self._turnstile(connection.client.listener.name).waiting
        if connection in waiting and waiting[0] is not connection:
            waiting.remove(connection)  # The time of the first one passes in any case.
        return True

    def close(self) -> None:
        """
        Close all that wait.
        """
        waiting = [each for turnstile in self._turnstiles.values() for each in turnstile.waiting]
        for connection in (*waiting, *self._leaving):
            connection.close()

    def _turnstile(self, listener: str) -> Turnstile:
        turnstile = self._turnstiles.get(listener)
        if turnstile is None:
            rate = LimitedRate(self._windows, now_ms(self._clock))
            turnstile = self._turnstiles[listener] = Turnstile(rate)
        return turnstile

    def _count(self, connection: Connection, turnstile: Turnstile) -> None:
        now = now_ms(self._clock)
        throttle_ms = max(self._broker.record(now), turnstile.rate.record(now))
        if not throttle_ms:
            self._pass(connection, turnstile)
            return
        self._throttled("connection_creation", throttle_ms)
        if connection not in turnstile.waiting:
            connection.hold()
            turnstile.waiting.appendleft(connection)
        turnstile.timer = self._clock.call_later(throttle_ms / MS, self._go_on, turnstile)

    def _go_on(self, turnstile: Turnstile) -> None:
        """
        The time of the first one is over.
        """
        turnstile.timer = None
        waiting = turnstile.waiting
        self._pass(waiting.popleft(), turnstile)
        while waiting and turnstile.timer is None:
            connection = waiting[0]
            self._count(connection, turnstile)
            if turnstile.timer is None:
                waiting.popleft()

    def _pass(self, connection: Connection, turnstile: Turnstile) -> None:
        if connection.client.is_closing:
            return
        now = now_ms(self._clock)
        address = connection.client.address
        throttle_ms = self._addresses.record(address, DEFAULT, ONE, now)
        if not throttle_ms:
            self._strangers.remove(connection)
            self._welcome(connection)
            return
        self._addresses.take_back(address, DEFAULT, ONE, now)
        self._broker.take_back(now)
        turnstile.rate.take_back(now)
        self._throttled("connection_creation_of_address", throttle_ms)
        reason = f"{address} connects faster than its quota allows"
        if not self._may_hold(len(self)):
            connection.close(reason)
            return
        connection.hold()
        self._leaving[connection] = self._clock.call_later(
            throttle_ms / MS, self._leave, connection, reason
        )

    def _leave(self, connection: Connection, reason: str) -> None:
        # It is forgotten when it is gone.
        connection.close(reason)
