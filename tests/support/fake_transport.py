"""
A transport without a socket, which keeps what is written.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any, Protocol

Data = bytes | bytearray | memoryview


class Receiver(Protocol):
    """
    The part of a protocol or connection that takes received bytes.
    """

    def get_buffer(self, sizehint: int) -> Data: ...

    def buffer_updated(self, size: int) -> None: ...


class FakeTransport(asyncio.Transport):
    """
    Keeps what is written. ``close`` calls ``lost``, as an event loop does later.
    """

    def __init__(self, lost: Callable[[Exception | None], None] = lambda _: None) -> None:
        super().__init__()
        self.written = bytearray()
        self.reading = True
        self.closed = False
        self._lost = lost

    def write(self, data: Data) -> None:
        assert not self.closed, "written after it was closed"
        self.written += data

    def writelines(self, parts: Iterable[Data]) -> None:
        for part in parts:
            self.write(part)

    def take(self) -> bytes:
        data = bytes(self.written)
        self.written.clear()
        return data

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass

    def get_write_buffer_size(self) -> int:
        return 0

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return ("10.0.0.1", 4000) if name == "peername" else default

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            self._lost(None)

    def abort(self) -> None:
        self.close()


def feed(protocol: Receiver, data: Data) -> None:
    """
    Let *data* arrive at a protocol, in as many reads as its buffers need.
    """
    view = memoryview(data)
    while view:
        buffer = memoryview(protocol.get_buffer(-1))
        size = min(len(buffer), len(view))
        buffer[:size] = view[:size]
        protocol.buffer_updated(size)
        view = view[size:]
