from __future__ import annotations

import asyncio
import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, cast
from unittest.mock import Mock

import pytest

from barnabas.server.fetch.stored_records import StoredRecords
from barnabas.server.metrics import Counter
from barnabas.server.network.sender import BUFFER_BYTES, Sender
from barnabas.server.network.socket_buffers import LARGE_ROOM_BYTES, LOOKS, ROOM_BYTES, SendRoom
from barnabas.server.network.splice import RecordPipe
from barnabas.storage.segment.fetch_data import FileSlice

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells of windows")

CONFIGURED = 100 * 1024
NARROW = 64 * 1024
"""``receive.buffer.bytes`` of Java's consumer."""
WIDE = 1024 * 1024
SO_BUF_LOCK = 72
SOCK_SNDBUF_LOCK = 1
WAIT_S = 60
MUCH = bytes(16 * 1024 * 1024)


@contextmanager
def peers(receive_buffer_bytes: int) -> Iterator[tuple[socket.socket, socket.socket]]:
    with socket.create_server(("127.0.0.1", 0)) as listening, socket.socket() as theirs:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, CONFIGURED)
        theirs.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)
        theirs.settimeout(WAIT_S)
        theirs.connect(listening.getsockname())
        ours, _ = listening.accept()
        with ours:
            ours.setblocking(False)
            yield ours, theirs


def granted(size: int) -> int:
    """
    The size that Linux grants for a requested one.
    """
    return 2 * min(size, int(Path("/proc/sys/net/core/wmem_max").read_text()))


def room_of(peer: socket.socket) -> int:
    return peer.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF)


def is_left_to_the_system(peer: socket.socket) -> bool:
    """
    Whether Linux may enlarge the buffer; Linux before 5.14 does not tell, and counts as true.
    """
    try:
        return not peer.getsockopt(socket.SOL_SOCKET, SO_BUF_LOCK) & SOCK_SNDBUF_LOCK
    except OSError:
        return True


def answer(room: SendRoom, ours: socket.socket, theirs: socket.socket, size: int) -> None:
    room.before_answer(ours)
    left, unread = memoryview(MUCH)[:size], size
    while unread:
        try:
            left = left[ours.send(left) :] if left else left
        except BlockingIOError:
            room.note_full()
        unread -= len(theirs.recv(NARROW))
    # Whoever has read all asks for more, and says with it how much room there is.
    theirs.send(b"more")
    ours.settimeout(WAIT_S)
    ours.recv(10)
    ours.setblocking(False)


def test_slow_reader_gets_a_large_send_buffer() -> None:
    room = SendRoom(CONFIGURED)
    with peers(NARROW) as (ours, theirs):
        for _ in range(LOOKS):
            answer(room, ours, theirs, len(MUCH))
            assert room_of(ours) == granted(ROOM_BYTES)

        room.before_answer(ours)

        assert room_of(ours) == granted(LARGE_ROOM_BYTES)
        assert is_left_to_the_system(ours)


@pytest.mark.parametrize(
    ("receive_buffer_bytes", "sizes"),
    [
        pytest.param(WIDE, [len(MUCH)] * (LOOKS + 2), id="fast reader"),
        pytest.param(NARROW, [100_000] * (LOOKS + 2), id="responses fit"),
        pytest.param(NARROW, [len(MUCH), *[10_000] * (LOOKS + 2)], id="one did not fit"),
    ],
)
def test_peer_without_need_for_a_large_send_buffer_keeps_its_own(
    receive_buffer_bytes: int, sizes: list[int]
) -> None:
    room = SendRoom(CONFIGURED)
    with peers(receive_buffer_bytes) as (ours, theirs):
        for size in sizes:
            answer(room, ours, theirs, size)

        assert room_of(ours) == granted(ROOM_BYTES)


def test_send_buffer_of_a_peer_that_does_not_read_does_not_grow() -> None:
    room = SendRoom(CONFIGURED)
    with peers(NARROW) as (ours, theirs):
        room.before_answer(ours)
        sent = 0
        with suppress(BlockingIOError):
            while True:
                sent += ours.send(MUCH)
        for _ in range(LOOKS + 2):
            room.note_full()
            room.before_answer(ours)
        unread = room_of(ours)
        while sent:
            sent -= len(theirs.recv(NARROW))
        for _ in range(LOOKS + 1):
            answer(room, ours, theirs, len(MUCH))

        assert unread == granted(ROOM_BYTES)
        assert room_of(ours) >= granted(LARGE_ROOM_BYTES)


@pytest.mark.parametrize("configured", [ROOM_BYTES, -1])
def test_configured_or_system_send_buffer_is_kept(configured: int) -> None:
    room = SendRoom(configured)
    with peers(NARROW) as (ours, theirs):
        before = room_of(ours)
        for _ in range(LOOKS + 2):
            answer(room, ours, theirs, len(MUCH))

        assert room_of(ours) == before


def test_send_buffer_is_kept_if_the_window_is_unknown() -> None:
    """
    The socket is not TCP, as on a system that does not report windows.
    """
    room = SendRoom(CONFIGURED)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        for _ in range(LOOKS + 2):
            room.before_answer(ours)
            room.note_full()

        assert room_of(ours) == granted(ROOM_BYTES)


class Zeros:
    def splice_into(self, pipe: int, position: int, size: int) -> int:
        try:
            return os.write(pipe, bytes(size))
        except BlockingIOError:
            return 0

    def read_into(self, position: int, room: memoryview, *, nowait: bool = False) -> int:
        return len(room)


class Sending(asyncio.Protocol):
    def __init__(self) -> None:
        self.pipe = RecordPipe(CONFIGURED)
        self.made = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.sender = Sender(
            self.transport,
            Mock(),  # Nothing has to be read from a disk.
            memoryview(bytearray(BUFFER_BYTES)),
            Counter(),
            self.pipe,
            progressed=Mock(),
            failed=Mock(),
        )
        self.made.set()

    def pause_writing(self) -> None:
        self.sender.pause()

    def resume_writing(self) -> None:
        self.sender.resume()


async def fetched(sending: Sending, theirs: socket.socket, times: int) -> int:
    loop = asyncio.get_running_loop()
    size = 4 * 1024 * 1024
    for _ in range(times):
        records = StoredRecords(FileSlice(cast(Any, Zeros()), 0, size))
        sending.sender.put([b"head", cast(Any, records), b"tail"])
        sending.sender.flush()
        left = 4 + size + 4
        while left:
            left -= len(await loop.sock_recv(theirs, NARROW))
        await loop.sock_sendall(theirs, b"more")
    return room_of(sending.transport.get_extra_info("socket"))


async def test_broker_enlarges_send_buffers_of_slow_readers() -> None:
    loop = asyncio.get_running_loop()
    sending = Sending()
    server = await loop.create_server(lambda: sending, "127.0.0.1", 0)
    with socket.socket() as theirs:
        theirs.setblocking(False)
        theirs.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, NARROW)
        await loop.sock_connect(theirs, server.sockets[0].getsockname())
        async with asyncio.timeout(WAIT_S):
            await sending.made.wait()
            few = await fetched(sending, theirs, LOOKS)
            more = await fetched(sending, theirs, 2)
        sending.transport.abort()
    server.close()
    sending.pipe.close()

    assert few == granted(ROOM_BYTES)
    assert more > few
