"""
An HTTP server on an event loop.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import uvicorn

from barnabas.server.http.address import Address
from barnabas.server.network.acceptor import CannotListen

if TYPE_CHECKING:
    from asyncio import Protocol

    from starlette.types import ASGIApp

MOST_CONNECTIONS: Final = 100
"""
More than these get status 503.
"""

MOST_HEADER_BYTES: Final = 16 << 10
"""
The most bytes of the first line and the headers of a request that come in several pieces.
"""

IDLE_S: Final = 120
"""
The seconds after which a connection without requests is closed. Clients that keep connections may
send the next request on one just as it is closed: it should not happen within a test.
"""

STOP_S: Final = 0.5
"""
The seconds that requests have to end when the server stops.
"""


class HttpServer:
    """
    Serves an application from ``start`` to ``stop``, on the event loop of the caller.
    """

    def __init__(
        self,
        app: ASGIApp,
        address: Address,
        *,
        option: str,
        protocol: type[Protocol] | None = None,
    ) -> None:
        """
        Take the address.

        Args:
            option: names the address.
            protocol: serves each connection in place of uvicorn's, and bounds their number.

        Raises:
            CannotListen: it is taken, or is not one of this machine.
        """
        try:
            self._socket = socket.create_server(
                address, family=socket.AF_INET6 if ":" in address.host else socket.AF_INET
            )
        except OSError as error:
            raise CannotListen(f"http://{address}", error, option) from error
        self.address = address._replace(port=self._socket.getsockname()[1])
        self._server = _Server(
            uvicorn.Config(
                app,
                http=protocol or "h11",
                ws="none",
                lifespan="off",
                log_config=None,
                log_level="error",  # Java's client asks for HTTP/2 first, of which it would warn.
                access_log=False,
                server_header=False,
                proxy_headers=False,
                limit_concurrency=None if protocol else MOST_CONNECTIONS,
                h11_max_incomplete_event_size=MOST_HEADER_BYTES,
                timeout_keep_alive=IDLE_S,
            )
        )
        self._serving: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """
        Accept requests from now on.
        """
        self._serving = asyncio.create_task(self._server.serve(sockets=[self._socket]))
        while not self._server.started and not self._serving.done():  # noqa: ASYNC110  # no event
            await asyncio.sleep(0.001)
        if self._serving.done():
            await self._serving

    @property
    def connections(self) -> int:
        """
        The number of open connections.
        """
        return len(self._server.server_state.connections)

    async def stop(self) -> None:
        """
        Answer the requests in progress for up to ``STOP_S``, and close all connections and the
        address.
        """
        if self._serving is None:
            self._socket.close()
        else:
            self._server.should_exit = True
            await asyncio.wait({self._serving}, timeout=STOP_S)
            if not self._serving.done():
                self._server.end_requests()
            await self._serving


class _Server(uvicorn.Server):
    """
    The process has handlers for signals, which stop more than this.
    """

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    def end_requests(self) -> None:
        """
        Close all connections and end the requests in progress, such as one whose client reads
        nothing.
        """
        logging.getLogger("uvicorn.error").addFilter(_is_no_cancellation)
        self.force_exit = True
        for connection in tuple(self.server_state.connections):
            connection.transport.abort()
        for task in tuple(self.server_state.tasks):
            task.cancel()


def _is_no_cancellation(record: logging.LogRecord) -> bool:
    """
    Return whether an event of uvicorn is worth logging. A cancelled request logs a traceback.
    """
    return not (record.exc_info and isinstance(record.exc_info[1], asyncio.CancelledError))
