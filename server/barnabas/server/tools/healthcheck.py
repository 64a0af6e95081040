"""
The health check: a request to a broker in its own protocol.

An accepted connection proves little, since a proxy may hold the port. The check requests the API
versions, which every broker answers for every client.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Mapping
from pathlib import Path

from barnabas.protocol.codec.codec import decode, encode
from barnabas.protocol.errors import DecodeError, ErrorCode
from barnabas.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse

_CORRELATION_ID = 1
_CLIENT_ID = b"barnabas-healthcheck"
_MOST = 1 << 20
_LOOPBACK = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}
"""
The address to connect to for a listener on every interface.
"""


class BadBrokerAddress(ValueError):
    """
    The address is not ``HOST:PORT``.
    """


def address_of(text: str) -> tuple[str, int]:
    """
    The host and the port in *text*; by default the host is this machine.

    Raises:
        BadBrokerAddress: *text* is not ``HOST:PORT``.
    """
    host, _, port = text.rpartition(":")
    if not port.isdigit():
        raise BadBrokerAddress(f"{text}: not HOST:PORT")
    return host.strip("[]") or "127.0.0.1", int(port)


def configured_address(file: Path | None, environment: Mapping[str, str]) -> tuple[str, int, bool]:
    """
    The address of a broker with this configuration, for connections from its own machine, and
    whether it speaks TLS there.

    Raises:
        ConfigError: an option of the configuration is not acceptable.
    """
    from barnabas.server.config import load_settings  # noqa: PLC0415  # takes longer than the check

    settings = load_settings(file=file, environment=environment)
    # It is for others, and a script may give it to the broker alone.
    settings.texts.pop("advertised.listeners", None)
    # Each of them answers the question; without TLS it costs less.
    listener = min(settings.config().client_listeners, key=lambda each: each.has_tls)
    return _LOOPBACK.get(listener.host, listener.host), listener.port, listener.has_tls


def _encrypted(plain: socket.socket) -> socket.socket:
    import ssl  # noqa: PLC0415  # takes longer than the check

    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context.wrap_socket(plain)


def check(host: str, port: int, seconds: float, *, has_tls: bool = False) -> str | None:
    """
    The problem of the broker at *host* and *port*, ``None`` if it is healthy.

    Args:
        seconds: the timeout of each step: connecting, and reading.
        has_tls: whether it speaks TLS. Its certificate is not looked at.
    """
    try:
        with (
            socket.create_connection((host, port), timeout=seconds) as plain,
            _encrypted(plain) if has_tls else plain as connection,
        ):
            connection.sendall(_request())
            size, correlation_id = struct.unpack(">ii", _exactly(connection, 8))
            if correlation_id != _CORRELATION_ID or not 4 <= size <= _MOST:
                return "what answers there is no Kafka broker"
            body = _exactly(connection, size - 4)
        response = decode(ApiVersionsResponse, 0, body)
    except (OSError, EOFError, DecodeError) as error:
        return str(error) or type(error).__name__
    if response.error_code != ErrorCode.NONE:
        return f"it answers with error {response.error_code}"
    return None


def _request() -> bytes:
    header = struct.pack(">hhih", 18, 0, _CORRELATION_ID, len(_CLIENT_ID)) + _CLIENT_ID
    body = encode(ApiVersionsRequest(), 0)
    return struct.pack(">i", len(header) + len(body)) + header + body


def _exactly(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        piece = connection.recv(size - len(data))
        if not piece:
            raise EOFError("the connection was closed")
        data += piece
    return data
