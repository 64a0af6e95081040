"""
All connections of a broker: how many there may be, how long they may be silent, and how they end.

The limits are those of Kafka's ``ConnectionQuotas``: an address with too many connections has its
new one closed, and past ``max.connections`` a new one is accepted but not read from until another
one has gone.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections import Counter as Tally
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from functools import partial
from typing import TYPE_CHECKING

from barnabas.protocol.structs import fresh, struct
from barnabas.server.config.connection_limits import (
    listener_connections,
    listener_rate,
    parse_limits,
)
from barnabas.server.network.connection import Connection
from barnabas.server.network.request_memory import LOOK_EVERY_S
from barnabas.server.network.resources import ConnectionResources
from barnabas.server.resources.descriptors import (
    descriptor_limit,
    most_connections,
    most_open_files,
)
from barnabas.server.resources.memory import trim_heap
from barnabas.server.security.host_address import host_address
from barnabas.storage.config.option_values import InvalidValue
from barnabas.storage.fs.open_files import OpenFiles
from barnabas.storage.units import INT_MAX, SECONDS

if TYPE_CHECKING:
    from barnabas.coordination.clock import ServerClock, Timer
    from barnabas.server.config import BrokerConfig
    from barnabas.server.metrics import Counter, Metrics
    from barnabas.server.network.connection_rates import ConnectionRates
    from barnabas.server.network.resources import Dispatch
    from barnabas.server.security.listeners import Security

A_MOMENT = 0.001  # not worth another timer
CROWD = 50
"""
After so many connections have left, what they had goes back to the system.
"""
MOST_LOOKS = 10
"""
How many times that is put off, by ``LOOK_EVERY_S`` each, while large requests are served.
"""

logger = logging.getLogger(__name__)

FEW = 1000
"""A system that allows fewer connections or open files than this limits a broker noticeably."""


@struct
class ConnectionLimits:
    """
    How many connections there may be.
    """

    total: int
    per_address: int
    by_address: Mapping[str, int]  # exceptions
    rate: int | None = None  # new ones in a second; None for no limit
    rates: Mapping[str, int | None] = fresh(factory=dict)  # by listener
    by_listener: Mapping[str, int] = fresh(factory=dict)  # those with a limit of their own

    @property
    def has_rate(self) -> bool:
        """
        Whether connections may come too fast.
        """
        return self.rate is not None or any(rate is not None for rate in self.rates.values())

    @classmethod
    def of(
        cls, config: BrokerConfig, texts: Mapping[str, str | None] | None = None
    ) -> ConnectionLimits:
        """
        What *config* says, or *texts*, if it is about a single listener. It may block, while names
        of hosts are resolved to addresses. A name without an address is logged and has no limit.
        """
        by_address: dict[str, int] = {}
        for host, count in parse_limits(config.max_connections_per_ip_overrides).items():
            try:
                by_address |= dict.fromkeys(_addresses(host), count)
            except InvalidValue as error:
                logger.error("%s", error)
        total = min(config.max_connections, most_connections())
        rate = config.max_connection_creation_rate
        texts = config.given if texts is None else texts
        rates = {
            listener.name: listener_rate(listener.name, texts, rate)
            for listener in config.client_listeners
        }
        return cls(
            total,
            config.max_connections_per_ip,
            by_address,
            _limited(rate),
            {name: _limited(rate) for name, rate in rates.items()},
            {
                listener.name: listener_connections(listener.name, texts)
                for listener in config.client_listeners
            },
        )


def check_hosts(config: BrokerConfig) -> None:
    """
    Raises:
        InvalidValue: a host of ``max.connections.per.ip.overrides`` has no address. It may block.
    """
    for host in parse_limits(config.max_connections_per_ip_overrides):
        _addresses(host)


def _addresses(host: str) -> set[str]:
    try:
        found = socket.getaddrinfo(host, None)
    except (OSError, UnicodeError):
        raise InvalidValue(
            "max.connections.per.ip.overrides",
            host,
            "the host has no address: write an address, or a name that this machine resolves",
        ) from None
    return {host_address(str(address[0])) for *_, address in found}


def _limited(rate: int) -> int | None:
    return None if rate == INT_MAX else rate


class Connections:
    """
    The connections of a broker.

    Invariants:

    1. At most ``max.connections`` of the broker and of each listener are served; those beyond wait
       in ``_held``, oldest first.
    2. Every connection that is served has one timer, which closes it when it has been silent for
       ``connections.max.idle.ms`` and waits for nothing.
    """

    def __init__(
        self,
        config: BrokerConfig,
        clock: ServerClock,
        io: Executor,
        dispatch: Dispatch,
        metrics: Metrics,
        *,
        security: Security,
        open_files: OpenFiles | None = None,
        texts: Mapping[str, str | None] | None = None,
        let_go: Callable[[], object] = lambda: None,
        is_busy: Callable[[], bool] = lambda: False,
    ) -> None:
        """
        Args:
            texts: all options as texts, with those of single listeners that are stored.
            open_files: those of logs, which have the descriptors that connections leave.
            let_go: called before free memory goes back to the system, to free what can be made
                again: little that is left among much that is free keeps the pages of all of it.
            is_busy: returns whether large requests are served, whose memory is not free yet.
        """
        self.resources = ConnectionResources(
            config,
            clock,
            io,
            dispatch,
            metrics,
            security=security,
            owner=self,
            freed=self._trim_heap,
        )
        self._accepted: dict[str, Counter] = {}  # by listener
        self._refused = metrics.counter("connections_refused", "Connections over a limit.")
        self._config = config
        self._clock = clock
        self._open_files = OpenFiles() if open_files is None else open_files
        self._open: dict[Connection, Timer | None] = {}
        self._held: deque[Connection] = deque()
        self._left = 0  # connections, since the heap was trimmed
        self._let_go = let_go
        self._is_busy = is_busy
        self._is_drained = False
        self._gone = asyncio.Event()
        self._by_address: Tally[str] = Tally()
        self._by_listener: Tally[str] = Tally()  # those in _open
        self._metrics = metrics
        self._rates: ConnectionRates | None = None  # None while there is no limit
        self._limits = ConnectionLimits.of(config, texts)
        self._limit_rates()
        if self._limits.total < config.max_connections:
            logger.log(
                logging.INFO if self._limits.total < FEW else logging.DEBUG,
                "at most %d connections are served: of the %s descriptors that the system allows,"
                " the others are kept for files",
                self._limits.total,
                descriptor_limit(),
            )
        for listener in config.client_listeners:
            self._measure(listener.name)

    def __len__(self) -> int:
        return len(self._open)

    def _measure(self, listener: str) -> Counter:
        """
        Show how many connections a *listener* has and has accepted.
        """
        self._metrics.gauge(
            "connections",
            "Connections now open.",
            partial(self._by_listener.__getitem__, listener),
            listener=listener,
        )
        counter = self._accepted[listener] = self._metrics.counter(
            "connections_accepted", "Connections ever accepted.", listener=listener
        )
        return counter

    def made(self, connection: Connection) -> None:
        """
        A peer has connected: serve it, let it wait, or close it.
        """
        listener = connection.client.listener.name
        (self._accepted.get(listener) or self._measure(listener)).value += 1
        if self._rates is None:
            self._welcome(connection)
        else:
            self._rates.arrived(connection)

    def _welcome(self, connection: Connection) -> None:
        address = connection.client.address
        self._by_address[address] += 1
        allowed = self._limits.by_address.get(address, self._limits.per_address)
        if self._by_address[address] > allowed:
            self._refused.value += 1
            connection.close(f"{address} has {allowed} connections already")
        elif self._has_room(connection):
            self._admit(connection)
        elif len(self._held) < self._most_held():
            connection.hold()
            self._held.append(connection)
        else:
            self._refused.value += 1
            connection.close(f"there are {len(self._open)} connections already")
        self._leave_to_files()

    def lost(self, connection: Connection) -> None:
        """
        A peer is gone.
        """
        if self._rates is not None and self._rates.forget(connection):
            return
        self._by_address[connection.client.address] -= 1
        if not self._by_address[connection.client.address]:
            del self._by_address[connection.client.address]
        if connection not in self._open:
            if connection in self._held:
                self._held.remove(connection)
            return
        timer = self._open.pop(connection)
        self._by_listener[connection.client.listener.name] -= 1
        self._leave_to_files()
        self._left += 1
        if self._left == CROWD:
            self._clock.call_later(LOOK_EVERY_S, self._trim_after_crowd)
        if timer is not None:
            timer.cancel()
        if not self._open:
            self._gone.set()
        self._admit_held()

    def _has_room(self, connection: Connection) -> bool:
        """
        Return whether broker and listener may serve one more connection.
        """
        limits, listener = self._limits, connection.client.listener.name
        return len(self._open) < limits.total and (
            self._by_listener[listener] < limits.by_listener.get(listener, INT_MAX)
        )

    def _admit_held(self) -> None:
        """
        Serve those that wait and for which there is room now.
        """
        for connection in tuple(self._held) if self._held else ():
            if len(self._open) >= self._limits.total:
                return
            if self._has_room(connection):
                self._held.remove(connection)
                self._admit(connection)

    def limit(self, limits: ConnectionLimits) -> None:
        """
        Go by *limits* from now on. Connections that are over them stay; none follow for so long.
        """
        self._limits = limits
        self._limit_rates()
        self._admit_held()

    def limit_address_rate(self, address: str | None, rate: float | None) -> None:
        """
        How many connections of an *address*, or of each that has no limit of its own, may come in a
        second; None for no limit.
        """
        if rate is not None or self._rates is not None:
            self._need_rates().limit_address(address, rate)

    def _limit_rates(self) -> None:
        limits = self._limits
        if limits.has_rate or self._rates is not None:
            self._need_rates().limit(limits.rate, limits.rates)

    def _need_rates(self) -> ConnectionRates:
        if self._rates is None:
            # Few brokers have any.
            from barnabas.server.network.connection_rates import (  # noqa: PLC0415
                ConnectionRates,
            )
            from barnabas.server.security.quotas.rate import Windows  # noqa: PLC0415

            config = self._config
            self._rates = ConnectionRates(
                Windows(config.quota_window_num, config.quota_window_size_seconds * SECONDS),
                self._clock,
                welcome=self._welcome,
                may_hold=lambda waiting: waiting + len(self._held) < self._most_held(),
                throttled=self._count_throttled,
            )
        return self._rates

    def _count_throttled(self, quota: str, throttle_ms: int) -> None:
        self._metrics.count_throttled("connections_throttled", quota, throttle_ms)

    async def drain(self, seconds: float) -> None:
        """
        Answer what was asked, for at most that long, and close all connections.
        """
        self._gone.clear()
        if self._rates is not None:
            self._rates.close()
        for connection in (*self._held, *self._open):
            connection.finish()
        if self._open:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._gone.wait(), seconds)
        if self._open:
            logger.warning("ending %d connections that are not done", len(self._open))
        self.abort()
        unfinished = tuple(self.resources.unfinished)
        for work in unfinished:
            work.cancel()
        await asyncio.gather(*(work.future() for work in unfinished), return_exceptions=True)
        self.resources.record_pipe.close()
        self._is_drained = True

    def abort(self) -> None:
        """
        Close all connections without sending anything more.
        """
        for connection in tuple(self._open):
            connection.abort()

    def _leave_to_files(self) -> None:
        """
        Let files of logs have what connections do not need.
        """
        most = most_open_files(len(self._open) + len(self._held))
        if most is not None:
            self._open_files.set_limit(most)

    def _most_held(self) -> int:
        """
        How many connections may wait: they have descriptors, too.
        """
        left = most_connections() - len(self._open)
        return min(self._config.socket_listen_backlog_size, left)

    def _trim_after_crowd(self) -> None:
        self._left = 0
        self._trim_heap()

    def _trim_heap(self, most_looks: int = MOST_LOOKS) -> None:
        if self._is_drained:  # The executor takes no more work.
            return
        if most_looks and self._is_busy():
            self._clock.call_later(LOOK_EVERY_S, partial(self._trim_heap, most_looks - 1))
            return
        self._let_go()
        asyncio.get_running_loop().run_in_executor(self.resources.io, trim_heap)

    def _admit(self, connection: Connection) -> None:
        connection.last_active = self._clock.monotonic()
        self._open[connection] = None
        self._by_listener[connection.client.listener.name] += 1
        self._watch(connection, self._config.connections_max_idle_ms / 1000)
        connection.admit()

    def _watch(self, connection: Connection, seconds: float) -> None:
        if self._config.connections_max_idle_ms >= 0:
            self._open[connection] = self._clock.call_later(seconds, self._idle, connection)

    def _idle(self, connection: Connection) -> None:
        """
        The time of a connection may be up. Its activity does not move the timer: that would cost
        every request what this costs once in ten minutes.
        """
        limit = self._config.connections_max_idle_ms / 1000
        left = limit - (self._clock.monotonic() - connection.last_active)
        if connection.waiting:
            self._watch(connection, limit)
        elif left > A_MOMENT:
            self._watch(connection, left)
        else:
            connection.close(f"silent for {limit - left:.0f} s")
