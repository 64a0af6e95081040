"""
What a host does for a broker.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from barnabas.server.config import Listener
from barnabas.testing.disks.crashable import Choose
from barnabas.testing.errors import BrokerError, NotRunning
from barnabas.testing.hosts.embedded import Embedded

P = ParamSpec("P")
R = TypeVar("R")


class Host(Protocol):
    """
    Starts and stops a broker, any number of times, on the same port, files and clock.

    One thread at a time starts and stops it; any thread may call it.
    """

    @property
    def is_running(self) -> bool:
        """
        Whether the broker is started and not stopped.
        """

    @property
    def listeners(self) -> Sequence[Listener]:
        """
        The listeners of the broker, with their ports; none before its first start.
        """

    @property
    def log(self) -> str:
        """
        The last lines of the log of the broker.
        """

    def start(self) -> object:
        """
        Start; when this returns, clients are served.

        Raises:
            InvalidConfig: an option is unknown, or its value is not acceptable.
            StartFailed: the port is taken, or the files cannot be served.
        """

    def stop(self) -> None:
        """
        Stop the broker as a signal does, and return when it has stopped.
        """

    def close(self) -> None:
        """
        Stop, and give up what a further start would need: a process of its own ends.
        """

    def kill(self) -> None:
        """
        End the broker at once, as SIGKILL does: nothing is flushed, nobody is answered.

        Raises:
            NotRunning: the broker does not run.
            BrokerError: this host cannot do it.
        """

    def power_loss(self, choose: Choose) -> None:
        """
        End the broker at once, and the machine with it.

        Args:
            choose: how many of so many bytes or changes that are not synced the disk keeps.

        Raises:
            NotRunning: the broker does not run.
            BrokerError: this host cannot do it.
        """

    def call(
        self,
        operation: Callable[Concatenate[Embedded, P], Awaitable[R]],
        *args: P.args,
        **options: P.kwargs,
    ) -> R:
        """
        Run one of ``barnabas.testing.operations`` on the event loop of the broker, and return its
        result.

        Raises:
            NotRunning: the broker does not run.
            Exception: the operation raised it.
        """

    def now_ms(self) -> int:
        """
        The clock of the broker, in ms since 1970 UTC.

        Raises:
            NotRunning: the broker does not run.
        """

    def advance(self, seconds: float) -> None:
        """
        Move the clock, and return when all is done that falls due on the way.

        Raises:
            NotRunning: the broker does not run.
            TimeoutError: the work of one moment takes longer than 30 s of real time.
        """


def not_running(host: Host) -> NotRunning:
    """
    The error for a test that uses a broker which does not run.
    """
    if not host.listeners:
        return NotRunning("the broker is not started", "use it in a with block, or call start()")
    return NotRunning("the broker is stopped", "start() continues with the same data")


def cannot_lose_power() -> BrokerError:
    """
    The error for a test that takes the power from a disk which cannot crash.
    """
    return BrokerError("only a disk that can crash loses power", "Broker(disk=CrashableFiles())")
