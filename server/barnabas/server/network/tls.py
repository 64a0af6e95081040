"""
TLS between a connection and its socket (Kafka ``SslTransportLayer``).

::

    socket --> incoming --> OpenSSL --> Connection
    socket <-- outgoing <-- OpenSSL <-- Sender

To the event loop this is the protocol of the socket, and to the connection it is the transport. It
gives nobody the socket: what goes past the transport would leave unencrypted.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

import asyncio
import ssl
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, cast

from barnabas.protocol.codec.primitives import Buffer
from barnabas.server.security.tls.failures import handshake_failure

if TYPE_CHECKING:
    from barnabas.coordination.clock import Timer
    from barnabas.server.network.connection import Connection
    from barnabas.server.network.resources import ConnectionResources
    from barnabas.server.security.listener import ListenerSecurity

WRITE_BYTES: Final = 64 * 1024
"""
So much is encrypted at once: OpenSSL keeps as much memory for the connection.
"""


class TlsTransport:
    """
    The TLS of one connection.

    Invariants:

    1. The connection gets no byte, and its principal is not known, before the handshake is done.
    2. A peer that has sent nothing, or is not admitted, costs no memory of OpenSSL and has no
       deadline.
    3. While the connection does not read, at most ``TLS_READ_BYTES`` wait to be decrypted.
    4. Nothing is read from a peer that does not read: OpenSSL answers some records by itself, and a
       peer can send those without end (KeyUpdate).
    """

    def __init__(
        self, connection: Connection, resources: ConnectionResources, security: ListenerSecurity
    ) -> None:
        assert security.tls is not None, "the listener speaks TLS"
        self._connection = connection
        self._resources = resources
        self._security = security
        self._context = security.tls.context
        self._transport: asyncio.Transport | None = None
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._tls: ssl.SSLObject | None = None
        self._is_ready = False
        self._is_paused = False
        self._is_full = False
        self._is_reading = False
        self._is_closing = False
        self._deadline: Timer | None = None

    # What the event loop calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # What uvloop gives is one without being declared as one.
        self._transport = cast(asyncio.Transport, transport)
        self._connection.connection_made(cast("Any", self))

    def connection_lost(self, error: Exception | None) -> None:
        self._is_closing = True
        self._stop_deadline()
        self._transport = None
        self._tls = None
        self._connection.connection_lost(error)

    def get_buffer(self, _sizehint: int) -> memoryview:
        return self._resources.tls_buffer

    def buffer_updated(self, size: int) -> None:
        self._incoming.write(self._resources.tls_buffer[:size])
        self._advance()

    def eof_received(self) -> bool:
        return self._connection.eof_received()

    def pause_writing(self) -> None:
        self._is_full = True
        self._read_or_not(was_reading=not self._is_paused)
        self._connection.pause_writing()

    def resume_writing(self) -> None:
        self._is_full = False
        self._read_or_not(was_reading=False)
        self._connection.resume_writing()

    # What the connection calls

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        if name == "socket" or self._transport is None:
            return default
        return self._transport.get_extra_info(name, default)

    def is_closing(self) -> bool:
        return self._is_closing

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        if self._transport is not None:
            self._transport.set_write_buffer_limits(high, low)

    def get_write_buffer_size(self) -> int:
        return 0 if self._transport is None else self._transport.get_write_buffer_size()

    def pause_reading(self) -> None:
        was_reading = not self._is_full
        self._is_paused = True
        self._read_or_not(was_reading=was_reading)

    def resume_reading(self) -> None:
        self._is_paused = False
        self._read_or_not(was_reading=False)

    def _read_or_not(self, *, was_reading: bool) -> None:
        if self._transport is None:
            return
        if self._is_paused or self._is_full:
            if was_reading:
                self._transport.pause_reading()
        elif not was_reading:
            self._transport.resume_reading()
            # What arrived before the pause may be all that the peer sends for now.
            asyncio.get_running_loop().call_soon(self._advance)

    def write(self, data: Buffer) -> None:
        tls = self._tls
        if tls is None or self._is_closing:
            return
        rest = memoryview(data)
        try:
            while rest:
                # Not in the slice: mypyc evaluates the bounds of a slice twice.
                count = tls.write(rest[:WRITE_BYTES])
                rest = rest[count:]
                self._flush()
        except ssl.SSLError as error:
            self._connection.close(f"TLS cannot send: {error.reason}")

    def close(self) -> None:
        if self._is_closing:
            return
        self._is_closing = True
        tls = self._tls
        if tls is not None and self._is_ready:
            # It does not wait for the peer's part of it.
            with suppress(ssl.SSLError):
                tls.unwrap()
        self._flush()
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        self._is_closing = True
        if self._transport is not None:
            self._transport.abort()

    # TLS

    def _advance(self) -> None:
        if self._is_closing or self._is_reading or not self._connection.is_admitted:
            return
        if not self._is_ready and not self._shake_hands():
            return
        self._is_reading = True
        try:
            self._read()
        except ssl.SSLError as error:
            self._connection.close(f"TLS cannot be read: {error.reason or error}")
        finally:
            self._is_reading = False
        self._flush()

    def _shake_hands(self) -> bool:
        """
        Go on with the handshake; whether it is done.
        """
        tls = self._tls
        if tls is None:
            if not self._incoming.pending:
                return False
            self._deadline = self._resources.handshake_deadline(self._too_slow)
            tls = self._tls = self._context.wrap_bio(
                self._incoming, self._outgoing, server_side=True
            )
        try:
            tls.do_handshake()
        except ssl.SSLWantReadError:
            self._flush()
            return False
        except ssl.SSLError as error:
            self._connection.close(handshake_failure(error, self._connection.client.listener.name))
            return False
        self._stop_deadline()
        self._is_ready = True
        self._flush()
        return self._introduce(tls)

    def _introduce(self, tls: ssl.SSLObject) -> bool:
        """
        Find out who the client is; whether it is somebody.
        """
        try:
            principal = self._security.principal_of(tls.getpeercert(True))
        except Exception as error:
            self._connection.close(f"its certificate has no principal: {error}")
            return False
        if principal is None:
            self._connection.close("no rule of ssl.principal.mapping.rules is for its certificate")
            return False
        self._connection.client.principal = principal
        return True

    def _read(self) -> None:
        """
        Give the connection what can be decrypted.

        Raises:
            ssl.SSLError: the peer does not go by the protocol.
        """
        connection = self._connection
        # With a buffer it returns a number, which its type does not say.
        tls: Any = self._tls
        while not (tls is None or self._is_paused or self._is_full or self._is_closing):
            room = memoryview(connection.get_buffer(-1))
            size = len(room)
            filled = 0
            is_over = False
            try:
                while filled < size:
                    count: int = tls.read(size - filled, room[filled:])
                    if not count:
                        is_over = True
                        break
                    filled += count
            except ssl.SSLWantReadError:
                pass
            except ssl.SSLZeroReturnError:
                is_over = True
            if filled:
                connection.buffer_updated(filled)
            if is_over:
                connection.eof_received()
                self.close()
            if filled < size:
                return

    def _flush(self) -> None:
        if self._outgoing.pending and self._transport is not None:
            self._transport.write(self._outgoing.read())

    def _too_slow(self) -> None:
        self._connection.abort("its TLS handshake took too long")

    def _stop_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
