"""
A peer on the port of a broker that answers as a test needs.
"""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from barnabas.protocol.codec.codec import encode
from barnabas.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse

Talk = Callable[[socket.socket], None]


@contextmanager
def peer(talk: Talk) -> Iterator[int]:
    taken: list[socket.socket] = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=_serve, args=(server, talk, taken))
        thread.start()
        try:
            yield server.getsockname()[1]
        finally:
            for each in (server, *taken):
                with suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)
            thread.join()


def _serve(server: socket.socket, talk: Talk, taken: list[socket.socket]) -> None:
    while True:
        try:
            connection, _ = server.accept()
        except OSError:
            return
        with connection, suppress(OSError):
            taken.append(connection)
            talk(connection)


def request_from(connection: socket.socket) -> bytes:
    (size,) = struct.unpack(">i", _exactly(connection, 4))
    return _exactly(connection, size)[4:8]


def greet(connection: socket.socket) -> None:
    keys = [ApiVersion(api_key=key, min_version=0, max_version=20) for key in range(60)]
    answer = request_from(connection)
    answer += encode(ApiVersionsResponse(error_code=0, api_keys=keys), 0)
    connection.sendall(struct.pack(">i", len(answer)) + answer)


def until_closed(connection: socket.socket) -> None:
    while connection.recv(1 << 16):
        pass


def _exactly(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = connection.recv(size - len(data))
        if not more:
            raise ConnectionError("gone")
        data += more
    return data
