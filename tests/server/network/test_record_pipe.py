from __future__ import annotations

import fcntl
import os
import socket
from collections.abc import Iterator
from types import ModuleType
from typing import Any, cast

import pytest

from barnabas.server.fetch.stored_records import StoredRecords
from barnabas.server.network.splice import PIPE_BYTES, RecordPipe
from barnabas.storage.segment.fetch_data import FileSlice


class Letters:
    def __init__(self, letter: bytes, *, cached: bool = True) -> None:
        self.letter = letter
        self.cached = cached

    def splice_into(self, pipe: int, position: int, size: int) -> int:
        try:
            return os.write(pipe, self.letter * size) if self.cached else 0
        except BlockingIOError:
            return 0


def records(size: int, letter: bytes = b"r", *, cached: bool = True) -> StoredRecords:
    return StoredRecords(FileSlice(cast(Any, Letters(letter, cached=cached)), 0, size))


@pytest.fixture
def pipe() -> Iterator[RecordPipe]:
    pipe = RecordPipe(100 * 1024)
    yield pipe
    pipe.close()


@pytest.fixture
def peers() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)
        yield ours, theirs


def test_pipe_sends_parts_in_order(
    pipe: RecordPipe, peers: tuple[socket.socket, socket.socket]
) -> None:
    ours, theirs = peers

    filled = pipe.fill([b"head", records(1000), b"between", records(10, b"s"), b"tail"])
    sent = pipe.empty_into(ours.fileno())

    whole = b"head" + b"r" * 1000 + b"between" + b"s" * 10 + b"tail"
    assert len(whole) == filled == sent
    assert whole == theirs.recv(2000)


def test_pipe_ends_at_the_first_cold_page(
    pipe: RecordPipe, peers: tuple[socket.socket, socket.socket]
) -> None:
    ours, theirs = peers

    filled = pipe.fill([b"head", records(1000, cached=False), b"tail"])
    sent = pipe.empty_into(ours.fileno())

    assert 4 == filled == sent
    assert b"head" == theirs.recv(2000)


def test_pipe_takes_as_much_as_it_has_room_for(pipe: RecordPipe) -> None:
    assert 3 + PIPE_BYTES > pipe.fill([b"abc", records(2 * PIPE_BYTES), b"tail"]) > PIPE_BYTES / 2
    pipe.forget()
    assert PIPE_BYTES == pipe.fill([records(PIPE_BYTES), b"tail"])
    pipe.forget()


def test_bytes_that_a_socket_does_not_take_are_dropped_from_the_pipe(
    pipe: RecordPipe, peers: tuple[socket.socket, socket.socket]
) -> None:
    ours, theirs = peers
    pipe.fill([records(PIPE_BYTES)])
    some = pipe.empty_into(ours.fileno())
    pipe.fill([b"more"])
    more = pipe.empty_into(ours.fileno())
    theirs.close()
    pipe.fill([b"even more"])
    after_the_end = pipe.empty_into(ours.fileno())

    assert 0 < some < PIPE_BYTES
    assert 0 == more == after_the_end
    assert 3 == pipe.fill([b"new"])
    pipe.forget()


def test_bytes_left_by_an_error_are_sent_to_nobody(
    pipe: RecordPipe, peers: tuple[socket.socket, socket.socket]
) -> None:
    class Broken(Letters):
        def splice_into(self, pipe: int, position: int, size: int) -> int:
            raise MemoryError

    ours, theirs = peers
    broken = StoredRecords(FileSlice(cast(Any, Broken(b"r")), 0, 10))
    with pytest.raises(MemoryError):
        pipe.fill([b"for one", records(10), broken])

    pipe.fill([b"for another"])
    pipe.empty_into(ours.fileno())

    assert b"for another" == theirs.recv(2000)


@pytest.mark.parametrize(("module", "function"), [(os, "pipe2"), (os, "open"), (fcntl, "fcntl")])
def test_records_are_copied_if_no_large_pipe_is_available(
    module: ModuleType, function: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    The system limits the number of descriptors, and the memory of a user's pipes.
    """

    def refuse(*_: object) -> int:
        raise PermissionError

    pipe = RecordPipe(-1)
    was_usable = pipe.is_usable
    before = set(os.listdir("/proc/self/fd"))

    with monkeypatch.context() as patched:
        patched.setattr(module, function, refuse)
        assert 0 == pipe.fill([b"abc"])

    assert was_usable
    assert not pipe.is_usable
    assert set(os.listdir("/proc/self/fd")) <= before


def test_pipe_is_closed_once_and_takes_no_more() -> None:
    pipe = RecordPipe(-1)
    before = set(os.listdir("/proc/self/fd"))
    pipe.fill([b"abc"])
    pipe.forget()

    pipe.close()
    pipe.close()

    assert set(os.listdir("/proc/self/fd")) <= before
    assert 0 == pipe.fill([b"abc"])
