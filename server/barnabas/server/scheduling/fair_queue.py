"""
One thread for the work of many clients: the client that has used it least is next.

Each piece of work has a place on a line of virtual time, which advances with the work that is done
(start-time fair queueing). The place of a client's next piece is that of its last one plus the time
which that took, but never before the present::

    a, 0.5 s each   |----------|----------|----------|
    b, 0.1 s each   |--|--|--|--|--|                    order: a b b b b b a ...
    present            ^

A client with little work waits for the current piece only, however much work others have. New
clients start a little after the present: otherwise a crowd that opens a connection for each piece
would always be first.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor
from heapq import heapify, heappop, heappush
from typing import Any, Final, Protocol, TypeVar

from barnabas.storage.clock import perf_counter

T = TypeVar("T")

NEWCOMER_S: Final = 0.1
"""
How far after the present a new client starts, in seconds of work: known clients with short pieces,
such as batches of a few MiB, go first.
"""
LEFT_BEHIND_BYTES: Final = 16 * 1024 * 1024
"""
The most bytes of work that is done for clients that are gone (``long-left-behind`` in the limits).
"""
LEAST_BYTES: Final = 64 * 1024
"""
The least size of a piece, which has its own objects beside its bytes.
"""


class QueueClient(Protocol):
    """
    A client of the queue.
    """

    queue_place: float
    """The place of the client's next piece; negative before the first. Only the queue uses it."""

    @property
    def is_closing(self) -> bool:
        """
        Whether the client has closed its connection.
        """


class _Piece:
    """
    One piece of work.
    """

    __slots__ = ("client", "done", "number", "place", "size", "work")

    def __init__(self, client: QueueClient, work: Callable[[], Any], size: int) -> None:
        self.client = client
        self.work = work
        self.size = max(size, LEAST_BYTES)
        self.place = 0.0
        self.number = 0
        self.done: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    def __lt__(self, other: _Piece) -> bool:
        return (self.place, self.number) < (other.place, other.number)


class FairQueue:
    """
    Does one piece of work at a time in a thread.

    Pieces of clients that are gone are done as well, up to ``LEFT_BEHIND_BYTES``; the rest of them,
    from the end of the line, is dropped. A client waits for each piece before it submits the next
    one, so that the queue has one piece of each other client at most.

    Used on the event loop's thread only.
    """

    def __init__(self, executor: Executor, now: Callable[[], float] = perf_counter) -> None:
        """
        Args:
            executor: has one thread.
            now: returns a time in seconds.
        """
        self.executor = executor
        self._now = now
        self._waiting: list[_Piece] = []  # a heap
        self._present = 0.0
        self._number = 0
        self._under_way: _Piece | None = None

    async def do(self, client: QueueClient, work: Callable[[], T], size: int) -> T:
        """
        Run *work*, which may block, and return its result.

        Args:
            size: the bytes that are held until the work is done.

        Raises:
            Exception: *work* raised it.
            asyncio.CancelledError: the piece was dropped: its client is gone.
        """
        piece = _Piece(client, work, size)
        self._number += 1
        piece.number = self._number
        place = client.queue_place
        piece.place = max(self._present, place) if place >= 0 else self._present + NEWCOMER_S
        heappush(self._waiting, piece)
        if self._under_way is None:
            self._next()
        else:
            self._drop_some()
        result: T = await piece.done
        return result

    def _next(self) -> None:
        waiting = self._waiting
        while waiting:
            piece = heappop(waiting)
            if not piece.done.done():  # else it was cancelled
                self._begin(piece)
                return

    def _begin(self, piece: _Piece) -> None:
        self._under_way = piece
        self._present = max(self._present, piece.place)
        began = self._now()
        running = asyncio.get_running_loop().run_in_executor(self.executor, piece.work)

        def end(running: asyncio.Future[Any]) -> None:
            self._under_way = None
            piece.client.queue_place = piece.place + self._now() - began
            _copy(running, piece.done)
            self._next()

        running.add_done_callback(end)

    def _drop_some(self) -> None:
        """
        Drop pieces of clients that are gone, beyond ``LEFT_BEHIND_BYTES``.
        """
        left = sorted(piece for piece in self._waiting if piece.client.is_closing)
        kept = 0
        for piece in left:
            kept += piece.size
            if kept > LEFT_BEHIND_BYTES:
                piece.done.cancel()
        if kept > LEFT_BEHIND_BYTES:
            self._waiting = [piece for piece in self._waiting if not piece.done.done()]
            heapify(self._waiting)


def _copy(source: asyncio.Future[Any], target: asyncio.Future[Any]) -> None:
    if source.cancelled():
        target.cancel()
        return
    error = source.exception()
    if target.done():  # it was cancelled
        return
    if error is None:
        target.set_result(source.result())
    else:
        target.set_exception(error)
