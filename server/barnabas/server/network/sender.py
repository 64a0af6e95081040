"""
The way out of a connection: as much as the peer takes, as little memory as that needs.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Executor
from typing import TYPE_CHECKING, Final, cast

from barnabas.server.fetch.stored_records import StoredRecords
from barnabas.server.network.socket_buffers import SendRoom
from barnabas.storage.fs.interface import WouldBlock

if TYPE_CHECKING:
    from socket import socket

    from barnabas.protocol.codec.primitives import Buffer
    from barnabas.server.metrics import Counter
    from barnabas.server.network.splice import AnswerPart, RecordPipe

# Parts up to this size are copied next to each other; larger ones are written as they are, but for
# those from a file, which have to be copied anyway.
SMALL = 4096
# So many bytes of records are not copied; with fewer, that costs less than to do without.
LEAST_SPLICED = 64 * 1024
# So much of what one peer has asked for is sent before others have their turn.
MOST_AT_ONCE = 1024 * 1024
BUFFER_BYTES: Final = 4 * 65_483
"""
What a socket with the default ``socket.send.buffer.bytes`` takes at once on the loopback interface:
four segments of the largest size. A few bytes more would be sent by themselves, a few fewer would
leave a short segment. It fits into the second cache of most processors.
"""


SHORT_BYTES: Final = 16 * 1024
"""
The same for a peer with TLS, while memory is short: one record of TLS.
"""


def memory_of(parts: Iterable[AnswerPart]) -> int:
    """
    The memory of an answer. Records in files have none.
    """
    size = 0
    for part in parts:
        if not isinstance(part, StoredRecords):
            size += len(part)
    return size


class Sender:
    """
    What a connection has to send, in order.

    Invariants:

    1. Bytes leave in the order in which they were put: past the transport (``record_pipe.py``) only
       while it holds nothing.
    2. Of records in a file, at most ``SMALL`` bytes are held for a peer that does not take them.
    3. No part is empty.
    4. The transport is full as long as it holds anything (its limit is 0). Meanwhile nothing is
       read and nothing given to it.
    5. ``_buffer`` is shared by all connections: what is in it is sent or forgotten before any other
       sender has its turn.
    """

    __slots__ = (
        "_buffer",
        "_bytes_out",
        "_failed",
        "_io",
        "_is_ending",
        "_is_full",
        "_is_loading",
        "_is_short",
        "_is_yielding",
        "_memory",
        "_parts",
        "_pipe",
        "_progressed",
        "_room",
        "_transport",
        "is_bulky",
    )

    def __init__(
        self,
        transport: asyncio.Transport,
        io: Executor,
        buffer: memoryview,
        bytes_out: Counter,
        pipe: RecordPipe,
        *,
        progressed: Callable[[], None],
        failed: Callable[[Exception], None],
        is_short: Callable[[], bool] = lambda: False,
    ) -> None:
        """
        Args:
            buffer: room for what is copied next to each other, shared by all connections.
            progressed: called when something was sent that had to wait for the executor or for its
                turn.
            failed: called when what is to be sent cannot be read.
            is_short: returns whether the memory of the broker is used up.
        """
        self._transport = transport
        transport.set_write_buffer_limits(high=0)
        self._io = io
        self._buffer = buffer
        self._bytes_out = bytes_out
        self._progressed = progressed
        self._failed = failed
        self._is_short = is_short
        self._parts: deque[AnswerPart] = deque()
        self._memory = 0  # of the parts, of which there may be very many
        self._pipe = pipe
        self._room: SendRoom | None = None
        self._is_full = False
        self._is_loading = False
        self._is_yielding = False
        self._is_ending = False
        self.is_bulky = False  # something large, or from a file, is to be sent

    @property
    def is_blocked(self) -> bool:
        """
        Whether something that was put has to wait for the peer, for the disk, or for its turn.
        """
        return self._is_full or self._is_loading or self._is_yielding

    @property
    def unread_bytes(self) -> int:
        """
        The memory of answers that the peer does not take. Records in files have none.
        """
        if not self._is_full:
            return 0
        return self._transport.get_write_buffer_size() + self._memory

    def put(self, buffers: list[Buffer]) -> None:
        """
        Send this too, at the next ``flush``. Records may be ``StoredRecords``.
        """
        if len(buffers) == 1:  # By far the most answers.
            size = len(buffers[0])
            self._parts.append(buffers[0])
            self._memory += size
            self.is_bulky |= size > SMALL
            return
        parts = cast("list[AnswerPart]", buffers)
        # Nothing may stand before or behind records, as in older versions of a fetch.
        self._parts += [part for part in parts if len(part)]
        self._memory += memory_of(parts)
        self.is_bulky = True

    def pause(self) -> None:
        """
        The transport is full.
        """
        self._is_full = True

    def resume(self) -> None:
        """
        The transport takes more.
        """
        self._is_full = False
        self.flush()

    def end(self) -> None:
        """
        Give the transport as much as it takes, before it is closed: there is no other turn.
        """
        self._is_ending = True
        self._is_yielding = False
        self.flush()

    def stop(self) -> None:
        """
        Send nothing more.
        """
        self._parts.clear()
        self._memory = 0

    def flush(self) -> None:
        """
        Give the transport as much as it takes.
        """
        parts = self._parts
        if not parts or self.is_blocked:
            return
        if self.is_bulky:
            self._flush_bulk()
        else:
            # Small answers, and none of them from a file: the most of what there is to send.
            small = cast("deque[Buffer]", parts)
            data = small.popleft() if len(small) == 1 else b"".join(small)
            parts.clear()
            self._memory = 0
            self._bytes_out.value += len(data)
            self._transport.write(data)

    def _flush_bulk(self) -> None:
        parts = self._parts
        most = self._bytes_out.value + MOST_AT_ONCE
        while parts and not self.is_blocked:
            if self._bytes_out.value >= most and not self._is_ending:
                self._yield()
                break
            part = parts[0]
            if not isinstance(part, StoredRecords) and len(part) > SMALL:
                parts.popleft()
                self._memory -= len(part)
                self._give(part)
                continue
            try:
                if not self._splice(self._pipe):
                    self._copy()
            except Exception as error:
                self._failed(error)
                return
        self.is_bulky = bool(parts)

    def _peer(self) -> socket | None:
        """
        The socket below the transport, if bytes can be given to it directly.
        """
        # The descriptor of a transport that closes may be another connection's already.
        if self._transport.is_closing():
            return None
        return cast("socket | None", self._transport.get_extra_info("socket"))

    def _splice(self, pipe: RecordPipe) -> bool:
        """
        Give the socket the next parts without copying them, if those are many records that the page
        cache has; whether this was the way for them.
        """
        if not self._is_worth_a_pipe(pipe):
            return False
        peer = self._peer()
        if peer is None:
            return False
        size = pipe.fill(self._parts)
        if size < LEAST_SPLICED:
            pipe.forget()
            return False
        if self._room is None:
            self._room = SendRoom(pipe.send_buffer_bytes)
        if not isinstance(self._parts[0], StoredRecords):  # An answer does not begin with records.
            self._room.before_answer(peer)
        sent = pipe.empty_into(peer.fileno())
        self._took(sent)
        if sent < size:
            self._room.note_full()
            self._wait_for_room()
        return True

    def _is_worth_a_pipe(self, pipe: RecordPipe) -> bool:
        parts = self._parts
        first = parts[0]
        if not isinstance(first, StoredRecords):
            # A few bytes that introduce the records: those are many, or all is small.
            if len(first) > SMALL or len(parts) == 1:
                return False
            first = parts[1]
        return isinstance(first, StoredRecords) and len(first) >= LEAST_SPLICED and pipe.is_usable

    def _drop(self, size: int) -> None:
        """
        The next *size* bytes are sent.
        """
        parts = self._parts
        while size:
            part = parts[0]
            sent = min(size, len(part))
            if not isinstance(part, StoredRecords):
                self._memory -= sent
            size -= sent
            if sent == len(part):
                parts.popleft()
            elif isinstance(part, StoredRecords):
                part.skip(sent)
            else:
                parts[0] = part[sent:]

    def _copy(self) -> None:
        """
        Send the next parts, copied next to each other, as far as the page cache has them.
        """
        room = self._buffer
        if self._is_short() and self._peer() is None:
            room = room[:SHORT_BYTES]
        size = self._gather(room)
        if size:
            self._send(room[:size])
        else:
            records = self._parts[0]
            assert isinstance(records, StoredRecords), "anything else is there"
            self._load(records)

    def _send(self, data: Buffer) -> None:
        """
        Send *data*, the beginning of the parts.
        """
        peer = self._peer()
        if peer is None:
            self._drop(len(data))
            self._give(bytes(data))
            return
        try:
            sent = os.write(peer.fileno(), data)
        except OSError:  # It is full, or broken, which the next write to it tells as well.
            sent = 0
        self._took(sent)
        if sent < len(data):
            rest = bytes(data[sent : sent + SMALL])
            self._drop(len(rest))
            self._give(rest)

    def _wait_for_room(self) -> None:
        """
        Let the transport tell when the socket has room again: it does so once it has sent a little.
        """
        size = self._gather(self._buffer[:SMALL])
        if size:
            self._drop(size)
            self._give(bytes(self._buffer[:size]))

    def _give(self, data: Buffer) -> None:
        self._bytes_out.value += len(data)
        self._transport.write(data)

    def _took(self, size: int) -> None:
        self._bytes_out.value += size
        self._drop(size)

    def _gather(self, room: memoryview) -> int:
        """
        Copy the next parts next to each other, as far as they are small or in the page cache; how
        many bytes that are.
        """
        size, end = 0, len(room)
        for part in self._parts:
            if isinstance(part, StoredRecords):
                at = 0
                while at < len(part) and size < end:
                    try:
                        count = part.copy_into(room[size:], at)
                    except WouldBlock:
                        return size
                    at += count
                    size += count
            elif len(part) <= min(SMALL, end - size):
                room[size : size + len(part)] = part
                size += len(part)
            else:
                break
            if size == end:
                break
        return size

    def _yield(self) -> None:
        """
        Go on in the next turn of the loop.
        """
        self._is_yielding = True
        asyncio.get_running_loop().call_soon(self._go_on)

    def _go_on(self) -> None:
        self._is_yielding = False
        self.flush()
        self._progressed()

    def _load(self, records: StoredRecords) -> None:
        """
        Have the executor read what the page cache lacks; all that comes later waits for it.
        """
        self._is_loading = True
        loop = asyncio.get_running_loop()
        future = loop.run_in_executor(self._io, lambda: records.load(BUFFER_BYTES))
        future.add_done_callback(self._loaded)

    def _loaded(self, future: asyncio.Future[bytes | bytearray]) -> None:
        self._is_loading = False
        if future.cancelled() or not self._parts:
            return
        error = future.exception()
        if error is not None:
            self._failed(error if isinstance(error, Exception) else RuntimeError(str(error)))
            return
        self._send(future.result())
        self.flush()
        self._progressed()
