"""
Cutting what arrives on a connection into frames: a size (int32), then that many bytes.

A receiver fits ``asyncio.BufferedProtocol``: it gives a buffer, gets the number of bytes that were
put there, and gives the frames. Nothing is read twice, and hardly anything is copied::

    chunk    | size frame size frame size fr|             shared by all connections
                    -----      -----      --
                    frames, in place      |
    buffer                                |frame|         grows with what arrives

Bytes arrive in a chunk which all connections share. Frames that are whole are slices of it; it is
never written to again where something has arrived, as long as there is a slice of it. The beginning
of a frame that is not whole moves into a buffer of its own, and the rest arrives there. So a
connection that waits for its next request holds no memory at all.

The size that a peer announces is a claim. ``FrameMemory`` believes it up to ``TRUSTED_BYTES`` for
all peers together, since a buffer of the right size costs an honest producer no copy. Beyond that a
buffer has at most twice the size of what has arrived.

Memory that nobody looks at any more is used again, for new memory has to be filled with zeros.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

import struct
from typing import Final

from barnabas.protocol.errors import DecodeError

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

TRUSTED_BYTES: Final = 16 * 1024 * 1024
"""
How much memory all unfinished frames together get for their announcements alone.
"""
MOST_TRUSTED_BYTES: Final = 8 * 1024 * 1024
"""
A frame that announces more gets nothing for it.
"""
FIRST_ROOM_BYTES: Final = 4 * 1024
"""
The buffer of a frame whose announcement is not believed, before anything of it has arrived.
"""

_SIZE = struct.Struct(">i")
_SIZE_BYTES: Final = 4
_KEY_BYTES: Final = 2
_REFUSED: Final = -1  # the end of a frame that cannot be
_WHOLE: Final = -1  # the position of data that is one frame, without its size
_HTTP = (b"GET ", b"POST", b"PUT ", b"HEAD", b"DELE", b"OPTI", b"PATC", b"CONN", b"TRAC", b"PRI ")
_TLS_HANDSHAKE = b"\x16\x03"


class InvalidFrame(DecodeError):
    """
    The size of a frame cannot be, so that nothing after it can be understood.
    """


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


class FrameMemory:
    """
    The memory in which the frames of all connections of one event loop arrive.
    """

    __slots__ = ("chunks", "large_frames", "trusted_bytes")

    def __init__(self) -> None:
        self.chunks = Chunks()
        self.large_frames = LargeFrames()
        self.trusted_bytes = 0  # in buffers of unfinished frames that were made for a claim

    def trust(self, size: int) -> bool:
        """
        Believe that *size* bytes will arrive, if not too much is believed already. What was
        believed is given back with ``trusted_bytes``.
        """
        if size > MOST_TRUSTED_BYTES or self.trusted_bytes + size > TRUSTED_BYTES:
            return False
        self.trusted_bytes += size
        return True


class FrameReceiver:
    """
    The incoming half of a connection.

    Invariants:

    1. ``_view`` is where bytes arrive while a frame is not whole: the four bytes of its size, or
       its body; ``_filled`` of them are there. Otherwise it is ``None``.
    2. ``_data`` has what has arrived behind the last frame that was taken: at ``_position`` a whole
       frame, which ends at ``_stop``, or a size that cannot be. Otherwise it is ``None``. Nothing
       arrives before all of its frames were taken.
    3. A frame that was handed out is writable, belongs to the receiver of the frame, and never
       changes by itself.

    Args:
        max_frame_bytes: a frame that announces more is refused (``socket.request.max.bytes``). May
            be changed at any time, as it is once a client has authenticated.
        memory: shared by the connections of an event loop.
    """

    __slots__ = (
        "_data",
        "_filled",
        "_lent",
        "_memory",
        "_position",
        "_size",
        "_stop",
        "_trusted",
        "_view",
        "_was_large",
        "max_frame_bytes",
    )

    def __init__(self, max_frame_bytes: int, memory: FrameMemory) -> None:
        self.max_frame_bytes = max_frame_bytes
        self._memory = memory
        self._lent: memoryview | None = None
        self._view: memoryview | None = None
        self._filled = 0
        self._size = 0  # of the frame in _view, 0 while its size is arriving
        self._trusted = 0  # of the bytes in _view, those that FrameMemory has believed in
        self._data: memoryview | None = None
        self._position = 0
        self._stop = 0
        self._was_large = False  # the last frame, or the one in _view

    @property
    def has_frame(self) -> bool:
        """
        Whether ``take_frame`` has something to give, or to refuse.
        """
        return self._data is not None

    @property
    def next_bytes(self) -> int:
        """
        The size of the frame that ``take_frame`` would give, 0 if there is none.
        """
        if self._data is None:
            return 0
        if self._position < 0:
            return len(self._data)
        return max(0, self._stop - self._position - _SIZE_BYTES)

    @property
    def missing_bytes(self) -> int:
        """
        How many bytes of a frame of which the beginning has arrived are still to come.
        """
        return self._size - self._filled if self._view is not None and self._size else 0

    @property
    def announced_bytes(self) -> int:
        """
        The size of the frame that is arriving, 0 if none is.
        """
        return self._size if self._view is not None else 0

    @property
    def is_holding(self) -> bool:
        """
        Whether there is a frame that is not whole, or one that was not taken.
        """
        return self._view is not None or self._data is not None

    @property
    def held_bytes(self) -> int:
        """
        The memory of a frame that is not whole, and of frames that were not taken.
        """
        held = 0 if self._view is None else len(self._view)
        return held if self._data is None else held + len(self._data)

    @property
    def is_full(self) -> bool:
        """
        Whether the buffer of the frame has to ``grow`` before more of it can arrive.
        """
        view = self._view
        return view is not None and self._filled == len(view)

    def get_buffer(self, most: int = -1) -> memoryview:
        """
        Where the next bytes are to be put. Never empty.

        Args:
            most: of a request of which nothing has arrived, not more than so many bytes; -1 for as
                many as there is room for.
        """
        if self._view is not None:
            if self.is_full:
                self.grow()
            return self._view[self._filled :]
        if self._lent is None:  # else nothing has arrived there yet
            lent = self._memory.chunks.lend()
            self._lent = lent[:HEAD_BYTES] if self._was_large else lent
        return self._lent if most < 0 else self._lent[:most]

    def buffer_updated(self, count: int) -> None:
        """
        So many more bytes have arrived in the buffer: there may be frames to take, or the buffer
        may be full.
        """
        if self._view is not None:
            self._filled += count
            if self._filled == (self._size or _SIZE_BYTES):
                self._complete(self._view)
            return
        assert self._lent is not None, "bytes have arrived, but no buffer was asked for"
        data = self._memory.chunks.take(self._lent, count)
        self._lent = None
        self._look(data, 0)

    def take_frame(self) -> memoryview | None:
        """
        The next whole frame, or None if the rest of it is still to come.

        Raises:
            InvalidFrame: its size is not between 1 and ``max_frame_bytes``.
        """
        data = self._data
        if data is None:
            return None
        position = self._position
        if position < 0:  # It has arrived in a buffer of its own.
            self._data = None
            self._position = 0
            return data
        stop = self._stop
        if stop < 0:
            raise self._refusal(bytes(data[position : position + _SIZE_BYTES]))
        self._was_large = False
        self._look(data, stop)
        return data[position + _SIZE_BYTES : stop]

    def next_key(self) -> int:
        """
        The first two bytes of the frame that ``take_frame`` would give, which say what it asks for;
        -1 if there is none with so many.
        """
        data = self._data
        if data is None:
            return -1
        start = 0 if self._position < 0 else self._position + _SIZE_BYTES
        key = data[start : start + _KEY_BYTES]
        return int.from_bytes(key, signed=True) if len(key) == _KEY_BYTES else -1

    def keep(self) -> None:
        """
        Let frames that cannot be taken soon stay in memory of their own size: a slice of a chunk
        would keep all of it.
        """
        data = self._data
        if data is not None and self._position >= 0:
            self._look(memoryview(bytearray(data[self._position :])), 0)

    def grow(self) -> None:
        """
        Make room for as much again as has arrived.
        """
        assert self._view is not None, "there is nothing that could grow"
        bigger = memoryview(bytearray(min(self._size, 2 * self._filled)))
        bigger[: self._filled] = self._view
        self._stop_trusting()
        self._view = bigger

    def give_back(self) -> None:
        """
        No bytes will arrive in the buffer that was asked for: others may have it.

        A thousand connections that end at once would otherwise keep a chunk each.
        """
        if self._lent is not None:
            self._memory.chunks.take(self._lent, 0)
            self._lent = None

    def close(self) -> None:
        """
        Let go of all memory: nothing more will arrive, and nothing will be taken.
        """
        self.give_back()
        self._stop_trusting()
        self._view = self._data = None

    def _look(self, data: memoryview, position: int) -> None:
        """
        Find out whether the next frame of *data* is there. The beginning of one is kept apart.
        """
        size: int
        left = len(data) - position
        if left >= _SIZE_BYTES:
            (size,) = _SIZE.unpack_from(data, position)
            if not 0 < size <= self.max_frame_bytes:
                self._data, self._position, self._stop = data, position, _REFUSED
                return
            if size <= left - _SIZE_BYTES:
                self._data, self._position = data, position
                self._stop = position + _SIZE_BYTES + size
                return
            self._begin(size, data[position + _SIZE_BYTES :])
        elif left:
            self._begin(0, data[position:])
        self._data = None

    def _begin(self, size: int, head: memoryview) -> None:
        """
        Make a buffer for a frame of which *head* is there, or for a size of which *head* is there.
        """
        filled = len(head)
        self._size = size
        self._filled = filled
        if not size:
            room = _SIZE_BYTES
        elif size <= FIRST_ROOM_BYTES:
            room = size
        elif self._memory.trust(size):
            self._trusted = room = size
        else:
            room = min(size, max(FIRST_ROOM_BYTES, 2 * filled))
        self._was_large = size >= LEAST_ROOM_BYTES
        self._view = self._memory.large_frames.take(room)
        self._view[:filled] = head

    def _complete(self, view: memoryview) -> None:
        """
        The frame, or the size of one, has arrived in *view*.
        """
        self._view = None
        self._stop_trusting()
        if self._size:
            self._data = view
            self._position = _WHOLE
        else:
            self._look(view, 0)

    def _stop_trusting(self) -> None:
        self._memory.trusted_bytes -= self._trusted
        self._trusted = 0

    def _refusal(self, start: bytes) -> InvalidFrame:
        size: int
        (size,) = _SIZE.unpack(start)
        if size > self.max_frame_bytes and start.startswith(_TLS_HANDSHAKE):
            sentence = "a TLS handshake on a listener that does not speak TLS"
        elif size > self.max_frame_bytes and start in _HTTP:
            sentence = "an HTTP request on a listener that speaks Kafka's protocol"
        elif size > self.max_frame_bytes:
            sentence = f"a frame of {size} bytes, {self.max_frame_bytes} are the limit"
        else:
            sentence = f"a frame of {size} bytes"
        return InvalidFrame(sentence)
