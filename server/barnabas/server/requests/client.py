"""
The client at the other end of a connection, as requests know it.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from barnabas.coordination.security.principal import ANONYMOUS

if TYPE_CHECKING:
    from barnabas.server.config import Listener
    from barnabas.server.requests.telemetry import TelemetrySession
    from barnabas.server.security.sasl.authentication import Authentication


class ClientSoftware(NamedTuple):
    """
    The name and version that a client gives in ApiVersions (KIP-511).
    """

    name: str
    version: str


class AnswerBudget(Protocol):
    """
    The part of the broker's memory for answers that one client has.
    """

    def count_answer(self, size: int, /) -> None:
        """
        An answer that is being made takes *size* bytes more, or less if that is negative.
        """

    def may_answer(self, resume: Callable[[], None], /) -> bool:
        """
        Return whether the answer may grow. If not, *resume* is called once it may.
        """


class Unlimited:
    """
    The budget of a client without a connection.
    """

    def count_answer(self, _size: int, /) -> None:
        pass

    def may_answer(self, _resume: Callable[[], None], /) -> bool:
        return True


UNLIMITED: Final = Unlimited()


class Client:
    """
    One client: who it is, where it is, and whether it still listens.

    The connection makes one and keeps it up to date. Handlers read it, and ApiVersions sets
    ``software``. ``queue_place`` belongs to ``FairQueue``.
    """

    __slots__ = (
        "_close_listeners",
        "address",
        "authentication",
        "budget",
        "client_id",
        "has_worked",
        "is_closing",
        "listener",
        "peer",
        "principal",
        "queue_place",
        "software",
        "telemetry",
        "throttle",
    )

    def __init__(self, listener: Listener, address: str = "", peer: str = "?") -> None:
        """
        Args:
            listener: the one that the client has connected to.
            address: the client's IP address as Java writes it (``host_address``).
            peer: the same with its port.
        """
        self.listener = listener
        self.address = address
        self.peer = peer
        self.principal = ANONYMOUS
        self.authentication: Authentication | None = None
        """How far it has come; None if it needs no SASL, or none any more."""
        self.client_id: str | None = None
        """The client id of the last request."""
        self.software: ClientSoftware | None = None
        self.telemetry: TelemetrySession | None = None
        """What it has asked and sent of its metrics; None before it does."""
        self.has_worked = False
        """Whether it has sent a request that is not introductory (``Route.is_introductory``)."""
        self.is_closing = False
        """Whether the client receives no further answers."""
        self.queue_place = -1.0
        self.budget: AnswerBudget = UNLIMITED
        self.throttle: Callable[[float], None] = no_connection
        """Reads nothing from the client for so many seconds."""
        self._close_listeners: list[Callable[[], None]] = []

    @property
    def is_authenticated(self) -> bool:
        """
        Whether it has shown who it is, or need not.
        """
        return self.authentication is None or self.authentication.principal is not None

    @property
    def is_token_authenticated(self) -> bool:
        """
        Whether it has shown a delegation token. Such a session ends, so that ``authentication``
        stays.
        """
        return self.authentication is not None and self.authentication.is_by_token

    def when_closed(self, listener: Callable[[], None]) -> None:
        """
        Call *listener* when the connection is closed, at once if it is.
        """
        if self.is_closing:
            listener()
        else:
            self._close_listeners.append(listener)

    def closed(self) -> None:
        """
        The connection is closed.
        """
        listeners, self._close_listeners = self._close_listeners, []
        for listener in listeners:
            listener()

    def __str__(self) -> str:
        client = repr(self.client_id) if self.client_id is not None else "a client"
        if self.software is not None:
            client += f" ({self.software.name} {self.software.version})"
        return f"{client} at {self.peer}"


def no_connection(_seconds: float) -> None:
    """
    There is nothing to read.
    """
