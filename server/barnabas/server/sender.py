"""
The way out of a connection: as much as the peer takes, as little memory as that needs.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor
from typing import TYPE_CHECKING, TypeAlias, cast

from barnabas.server.stored_records import StoredRecords
from barnabas.storage.files import WouldBlock

if TYPE_CHECKING:
    from barnabas.server.metrics import Counter

Buffer: TypeAlias = bytes | bytearray | memoryview
Part: TypeAlias = Buffer | StoredRecords

# How much is read of a file at once, and about how much one write takes.
CHUNK = 512 * 1024
# Parts up to this size are copied next to each other; larger ones are written as they are.
SMALL = 4096


class Sender:
    """
    What a connection has to send, in order.

    Invariants:

    1. Bytes leave in the order in which they were put.
    2. Of records in a file, at most a chunk is read ahead of what the transport has taken.
    3. While the transport is full, nothing is read and nothing given to it.
    """

    __slots__ = (
        "_bytes_out",
        "_failed",
        "_io",
        "_is_full",
        "_is_loading",
        "_parts",
        "_progressed",
        "_transport",
        "is_bulky",
    )

    def __init__(
        self,
        transport: asyncio.Transport,
        io: Executor,
        bytes_out: Counter,
        *,
        progressed: Callable[[], None],
        failed: Callable[[Exception], None],
    ) -> None:
        """
        Args:
            progressed: called when something was sent that had to wait for the executor.
            failed: called when what is to be sent cannot be read.
        """
        self._transport = transport
        self._io = io
        self._bytes_out = bytes_out
        self._progressed = progressed
        self._failed = failed
        self._parts: deque[Part] = deque()
        self._is_full = False
        self._is_loading = False
        self.is_bulky = False  # something large, or from a file, is to be sent

    @property
    def is_blocked(self) -> bool:
        """
        Whether something that was put has to wait for the peer or for the disk.
        """
        return self._is_full or self._is_loading

    def put(self, parts: list[Part]) -> None:
        """
        Send this too, at the next ``flush``.
        """
        self._parts += parts
        if len(parts) > 1 or len(parts[0]) > SMALL:
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
        if not parts or self._is_full or self._is_loading:
            return
        if self.is_bulky:
            self._flush_bulk()
        else:
            # Small answers, and none of them from a file: the most of what there is to send.
            data = b"".join(cast("deque[Buffer]", parts))
            parts.clear()
            self._bytes_out.value += len(data)
            self._transport.write(data)

    def _flush_bulk(self) -> None:
        parts = self._parts
        ready: list[Buffer] = []
        size = 0
        while parts and not self._is_full and not self._is_loading:
            part = parts.popleft()
            if isinstance(part, StoredRecords):
                try:
                    piece = part.take(CHUNK, nowait=True)
                except WouldBlock:
                    parts.appendleft(part)
                    self._load(part)
                    break
                except Exception as error:
                    self._failed(error)
                    return
                if len(part):
                    parts.appendleft(part)
                part = piece
            ready.append(part)
            size += len(part)
            if size >= CHUNK:
                self._write(ready, size)
                ready, size = [], 0
        if ready:
            self._write(ready, size)
        self.is_bulky = bool(parts)

    def _load(self, records: StoredRecords) -> None:
        """
        Have the executor read what the page cache lacks; all that comes later waits for it.
        """
        self._is_loading = True
        loop = asyncio.get_running_loop()
        future = loop.run_in_executor(self._io, lambda: records.take(CHUNK, nowait=False))
        future.add_done_callback(self._loaded)

    def _loaded(self, future: asyncio.Future[Buffer]) -> None:
        self._is_loading = False
        if future.cancelled() or not self._parts:
            return
        error = future.exception()
        if error is not None:
            self._failed(error if isinstance(error, Exception) else RuntimeError(str(error)))
            return
        if not len(self._parts[0]):
            self._parts.popleft()
        self._parts.appendleft(future.result())
        self.flush()
        self._progressed()

    def _write(self, ready: list[Buffer], size: int) -> None:
        self._bytes_out.value += size
        if len(ready) == 1:
            self._transport.write(ready[0])
        elif size <= SMALL * len(ready):
            self._transport.write(b"".join(ready))
        else:
            self._transport.writelines(ready)
