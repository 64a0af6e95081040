"""
Connections of HTTP that cannot wear the broker out.

uvicorn bounds the size of a header, and no more: a peer may take all day for its request, or for
reading the answer, and there may be any number of peers. Here::

    MOST_CONNECTIONS    one more takes the place of the quietest, or is closed
    REQUEST_S           from the first byte of a request, or the connection, to the last header
    ANSWER_S            from when a peer stops reading an answer to the end of the answer
"""

from __future__ import annotations

import asyncio
import sys
from itertools import count
from typing import Final

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from barnabas.protocol.errors import without_frames

MOST_CONNECTIONS: Final = 100
REQUEST_S: Final = 10.0
"""
The seconds in which the headers of a request have to arrive.
"""
ANSWER_S: Final = 30.0
"""
The seconds that a peer which does not read at once has for an answer.
"""
_events: Final = count()
"""
Numbers the moments from which connections are quiet: the clock of the loop is too coarse.
"""


class BoundedProtocol(H11Protocol):
    """
    A connection, which ends when it takes too long.

    Invariants:

    1. While headers are awaited, ``_deadline`` is set, or uvicorn's timer of idle connections.
    2. Of all connections that are not closing there are at most ``MOST_CONNECTIONS``.
    """

    _deadline: asyncio.TimerHandle | None = None
    _reading_deadline: asyncio.TimerHandle | None = None
    _quiet_since = 0

    @property
    def is_quiet(self) -> bool:
        """
        Whether no request is being answered.
        """
        return self.cycle is None or bool(self.cycle.response_complete)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._quiet_since = next(_events)
        if not self._make_room():
            transport.abort()
            return
        self._await_request()

    def _make_room(self) -> bool:
        others = [
            other
            for other in self.connections
            if isinstance(other, BoundedProtocol)
            and other is not self
            and not other.transport.is_closing()
        ]
        if len(others) < MOST_CONNECTIONS:
            return True
        quiet = [other for other in others if other.is_quiet]
        if not quiet:
            return False
        min(quiet, key=lambda other: other._quiet_since).transport.abort()
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        self._cancel()
        self._cancel_reading()
        self._unset_keepalive_if_required()
        super().connection_lost(exc)
        self._let_go()

    def _let_go(self) -> None:
        """
        Break the circle of references to what the peer has sent: the collector, which would free it
        as well, may come much later.
        """
        if self.cycle is not None:
            self.cycle.on_response = _nothing
            self.cycle = None  # type: ignore[assignment]  # as it was at first
        self.scope = self.headers = None  # type: ignore[assignment]  # likewise

    def send_400_response(self, msg: str) -> None:
        """
        Say that what has arrived is no request, or no body. A request before it is not answered
        any more.
        """
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        error = sys.exception()
        if isinstance(error, h11.RemoteProtocolError):
            # h11 raises it where a frame refers to it: a circle, with all that has arrived.
            without_frames(error)
        try:
            super().send_400_response(msg)
        except h11.LocalProtocolError:  # an answer has begun
            self.transport.abort()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.conn.their_state is h11.IDLE:
            self._await_request()
        else:
            self._cancel()

    def on_response_complete(self) -> None:
        self._cancel_reading()
        self._quiet_since = next(_events)
        super().on_response_complete()
        # What has arrived behind the request may be the beginning of another one.
        if self.conn.their_state is h11.IDLE and self.conn.trailing_data[0]:
            self._await_request()

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._reading_deadline is None:
            self._reading_deadline = self.loop.call_later(ANSWER_S, self.transport.abort)

    def _await_request(self) -> None:
        if self._deadline is None and not self.transport.is_closing():
            self._deadline = self.loop.call_later(REQUEST_S, self.transport.abort)

    def _cancel(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _cancel_reading(self) -> None:
        if self._reading_deadline is not None:
            self._reading_deadline.cancel()
            self._reading_deadline = None


def _nothing() -> None:
    pass
