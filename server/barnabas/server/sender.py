"""
The way out of a connection: as much as the peer takes, as little memory as that needs.

This module is compiled when there is a compiler.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor
from typing import TYPE_CHECKING, TypeAlias, cast

from barnabas.server.send_room import SendRoom
from barnabas.server.stored_records import StoredRecords
from barnabas.storage.files import WouldBlock

if TYPE_CHECKING:
    from barnabas.server.kept_buffers import KeptBuffers
    from barnabas.server.metrics import Counter
    from barnabas.server.record_pipe import RecordPipe

Buffer: TypeAlias = bytes | bytearray | memoryview
Part: TypeAlias = Buffer | StoredRecords

# Parts up to this size are copied next to each other; larger ones are written as they are, but for
# those from a file, which have to be copied anyway.
SMALL = 4096
# So many bytes of records are not copied; with fewer, that costs less than to do without.
LEAST_SPLICED = 64 * 1024
# So much of what one peer has asked for is sent before others have their turn.
MOST_AT_ONCE = 1024 * 1024


class Sender:
    """
    What a connection has to send, in order.

    Invariants:

    1. Bytes leave in the order in which they were put: past the transport (``record_pipe.py``) only
       while it holds nothing.
    2. Of records in a file, at most a buffer is read ahead of what the peer takes.
    3. No part is empty.
    4. The transport is full as long as it holds anything (its limit is 0). Meanwhile nothing is
       read and nothing given to it, and ``_lent`` is the buffer of ours that it holds, if any.
    """

    __slots__ = (
        "_buffers",
        "_bytes_out",
        "_failed",
        "_io",
        "_is_ending",
        "_is_full",
        "_is_loading",
        "_is_yielding",
        "_lent",
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
        buffers: KeptBuffers,
        bytes_out: Counter,
        pipe: RecordPipe,
        *,
        progressed: Callable[[], None],
        failed: Callable[[Exception], None],
    ) -> None:
        """
        Args:
            progressed: called when something was sent that had to wait for the executor or for its
                turn.
            failed: called when what is to be sent cannot be read.
        """
        self._transport = transport
        transport.set_write_buffer_limits(high=0)
        self._io = io
        self._buffers = buffers
        self._bytes_out = bytes_out
        self._progressed = progressed
        self._failed = failed
        self._parts: deque[Part] = deque()
        self._pipe = pipe
        self._room: SendRoom | None = None
        self._is_full = False
        self._is_loading = False
        self._is_yielding = False
        self._is_ending = False
        self._lent: memoryview | None = None
        self.is_bulky = False  # something large, or from a file, is to be sent

    @property
    def is_blocked(self) -> bool:
        """
        Whether something that was put has to wait for the peer, for the disk, or for its turn.
        """
        return self._is_full or self._is_loading or self._is_yielding

    def put(self, parts: list[Part]) -> None:
        """
        Send this too, at the next ``flush``.
        """
        if len(parts) > 1:
            # Nothing may stand before or behind records, as in older versions of a fetch.
            self._parts += [part for part in parts if len(part)]
            self.is_bulky = True
        else:
            self._parts += parts
            self.is_bulky |= len(parts[0]) > SMALL

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
        if self._lent is not None:
            self._buffers.give_back(self._lent)
            self._lent = None
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
            self._bytes_out.value += len(data)
            self._transport.write(data)

    def _flush_bulk(self) -> None:
        parts = self._parts
        most = self._bytes_out.value + MOST_AT_ONCE
        while parts and not self.is_blocked:
            if self._bytes_out.value >= most and not self._is_ending:
                self._yield()
                break
            taken = self._splice(self._pipe)
            if taken:
                continue
            part = parts[0]
            if not isinstance(part, StoredRecords) and len(part) > SMALL:
                parts.popleft()
                self._bytes_out.value += len(part)
                self._transport.write(part)
                continue
            buffer = self._buffers.take()
            try:
                # A full socket gets no more than it takes to hear from the transport when to go on.
                size = self._gather(buffer if taken is None else buffer[:SMALL])
            except Exception as error:
                self._failed(error)
                return
            if size:
                self._write(buffer, size)
            else:
                assert isinstance(part, StoredRecords), "anything else is there"
                self._load(part, buffer)
        self.is_bulky = bool(parts)

    def _splice(self, pipe: RecordPipe) -> bool | None:
        """
        Give the socket the next parts without copying them, if those are many records that the page
        cache has; whether it took all of them. None if this is not the way for them.
        """
        if not self._is_worth_a_pipe(pipe):
            return None
        peer = self._transport.get_extra_info("socket")
        # The descriptor of a transport that closes may be another connection's already.
        if peer is None or self._transport.is_closing():
            return None
        size = pipe.fill(self._parts)
        if size < LEAST_SPLICED:
            pipe.forget()
            return None
        if self._room is None:
            self._room = SendRoom(pipe.send_buffer_bytes)
        if not isinstance(self._parts[0], StoredRecords):  # An answer does not begin with records.
            self._room.before_answer(peer)
        sent = pipe.empty_into(peer.fileno())
        if sent < size:
            self._room.note_full()
        self._bytes_out.value += sent
        self._drop(sent)
        return sent == size

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
            if size >= len(part):
                size -= len(part)
                parts.popleft()
                continue
            if isinstance(part, StoredRecords):
                part.skip(size)
            else:
                parts[0] = part[size:]
            break

    def _gather(self, buffer: memoryview) -> int:
        """
        Copy the next parts next to each other, as far as they are small or in the page cache; how
        many bytes that are.
        """
        parts = self._parts
        size, end = 0, len(buffer)
        while parts and size < end:
            part = parts[0]
            if isinstance(part, StoredRecords):
                try:
                    size += part.take(buffer[size:], nowait=True)
                except WouldBlock:
                    break
                if len(part):
                    continue
            elif len(part) <= min(SMALL, end - size):
                buffer[size : size + len(part)] = part
                size += len(part)
            else:
                break
            parts.popleft()
        return size

    def _write(self, buffer: memoryview, size: int) -> None:
        """
        Give the transport the beginning of a buffer of ours, which is free again once it is sent.
        """
        self._bytes_out.value += size
        self._transport.write(buffer[:size])
        if self._is_full:
            self._lent = buffer
        else:
            self._buffers.give_back(buffer)

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

    def _load(self, records: StoredRecords, buffer: memoryview) -> None:
        """
        Have the executor read what the page cache lacks; all that comes later waits for it.
        """
        self._is_loading = True
        loop = asyncio.get_running_loop()
        future = loop.run_in_executor(self._io, lambda: records.take(buffer, nowait=False))
        future.add_done_callback(lambda future: self._loaded(future, buffer))

    def _loaded(self, future: asyncio.Future[int], buffer: memoryview) -> None:
        self._is_loading = False
        if future.cancelled() or not self._parts:
            return
        error = future.exception()
        if error is not None:
            self._failed(error if isinstance(error, Exception) else RuntimeError(str(error)))
            return
        if not len(self._parts[0]):
            self._parts.popleft()
        self._write(buffer, future.result())
        self.flush()
        self._progressed()
