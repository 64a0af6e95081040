"""
The memory that the requests and the unread answers of all peers hold together.

One budget for the whole broker (Kafka's ``queued.max.request.bytes``). What a peer holds counts as
it arrives, whatever the peer has announced. While the budget is used up::

    a frame that is not whole       is not read on; smaller announcements go first
    a fetch that could wait         is answered at once
    an answer that is being made    does not grow; one at a time goes over the limit
    a peer that has stood still     is disconnected, the one that holds most first
    for ``PATIENCE_S``

The patience with a peer that does not read is ``IMPATIENCE_S`` while answers to others wait, or
from ``FAR_OVER`` times the limit on. A peer counts as reading if ``PATIENCE_S`` would be enough for
all its answers.

Requests that arrive whole, as nearly all do, hold nothing and never wait here.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from barnabas.coordination.clock import ServerClock, Timer

PATIENCE_S: Final = 30.0
"""
How long a request may take to arrive, or an answer to be read, while others wait for memory. The
default of the clients' ``request.timeout.ms``: after this long the client has given up as well.
"""
IMPATIENCE_S: Final = 1.0
"""
The same for answers that are not read, while others wait, and from ``FAR_OVER`` times the limit on.
"""
FAR_OVER: Final = 1.25
LOOK_EVERY_S: Final = 1.0
LEAST_FREED_BYTES: Final = 16 * 1024 * 1024
"""
So much has to be let go of before the heap is given back to the system.
"""


class MemoryHolder(Protocol):
    """
    A connection, as far as its memory is concerned.
    """

    @property
    def announced_bytes(self) -> int:
        """
        The size of the request that is arriving.
        """

    @property
    def held_bytes(self) -> int:
        """
        What counts in the budget.
        """

    @property
    def stalled_since(self) -> float:
        """
        When the request began to arrive, or the peer to not read, in seconds of the broker's clock;
        infinity if neither is the case.
        """

    @property
    def unread_since(self) -> float:
        """
        When the peer began to not read; infinity if it reads.
        """

    def look_whether_it_reads(self, now: float) -> None:
        """
        Move ``unread_since`` to *now* if the peer has read enough since the last look.
        """

    def read_on(self) -> None:
        """
        There is memory for the rest of the request.
        """

    def abort(self, reason: str | None = None) -> None:
        """
        Let go of everything, also of what the peer was to be sent.
        """


class RequestMemory:
    """
    The budget.

    Invariants:

    1. ``used_bytes`` is the sum of what ``holders`` hold.
    2. A holder in ``waiting`` is not read from until ``read_on`` is called.
    3. While any waits, one of them has the turn: its request may go over the limit. So requests are
       finished one by one, however many there are. Likewise ``_answer_turn``, until the peer has
       the answer.
    """

    __slots__ = (
        "_answer_turn",
        "_answers",
        "_clock",
        "_freed",
        "_is_resuming",
        "_peak_bytes",
        "_timer",
        "_trim_timer",
        "_turn",
        "holders",
        "limit_bytes",
        "used_bytes",
        "waiting",
    )

    def __init__(
        self, limit_bytes: int, clock: ServerClock, *, freed: Callable[[], object] = lambda: None
    ) -> None:
        """
        Args:
            freed: called a moment after most of what was held, and much, has been let go of.
        """
        self.limit_bytes = limit_bytes
        self._freed = freed
        self._peak_bytes = 0
        self._trim_timer: Timer | None = None
        self.used_bytes = 0
        self.holders: set[MemoryHolder] = set()
        self.waiting: set[MemoryHolder] = set()
        self._clock = clock
        self._timer: Timer | None = None
        self._is_resuming = False
        self._turn: MemoryHolder | None = None
        self._answer_turn: MemoryHolder | None = None
        self._answers: dict[Callable[[], None], None] = {}  # what lets answers go on that wait

    @property
    def is_used_up(self) -> bool:
        """
        Whether large requests have to wait.
        """
        return self.used_bytes >= self.limit_bytes

    def change(self, holder: MemoryHolder, before: int, after: int) -> None:
        """
        *holder* holds *after* bytes instead of *before*.
        """
        self.used_bytes += after - before
        if not before:
            self.holders.add(holder)
        elif not after:
            self.holders.discard(holder)
        if after > before:
            self._peak_bytes = max(self._peak_bytes, self.used_bytes)
        elif self._peak_bytes - self.used_bytes >= LEAST_FREED_BYTES and self._trim_timer is None:
            self._trim_timer = self._clock.call_later(LOOK_EVERY_S, self._trim)
        if self.used_bytes >= self.limit_bytes:
            self._watch()
            return
        self._answer_turn = None
        if self.waiting or self._answers:
            self._resume_soon()

    def may_grow(self, holder: MemoryHolder) -> bool:
        """
        Whether more of the request of *holder* may arrive now.
        """
        return not self.is_used_up or holder is self._turn

    def wait(self, holder: MemoryHolder) -> None:
        """
        Do not read on from *holder* until others have let go of enough.
        """
        self.waiting.add(holder)
        self._watch()
        if self._turn is None:
            self._resume_soon()

    def finished(self, holder: MemoryHolder) -> None:
        """
        The request of *holder* has arrived, or never will.
        """
        self.waiting.discard(holder)
        if self._turn is holder:
            self._turn = None
            if self.waiting:
                self._resume_soon()

    def may_answer(self, holder: MemoryHolder, resume: Callable[[], None]) -> bool:
        """
        Return whether *holder* may add to its answer. If not, *resume* is called when that changes.
        """
        if not self.is_used_up:
            return True
        if self._answer_turn is None:
            self._answer_turn = holder
        if self._answer_turn is holder:
            return True
        self._answers[resume] = None
        self._watch()
        return False

    def answered(self, holder: MemoryHolder) -> None:
        """
        *holder* has its answers, or never will.
        """
        if self._answer_turn is holder:
            self._answer_turn = None
        if self._answers:
            self._resume_soon()

    def _resume_soon(self) -> None:
        # Not at once: the caller is in the middle of something.
        if not self._is_resuming:
            self._is_resuming = True
            asyncio.get_running_loop().call_soon(self._resume)

    def _resume(self) -> None:
        self._is_resuming = False
        answers, self._answers = self._answers, {}
        for resume in answers:
            resume()
        for holder in sorted(self.waiting, key=_order):
            if self.is_used_up:
                if self._turn is not None:
                    return
                self._turn = holder
            self.waiting.discard(holder)
            holder.read_on()

    def _trim(self) -> None:
        self._trim_timer = None
        self._peak_bytes = self.used_bytes
        self._freed()

    def _watch(self) -> None:
        if self._timer is None:
            self._timer = self._clock.call_later(LOOK_EVERY_S, self._look)

    def _look(self) -> None:
        """
        Disconnect those that stand in the way, as few as possible.
        """
        self._timer = None
        now = self._clock.monotonic()
        for holder in self.holders:
            holder.look_whether_it_reads(now)
        self._disconnect(
            [holder for holder in self.holders if holder.stalled_since <= now - PATIENCE_S],
            self.limit_bytes,
        )
        self._disconnect(
            [holder for holder in self.holders if holder.unread_since <= now - IMPATIENCE_S],
            self.limit_bytes if self._answers else FAR_OVER * self.limit_bytes,
        )
        if self.is_used_up:
            self._turn = None  # It may have stopped sending.
            self._resume()
            self._watch()

    def _disconnect(self, stalled: list[MemoryHolder], limit_bytes: float) -> None:
        """
        Disconnect those of *stalled* that hold most, until less than *limit_bytes* are used.
        """
        used_bytes = self.used_bytes  # What they hold counts until the transport has closed.
        for holder in sorted(stalled, key=_held, reverse=True):
            if used_bytes < limit_bytes:
                break
            used_bytes -= holder.held_bytes
            holder.abort(
                f"a request that does not arrive or answers that are not read hold"
                f" {holder.held_bytes} bytes, and the {self.limit_bytes} bytes of"
                " queued.max.request.bytes are used up"
            )


def _order(holder: MemoryHolder) -> tuple[int, float]:
    return holder.announced_bytes, holder.stalled_since


def _held(holder: MemoryHolder) -> int:
    return holder.held_bytes
