"""
A client that speaks the protocol and nothing else: no retries, no state, no opinion.

Headers are packed here by hand, so that a mistake in ours does not cancel itself out.
"""

from __future__ import annotations

import asyncio
import contextlib
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


class WireClient:
    """
    One connection.
    """

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, client_id: str | None
    ) -> None:
        self.client_id = client_id
        self._reader = reader
        self._writer = writer
        self._next_correlation_id = 0
        self._asked: list[tuple[int, type[Message], int]] = []

    @classmethod
    async def open(cls, port: int, *, host: str = "127.0.0.1", client_id: str | None = "t") -> Self:
        """
        Connect to a broker.
        """
        reader, writer = await asyncio.open_connection(host, port, limit=1 << 26)
        return cls(reader, writer, client_id)

    @property
    def peer(self) -> tuple[str, int]:
        """
        The address of the broker.
        """
        host, port, *_ = self._writer.get_extra_info("peername")
        return host, port

    def frame(self, request: Message, version: int) -> bytes:
        """
        The bytes of a request with the next correlation id, which is then expected to be answered.
        """
        correlation_id = self._next_correlation_id
        self._next_correlation_id += 1
        key = request.api.key
        self._asked.append((correlation_id, RESPONSES[key], version))
        return request_frame(request, version, correlation_id, self.client_id)

    def send(self, *requests: Message, version: int) -> None:
        self._writer.write(b"".join(self.frame(request, version) for request in requests))

    def send_bytes(self, data: bytes) -> None:
        """
        Send anything.
        """
        self._writer.write(data)

    def expect_no_answer(self) -> None:
        """
        The last request that was sent has none (acks=0).
        """
        self._asked.pop()

    async def receive(self) -> Any:
        """
        The next answer, which must be the one to the oldest request that has none.

        Raises:
            Disconnected: it does not come.
        """
        frame = await self.receive_frame()
        (received,) = unpack(">i", frame[:4])
        correlation_id, response, version = self._asked.pop(0)
        assert correlation_id == received, f"answer {received} instead of {correlation_id}"
        position = 4
        if response.api.is_flexible(version) and response.api.key != API_VERSIONS:
            assert 0 == frame[4], "no tagged fields in the header of a response"
            position = 5
        return decode(response, version, frame[position:])

    async def receive_frame(self) -> bytes:
        """
        The next frame, without its size.
        """
        try:
            (size,) = unpack(">i", await self._reader.readexactly(4))
            return await self._reader.readexactly(size)
        except (asyncio.IncompleteReadError, ConnectionError) as error:
            raise Disconnected from error

    async def ask(self, request: Message, version: int) -> Any:
        """
        Send one request and return its answer.
        """
        self.send(request, version=version)
        await self._writer.drain()
        return await self.receive()

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
        Read nothing from the socket: a slow peer.
        """
        self._writer.transport.pause_reading()  # type: ignore[attr-defined]  # of any real transport

    def resume_reading(self) -> None:
        self._writer.transport.resume_reading()  # type: ignore[attr-defined]  # the same

    async def close(self) -> None:
        self._writer.close()
        with contextlib.suppress(ConnectionError):
            await self._writer.wait_closed()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


def request_frame(
    request: Message, version: int, correlation_id: int = 0, client_id: str | None = "t"
) -> bytes:
    """
    The bytes of a request, size and header included.
    """
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
