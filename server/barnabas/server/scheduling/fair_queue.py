"""
A thread that many clients want: whoever has used it least is next.

Each piece of work has a place on a line of time that moves with the work which is done (start-time
fair queueing). A client's next piece stands as far behind its last one as that has taken, but never
behind the present::

    a, 0.5 s each   |----------|----------|----------|
    b, 0.1 s each   |--|--|--|--|--|                    order: a b b b b b a ...
    present            ^

So a client that asks for little waits for what is under way, however many ask for much. Who has
never been served stands a little behind the present: otherwise a crowd that connects anew for each
piece would come before all that stay.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor
from heapq import heapify, heappop, heappush
from time import perf_counter
from typing import Any, Final, Protocol, TypeVar

T = TypeVar("T")

NEWCOMER_S: Final = 0.1
"""
How far behind the present the first work of a client stands, in seconds of work.
"""
LEFT_BEHIND_BYTES: Final = 16 * 1024 * 1024
LEAST_BYTES: Final = 64 * 1024
"""
What any piece of work counts at least, for it is more than its bytes.
"""


class Client(Protocol):
    """
    One that work is done for.
    """

    queue_place: float
    """Where the next work of this client stands; negative before the first. The queue's own."""

    @property
    def is_closing(self) -> bool:
        """
        Whether the client is gone.
        """


class _Piece:
    """
    Work that waits for its turn.
    """

    __slots__ = ("client", "done", "number", "place", "size", "work")

    def __init__(self, client: Client, work: Callable[[], Any], size: int) -> None:
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

    What clients have left behind that are gone is done as well, up to ``LEFT_BEHIND_BYTES``; the
    rest of it is dropped, the last in the line first. A client waits for each piece before it asks
    for the next one, so that all else there is is one piece of each client.

    Used on the event loop's thread only.
    """

    def __init__(self, executor: Executor, now: Callable[[], float] = perf_counter) -> None:
        """
        Args:
            executor: one thread.
            now: a time in seconds.
        """
        self.executor = executor
        self._now = now
        self._waiting: list[_Piece] = []  # a heap
        self._present = 0.0
        self._number = 0
        self._under_way: _Piece | None = None

    async def do(self, client: Client, work: Callable[[], T], size: int) -> T:
        """
        The result of *work*, which may block.

        Args:
            size: the bytes that are kept until the work is done.

        Raises:
            Exception: what the work raises.
            asyncio.CancelledError: the client is gone, and too many others are.
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
            if not piece.done.done():  # nobody waits for what was cancelled
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
        Drop what was left behind by too many clients.
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
    if target.done():  # nobody waits for it any more
        return
    if error is None:
        target.set_result(source.result())
    else:
        target.set_exception(error)
