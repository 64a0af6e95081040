"""
The sockets that clients connect to.
"""

from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Final

from barnabas.protocol.structs import replace
from barnabas.server.config import BrokerConfig, Listener
from barnabas.server.network.connection import Connection
from barnabas.server.network.registry import Connections

if TYPE_CHECKING:
    from barnabas.server.network.tls import TlsTransport

SYSTEM_DEFAULT = -1


class CannotListen(Exception):
    """
    An address that the configuration names cannot be listened on.
    """

    def __init__(self, address: object, error: OSError, option: str) -> None:
        """
        Args:
            option: names the address.
        """
        remedy = f"{_REMEDIES[error.errno]}, or " if error.errno in _REMEDIES else ""
        super().__init__(
            f"cannot listen on {address}: {reason_of(error)};"
            f" {remedy}name another address in {option}"
        )


def reason_of(error: OSError) -> str:
    """
    The reason without the address, which asyncio appends to the text of an error.
    """
    return (error.strerror or str(error)).partition(" (while attempting")[0]


_REMEDIES: Final = {
    errno.EADDRINUSE: "end the program that has the port",
    errno.EADDRNOTAVAIL: "give this machine the address",
    errno.EACCES: "run as a user who may use ports below 1024",
}


class LoopProtocol(asyncio.BufferedProtocol):
    """
    A connection as an event loop wants to have it: of a class that it knows. All that is called is
    the connection's.
    """

    __slots__ = (
        "buffer_updated",
        "connection_lost",
        "connection_made",
        "eof_received",
        "get_buffer",
        "pause_writing",
        "resume_writing",
    )

    def __init__(self, connection: Connection | TlsTransport) -> None:
        for name in self.__slots__:
            setattr(self, name, getattr(connection, name))


class Listening:
    """
    One open socket for each listener.

    They are bound first, which tells what port a listener of port 0 has and whether another process
    has the address, and serve only when all the rest of the broker does.
    """

    def __init__(self) -> None:
        self.listeners: list[Listener] = []
        self._sockets: list[socket.socket] = []
        self._servers: list[asyncio.Server] = []

    def bind(self, listeners: Iterable[Listener], config: BrokerConfig) -> Sequence[Listener]:
        """
        Take the addresses.

        Returns:
            The listeners with the ports they have.

        Raises:
            CannotListen: an address is taken, or is not one of this machine.
        """
        for listener in listeners:
            try:
                bound = bind(listener, config)
            except OSError as error:
                self.close_sockets()
                raise CannotListen(listener, error, "listeners") from error
            port = bound.getsockname()[1]
            self._sockets.append(bound)
            self.listeners.append(
                replace(listener, port=port, advertised_port=listener.advertised_port or port)
            )
        return self.listeners

    async def serve(self, connections: Connections) -> None:
        """
        Accept connections from now on.
        """
        loop = asyncio.get_running_loop()
        for listener, bound in zip(self.listeners, self._sockets, strict=True):
            self._servers.append(
                await loop.create_server(protocol_of(connections, listener), sock=bound)
            )

    def close(self) -> None:
        """
        Accept no more connections; those that are open stay open.
        """
        for server in self._servers:
            server.close()
        self.close_sockets()

    def close_sockets(self) -> None:
        for bound in self._sockets:
            bound.close()


def protocol_of(connections: Connections, listener: Listener) -> Callable[[], LoopProtocol]:
    """
    Makes the protocol of each connection of a listener.
    """
    resources = connections.resources
    if not listener.has_tls:
        return lambda: LoopProtocol(Connection(resources, listener))
    from barnabas.server.network.tls import TlsTransport  # noqa: PLC0415  # ssl is large

    def encrypted() -> LoopProtocol:
        security = resources.security.of(listener)
        assert security is not None, "a listener with TLS has security"
        return LoopProtocol(TlsTransport(Connection(resources, listener), resources, security))

    return encrypted


def bind(listener: Listener, config: BrokerConfig) -> socket.socket:
    """
    A socket that listens where *listener* does.

    Raises:
        OSError: the address is taken, or no address of this machine.
    """
    family, address = _address(listener)
    bound = socket.socket(family, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        # What a connection gets from accept() it inherits from here.
        if config.socket_receive_buffer_bytes != SYSTEM_DEFAULT:
            size = config.socket_receive_buffer_bytes
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, size)
        if config.socket_send_buffer_bytes != SYSTEM_DEFAULT:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, config.socket_send_buffer_bytes)
        if family == socket.AF_INET6:
            bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, listener.host != "")
        bound.bind(address)
        bound.listen(config.socket_listen_backlog_size)
        bound.setblocking(False)
    except OSError:
        bound.close()
        raise
    return bound


def _address(listener: Listener) -> tuple[socket.AddressFamily, tuple[str, int]]:
    """
    The one address to bind. An empty host is every interface, of both versions of IP where there
    are both; a name with several addresses stands for its IPv4 one, as in Java.
    """
    if not listener.host:
        if socket.has_dualstack_ipv6():
            return socket.AF_INET6, ("::", listener.port)
        return socket.AF_INET, ("0.0.0.0", listener.port)
    # As bytes a name of ASCII does not load the codec of all others, a hundredth of a start.
    host = listener.host.encode() if listener.host.isascii() else listener.host
    found = socket.getaddrinfo(
        host, listener.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )
    family, _, _, _, address = min(found, key=lambda entry: entry[0] != socket.AF_INET)
    return family, (str(address[0]), listener.port)
