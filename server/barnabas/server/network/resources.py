"""
What all connections of a broker share.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from barnabas.protocol.framing import FrameMemory
from barnabas.server.network.backlog import Backlog
from barnabas.server.network.request_memory import RequestMemory
from barnabas.server.network.sender import BUFFER_BYTES
from barnabas.server.network.splice import RecordPipe
from barnabas.server.network.write_coalescing import Outbox
from barnabas.server.resources.memory import memory_bytes

if TYPE_CHECKING:
    from barnabas.coordination.clock import ServerClock, Timer
    from barnabas.protocol.codec.primitives import Buffer
    from barnabas.server.config import BrokerConfig
    from barnabas.server.metrics import Metrics
    from barnabas.server.requests.client import Client
    from barnabas.server.requests.context import Effects
    from barnabas.server.requests.errors import Outcome
    from barnabas.server.scheduling.turns import Work
    from barnabas.server.security.listeners import Security

Dispatched: TypeAlias = "list[Buffer] | tuple[PendingRequest, Work[Any]] | None"
"""
The buffers of an answer; or a request and the work that gives its answer; or no answer.
"""
Dispatch: TypeAlias = "Callable[[memoryview, Client], Dispatched]"
"""
Handles the request in a frame.
"""

PART_OF_MEMORY = 64
TLS_READ_BYTES = 64 * 1024
"""
So much is read from a socket with TLS at once: four records.
"""
HANDSHAKE_S = 30.0
"""
A TLS handshake that takes longer is given up.
"""
MOST_REQUEST_BYTES = 512 * 1024 * 1024


class PendingRequest(Protocol):
    """
    A request whose answer is not there yet.
    """

    on_effects: Callable[[], None] | None
    """Called when ``effects`` is set."""
    on_answered: Callable[[], None] | None
    """Called when the answer is made."""

    @property
    def effects(self) -> Effects | None:
        """
        Set once the request changes nothing more, and only its answer waits.
        """

    @property
    def held_bytes(self) -> int:
        """
        About how much memory the request keeps until it is answered.
        """

    def buffers(self, outcome: Outcome, /) -> list[Buffer] | Work[Any] | None:
        """
        The buffers of the answer, None where there is none; later, if the answer is large.

        Raises:
            CloseConnection: the connection has to be closed instead.
        """

    def answered(self) -> None:
        """
        The connection counts the memory of the answer from now on, or there is none.
        """


class ConnectionOwner(Protocol):
    """
    Hears which connections there are.
    """

    def made(self, connection: Any, /) -> None:
        """
        A peer has connected: serve it, let it wait, or close it.
        """

    def lost(self, connection: Any, /) -> None:
        """
        A peer has gone.
        """


class ConnectionResources:
    """
    Buffers, counters and budgets of all connections, and the way of their requests.
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
        owner: ConnectionOwner,
        freed: Callable[[], None],
    ) -> None:
        """
        Args:
            io: threads that read what the page cache lacks.
            freed: called when much of the memory for requests has been given back.
        """
        self.dispatch = dispatch
        self.security = security
        self.clock = clock
        self.io = io
        self.owner = owner
        self.max_frame_bytes = config.socket_request_max_bytes
        self.receive_buffer_bytes = config.socket_receive_buffer_bytes
        self.max_queued_requests = config.queued_max_requests
        self.queued_requests = 0
        """Requests that stand behind an unanswered one of their own connection."""
        self.frame_memory = FrameMemory()
        self.request_memory = RequestMemory(_request_memory_bytes(config), clock, freed=freed)
        self.now: Callable[[], float] = clock.monotonic
        self.unfinished: set[Work[Any]] = set()
        self.send_buffer = memoryview(bytearray(BUFFER_BYTES))
        self.tls_buffer = memoryview(bytearray(TLS_READ_BYTES))
        """What has just been read from a socket with TLS: it is decrypted at once."""
        self.record_pipe = RecordPipe(config.socket_send_buffer_bytes)
        self.outbox = Outbox()
        self.backlog = Backlog()
        self.bytes_in = metrics.counter("network_bytes_in", "Bytes received from clients.")
        self.bytes_out = metrics.counter("network_bytes_out", "Bytes sent to clients.")
        metrics.gauge(
            "request_memory_bytes",
            "Memory of requests that are not answered, and of answers that are not read.",
            lambda: self.request_memory.used_bytes,
        )

    def handshake_deadline(self, give_up: Callable[[], None]) -> Timer:
        """
        Call *give_up* unless the timer is cancelled before a handshake has to be done.
        """
        return self.clock.call_later(HANDSHAKE_S, give_up)


def _request_memory_bytes(config: BrokerConfig) -> int:
    """
    What ``queued.max.request.bytes`` says, or as much as fits the machine: a part of its memory,
    and room for the largest request at least.
    """
    if config.queued_max_request_bytes > 0:
        return config.queued_max_request_bytes
    part = memory_bytes() // PART_OF_MEMORY
    return max(config.socket_request_max_bytes, min(part, MOST_REQUEST_BYTES))
