"""
Cutting what arrives on a connection into frames: a size (int32), then that many bytes.

A receiver fits ``asyncio.BufferedProtocol``: it is asked for a buffer, then told how many bytes
were put there. Nothing is read twice, and hardly anything is copied::

    chunk    | size frame size frame size fr|             shared by all connections
                    -----      -----      --
                    frames, in place      |
    buffer                                |frame|         of the size of the frame

Bytes arrive in a chunk which all connections of a thread share. Frames that are whole are slices of
it; it is never written to again where something has arrived, as long as there is a slice of it.
The beginning of a frame that is not whole moves into a buffer of its own, and the rest arrives
there. So a connection that waits for its next request holds no memory at all.

Memory that nobody looks at any more is used again, for new memory has to be filled with zeros.
"""

from __future__ import annotations

import struct
import threading
from collections.abc import Iterable
from typing import Final

from barnabas.protocol.errors import DecodeError
from barnabas.protocol.primitives import Buffer

CHUNK_BYTES: Final = 256 * 1024
LEAST_ROOM_BYTES: Final = 64 * 1024
"""
A chunk with less room than this is replaced: reads into it would be too small.
"""

HEAD_BYTES: Final = 4 * 1024
"""
How much is read into the chunk where a large frame came before: the beginning of the next one,
which has to be copied.
"""
KEPT_FRAME_BYTES: Final = 1024 * 1024 + LEAST_ROOM_BYTES
"""
Room for a request with a batch as large as topics take by default.
"""
MOST_KEPT_FRAMES: Final = 2

TRUSTED_BYTES: Final = 8 * 1024 * 1024
"""
How much memory a frame gets for its announcement alone; beyond, it has to send first.
"""

_SIZE = struct.Struct(">i")
_SIZE_BYTES: Final = 4
_HTTP = (b"GET ", b"POST", b"PUT ", b"HEAD", b"DELE", b"OPTI", b"PATC", b"CONN", b"TRAC", b"PRI ")
_TLS_HANDSHAKE = b"\x16\x03"


class InvalidFrame(DecodeError):
    """
    The size of a frame cannot be, so that nothing after it can be understood.

    Args:
        frames: those that came before it in the same read.
    """

    def __init__(self, sentence: str, frames: list[memoryview]) -> None:
        super().__init__(sentence)
        self.frames = frames


def is_unused(memory: bytearray) -> bool:
    """
    Whether nobody has a view of *memory*: while there is one, Python does not let its size change.
    """
    try:
        memory.append(memory.pop())
    except BufferError:
        return False
    return True


class Chunks:
    """
    The memory in which bytes arrive, one chunk after the other.

    Invariants:

    1. A byte of a chunk is lent once only, as long as anybody looks at the chunk: what has arrived
       there stays.
    2. At most one borrower writes to a chunk at a time. A borrower that is slow keeps the chunk
       for itself.
    """

    __slots__ = ("_lent", "_memory", "_used", "_view")

    def __init__(self) -> None:
        self._memory = bytearray(1)
        self._view = memoryview(self._memory)
        self._used = 0
        self._lent = False

    def lend(self) -> memoryview:
        """
        Room for at least ``LEAST_ROOM_BYTES``, until the borrower calls ``take`` on it.
        """
        if self._lent or len(self._view) - self._used < LEAST_ROOM_BYTES:
            self._begin()
        self._lent = True
        return self._view[self._used :]

    def _begin(self) -> None:
        self._view.release()
        if len(self._memory) < CHUNK_BYTES or not is_unused(self._memory):
            self._memory = bytearray(CHUNK_BYTES)
        self._view, self._used = memoryview(self._memory), 0

    def take(self, lent: memoryview, size: int) -> memoryview:
        """
        The first *size* bytes of what was *lent*, which have arrived.
        """
        if lent.obj is self._view.obj:
            self._used += size
            self._lent = False
        return lent[:size]


class LargeFrames:
    """
    The memory of frames that do not fit into a chunk.
    """

    __slots__ = ("_kept",)

    def __init__(self) -> None:
        self._kept: list[bytearray] = []

    def take(self, size: int) -> memoryview:
        """
        Memory of *size* bytes, with anything in it, for as long as there is a view of it.
        """
        if not LEAST_ROOM_BYTES <= size <= KEPT_FRAME_BYTES:
            return memoryview(bytearray(size))
        for memory in self._kept:
            if is_unused(memory):
                return memoryview(memory)[:size]
        if len(self._kept) == MOST_KEPT_FRAMES:
            return memoryview(bytearray(size))
        self._kept.append(bytearray(KEPT_FRAME_BYTES))
        return memoryview(self._kept[-1])[:size]


class _ThreadMemory(threading.local):
    """
    The memory of each thread, since event loops of two threads read at the same time.
    """

    def __init__(self) -> None:
        self.chunks = Chunks()
        self.large_frames = LargeFrames()


_THREADS = _ThreadMemory()


