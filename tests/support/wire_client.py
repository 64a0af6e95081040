"""
Clients that speak the protocol and nothing else: no retries, no state, no opinion.

``WireClient`` is for asyncio, ``BlockingClient`` for threads. Headers are packed here by hand, so
that a mistake in ours does not cancel itself out.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable
from struct import pack, unpack
from typing import Any, Self, TypeVar

from barnabas.protocol.codec.codec import decode, encode
from barnabas.protocol.codec.schema import Message
from barnabas.protocol.messages import RESPONSES

R = TypeVar("R", bound=Message)

API_VERSIONS = 18


class Disconnected(Exception):
    """
    The broker has closed the connection.
    """


class Conversation:
    """
    The requests and responses of one connection, as bytes.
    """

    def __init__(self, client_id: str | None) -> None:
        self.client_id = client_id
        self._next_correlation_id = 0
        self._asked: list[tuple[int, type[Message], int]] = []

    def frame(self, request: Message, version: int) -> bytes:
        """
        The bytes of a request with the next correlation id, whose response is then expected.
        """
        correlation_id = self._next_correlation_id
        self._next_correlation_id += 1
        self._asked.append((correlation_id, RESPONSES[request.api.key], version))
        return request_frame(request, version, correlation_id, self.client_id)

    def expect_no_answer(self) -> None:
        """
        The last request has no response (acks=0).
        """
        self._asked.pop()

    def understand(self, frame: bytes) -> Any:
        """
        Decode a frame, which has to answer the oldest open request.
        """
        (received,) = unpack(">i", frame[:4])
        correlation_id, response, version = self._asked.pop(0)
        assert correlation_id == received, f"answer {received} instead of {correlation_id}"
        position = 4
        if response.api.is_flexible(version) and response.api.key != API_VERSIONS:
            assert 0 == frame[4], "no tagged fields in the header of a response"
            position = 5
        return decode(response, version, frame[position:])


class WireClient(Conversation):
    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, client_id: str | None
    ) -> None:
        super().__init__(client_id)
        self._reader = reader
        self._writer = writer

    @classmethod
    async def open(
        cls,
        port: int,
        *,
        host: str = "127.0.0.1",
        client_id: str | None = "t",
        limit: int = 1 << 26,
        **options: Any,
    ) -> Self:
        """
        Connect to a broker.

        Args:
            limit: half of the bytes that the client reads ahead, before a test receives them.
            options: other arguments of ``asyncio.open_connection``, such as those of TLS.
        """
        reader, writer = await asyncio.open_connection(host, port, limit=limit, **options)
        return cls(reader, writer, client_id)

    @property
    def peer(self) -> tuple[str, int]:
        host, port, *_ = self._writer.get_extra_info("peername")
        return host, port

    def send(self, *requests: Message, version: int) -> None:
        self._writer.write(b"".join(self.frame(request, version) for request in requests))

    def send_bytes(self, data: bytes) -> None:
        self._writer.write(data)

    async def receive(self) -> Any:
        """
        The response to the oldest open request.

        Raises:
            Disconnected: the connection ends instead.
        """
        return self.understand(await self.receive_frame())

    async def receive_frame(self) -> bytes:
        try:
            (size,) = unpack(">i", await self._reader.readexactly(4))
            return await self._reader.readexactly(size)
        except (asyncio.IncompleteReadError, ConnectionError) as error:
            raise Disconnected from error

    async def ask(self, request: Message, version: int) -> Any:
        self.send(request, version=version)
        await self.drain()
        return await self.receive()

    async def drain(self) -> None:
        """
        Wait until the broker has read most of what was sent.
        """
        await self._writer.drain()

    async def disconnected(self) -> bool:
        """
        Wait for the broker to close the connection; false if an answer comes instead.
        """
        try:
            return not await self._reader.read(1)
        except ConnectionError:
            return True

    def pause_reading(self) -> None:
        """
        Stop reading from the socket, as a slow peer.
        """
        self._writer.transport.pause_reading()  # type: ignore[attr-defined]  # of any real transport

    def resume_reading(self) -> None:
        self._writer.transport.resume_reading()  # type: ignore[attr-defined]  # the same

    async def close(self) -> None:
        self._writer.close()
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


class BlockingClient(Conversation):
    def __init__(
        self,
        port: int,
        wrap: Callable[[socket.socket], Any] = lambda plain: plain,
        *,
        receive_buffer_bytes: int | None = None,
        seconds: float = 20.0,
    ) -> None:
        """
        Args:
            wrap: makes another socket of the plain one, such as one with TLS.
            seconds: for each call that waits.
        """
        super().__init__("t")
        plain = socket.socket()
        if receive_buffer_bytes is not None:
            plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)
        plain.settimeout(seconds)
        plain.connect(("127.0.0.1", port))
        self.socket: Any = wrap(plain)

    def send(self, request: Message, version: int) -> None:
        self.send_bytes(self.frame(request, version))

    def send_bytes(self, data: bytes) -> None:
        self.socket.sendall(data)

    def receive_frame(self) -> bytes:
        """
        The next frame, without its size.

        Raises:
            Disconnected: the connection ends.
        """
        return self._exactly(*unpack(">i", self._exactly(4)))

    def _exactly(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            try:
                more = self.socket.recv(size - len(data))
            except ConnectionError as error:
                raise Disconnected from error
            if not more:
                raise Disconnected
            data += more
        return bytes(data)

    def ask(self, request: Message, version: int) -> Any:
        """
        Send one request and return its answer.

        Raises:
            Disconnected: the connection ends instead.
        """
        try:
            self.send(request, version)
        except ConnectionError as error:
            raise Disconnected from error
        return self.understand(self.receive_frame())

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self.socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def request_frame(
    request: Message, version: int, correlation_id: int = 0, client_id: str | None = "t"
) -> bytes:
    body = encode(request, version)
    header = pack(">hhi", request.api.key, version, correlation_id)
    if client_id is None:
        header += pack(">h", -1)
    else:
        name = client_id.encode()
        header += pack(">h", len(name)) + name
    if request.api.is_flexible(version):
        header += b"\0"
    return pack(">i", len(header) + len(body)) + header + body
