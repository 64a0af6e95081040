"""
The server with what a test needs of it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Concatenate, NamedTuple, ParamSpec, TypeAlias, TypeVar

from barnabas.protocol.errors import KafkaError
from barnabas.server.broker import Broker
from barnabas.server.config import Listener
from barnabas.server.network.acceptor import CannotListen
from barnabas.server.requests.broker_parts import BrokerParts
from barnabas.server.requests.dispatch import Dispatcher
from barnabas.storage.fs.interface import Files
from barnabas.testing.defaults import Config, settings_of
from barnabas.testing.errors import StartFailed, hides_frame
from barnabas.testing.manual_clock import ManualClock
from barnabas.testing.rules import FaultyHandlers, RuleTable

__tracebackhide__ = hides_frame

P = ParamSpec("P")
R = TypeVar("R")

DATA = Path("/data")
"""
The log directory of a broker whose files are in memory.
"""


class Setup(NamedTuple):
    """
    How a broker is set up, whatever host it has.
    """

    config: Config
    directory: Path | None = None
    """The log directory; None: in memory."""
    clock_runs: bool = True
    start_ms: int | None = None
    """The wall clock at the first start, in ms since 1970 UTC; None: the real time."""
    listeners: tuple[Listener, ...] = ()
    """Those of an earlier start, whose ports it keeps."""


class Embedded(Broker):
    """
    A broker that runs for a test.

    Its clock and its files outlive it: another one can start where this one has stopped.
    """

    metadata_maintenance_s = 3600.0
    clock: ManualClock
    parts: BrokerParts

    def __init__(
        self, setup: Setup, *, files: Files | None, clock: ManualClock, rules: RuleTable
    ) -> None:
        """
        Args:
            files: a disk in place of the real one.
            rules: which requests fail.

        Raises:
            InvalidConfig: an option is unknown, or its value is not acceptable.
        """
        self.settings = settings_of(
            setup.config,
            log_dir=str(setup.directory or DATA),
            listeners=setup.listeners,
            in_memory=setup.directory is None,
        )
        self.rules = rules
        super().__init__(self.settings.config(), files=files, clock=clock)

    def dispatcher(self, parts: BrokerParts) -> Dispatcher:
        return Dispatcher(FaultyHandlers(self.rules), parts)

    def ports(self) -> set[int]:
        """
        The ports that it has taken so far.
        """
        found = {listener.port for listener in self.listeners}
        if self.http is not None:
            found.add(self.http.address.port)
        return found

    async def cut_off(self, remember: Callable[[], R]) -> R:
        """
        Close the port and all connections, and call *remember* before anything else runs on the
        loop: what a client has got no answer for by now, it never gets one for.
        """
        self._listening.close()
        if self.connections is not None:
            self.connections.abort()
        return remember()

    async def stop(self) -> None:
        # Nobody waits for a request that hangs.
        self.rules.release()
        await super().stop()

    async def start(self) -> None:
        """
        Start all parts.

        Raises:
            StartFailed: a port is taken, or the files cannot be served.
        """
        try:
            await super().start()
        except (CannotListen, KafkaError, OSError, ValueError) as error:
            raise StartFailed(f"the broker could not start: {error}") from error


Operation: TypeAlias = Callable[Concatenate[Embedded, P], Awaitable[R]]
"""
A function of a module, which runs on the loop of the broker. Its arguments and its result can be
pickled, since the broker may be in another process.
"""