class FrameReceiver:
    """
    The incoming half of a connection.

    Invariants:

    1. ``_view`` is where bytes arrive while a frame is not whole: the four bytes of its size, or
       its body; ``_filled`` of them are there. Otherwise it is ``None``.
    2. A frame that was handed out is writable, belongs to the receiver of the frame, and never
       changes by itself.

    Args:
        max_frame_bytes: a frame that announces more is refused (``socket.request.max.bytes``). May
            be changed at any time, as it is once a client has authenticated.
    """

    __slots__ = (
        "_chunks",
        "_filled",
        "_large_frames",
        "_lent",
        "_size",
        "_view",
        "_was_large",
        "max_frame_bytes",
    )

    def __init__(self, max_frame_bytes: int) -> None:
        self.max_frame_bytes = max_frame_bytes
        self._chunks = _THREADS.chunks
        self._large_frames = _THREADS.large_frames
        self._lent: memoryview | None = None
        self._view: memoryview | None = None
        self._filled = 0
        self._size = 0  # of the frame in _view, 0 while its size is arriving
        self._was_large = False  # the last frame, or the one in _view

    @property
    def is_inside_frame(self) -> bool:
        """
        Whether a part of a frame has arrived and the rest has not.
        """
        return self._view is not None

    @property
    def missing_bytes(self) -> int:
        """
        How many bytes of a frame of which the beginning has arrived are still to come.
        """
        return self._size - self._filled if self._view is not None and self._size else 0

    def get_buffer(self, _sizehint: int = -1) -> memoryview:
        """
        Where the next bytes are to be put. Never empty.
        """
        if self._view is not None:
            return self._view[self._filled :]
        if self._lent is None:  # else nothing has arrived there yet
            lent = self._chunks.lend()
            self._lent = lent[:HEAD_BYTES] if self._was_large else lent
        return self._lent

    def buffer_updated(self, count: int) -> list[memoryview]:
        """
        The frames that are whole now that *count* more bytes have arrived in the buffer.

        Raises:
            InvalidFrame: the size of a frame is not between 1 and ``max_frame_bytes``.
        """
        if self._view is not None:
            return self._advance(self._view, count)
        assert self._lent is not None, "bytes have arrived, but no buffer was asked for"
        data = self._chunks.take(self._lent, count)
        self._lent = None
        return self._cut(data)

    def give_back(self) -> None:
        """
        No bytes will arrive in the buffer that was asked for: others may have it.

        A thousand connections that end at once would otherwise keep a chunk each.
        """
        if self._lent is not None:
            self._chunks.take(self._lent, 0)
            self._lent = None

    def _cut(self, data: memoryview) -> list[memoryview]:
        """
        The frames in *data*, of which the rest becomes the beginning of the next.
        """
        frames: list[memoryview] = []
        size: int
        position, end = 0, len(data)
        while end - position >= _SIZE_BYTES:
            (size,) = _SIZE.unpack_from(data, position)
            if not 0 < size <= self.max_frame_bytes:
                raise self._refusal(size, bytes(data[position : position + _SIZE_BYTES]), frames)
            position += _SIZE_BYTES
            stop = position + size
            if stop > end:
                self._begin(size, data[position:])
                return frames
            frames.append(data[position:stop])
            position = stop
            self._was_large = False
        if position < end:
            self._begin(0, data[position:])
        return frames

    def _begin(self, size: int, head: memoryview) -> None:
        """
        Make a buffer for a frame of which *head* is there, or for a size of which *head* is there.
        """
        self._size = size
        self._filled = len(head)
        room = max(min(size, TRUSTED_BYTES), len(head)) if size else _SIZE_BYTES
        self._was_large = room >= LEAST_ROOM_BYTES
        self._view = self._large_frames.take(room)
        self._view[: len(head)] = head

    def _advance(self, view: memoryview, count: int) -> list[memoryview]:
        """
        Go on with the frame, or the size of one, that is arriving in *view*.
        """
        self._filled += count
        if self._filled < len(view):
            return []
        if self._filled < self._size:
            # Each step believes three times what has been sent.
            bigger = memoryview(bytearray(min(self._size, 4 * self._filled)))
            bigger[: self._filled] = view
            self._view = bigger
            return []
        self._view = None
        return [view] if self._size else self._cut(view)

    def _refusal(self, size: int, start: bytes, frames: list[memoryview]) -> InvalidFrame:
        if size > self.max_frame_bytes and start.startswith(_TLS_HANDSHAKE):
            sentence = "a TLS handshake on a listener that does not speak TLS"
        elif size > self.max_frame_bytes and start in _HTTP:
            sentence = "an HTTP request on a listener that speaks Kafka's protocol"
        elif size > self.max_frame_bytes:
            sentence = f"a frame of {size} bytes, {self.max_frame_bytes} are the limit"
        else:
            sentence = f"a frame of {size} bytes"
        return InvalidFrame(sentence, frames)


def size_prefix(buffers: Iterable[Buffer]) -> bytes:
    """
    What to send before *buffers* to make a frame of them.
    """
    return _SIZE.pack(sum(map(len, buffers)))
