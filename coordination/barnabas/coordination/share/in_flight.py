"""
Batches that a share group has fetched, and the states of the records in them.

Kafka keeps one state for a whole batch until a part of it differs, and then one for each offset
(``InFlightBatch``, ``InFlightState``). Here a batch has *runs* of offsets in the same state, one at
first: the members of a group who acknowledge ten records of a batch of 10,000 cost three objects.
``is_tracked`` says that Kafka would look at each offset, which decides in places.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from operator import attrgetter
from typing import Final

from barnabas.coordination.share.record_state import FINAL_STATES, RecordState
from barnabas.protocol.structs import struct

NO_MEMBER: Final = ""
NO_LOCK: Final = -1

_FIRST_OFFSET: Final = attrgetter("first_offset")
_AVAILABLE: Final = RecordState.AVAILABLE
_ACQUIRED: Final = RecordState.ACQUIRED
_ARCHIVED: Final = RecordState.ARCHIVED


@struct
class Rollback:
    """
    What a run goes back to if its new state cannot be written.
    """

    state: RecordState
    member_id: str
    max_delivery_count: int


class InFlightState:
    """
    A run of offsets in the same state (Kafka ``InFlightState``).

    Invariants:

    1. ``member_id`` and ``lock_until`` are set while the run is ACQUIRED. The lock also stays while
       the run leaves that state, until the new one is written.
    2. ``rollback`` is set while a new state is being written. Nobody else changes the state then,
       except that the start of the log may pass by.
    """

    __slots__ = (
        "delivery_count",
        "first_offset",
        "is_terminal",
        "last_offset",
        "lock_until",
        "member_id",
        "rollback",
        "state",
    )

    def __init__(
        self,
        first_offset: int,
        last_offset: int,
        state: RecordState,
        delivery_count: int,
    ) -> None:
        self.first_offset = first_offset
        self.last_offset = last_offset
        self.state = state
        self.delivery_count = delivery_count
        self.member_id = NO_MEMBER
        """Who has acquired it."""
        self.lock_until = NO_LOCK
        """The time in ms at which the acquisition ends."""
        self.rollback: Rollback | None = None
        self.is_terminal = False
        """Whether it was archived for good, whatever becomes of the write."""

    def __repr__(self) -> str:
        return (
            f"<{self.first_offset}-{self.last_offset} {self.state.name}"
            f" {self.delivery_count} {self.member_id!r}>"
        )

    def __len__(self) -> int:
        return self.last_offset - self.first_offset + 1

    @property
    def is_acquirable(self) -> bool:
        return self.state is _AVAILABLE and self.rollback is None

    @property
    def is_done(self) -> bool:
        """
        Whether the state is final, and written.
        """
        return self.state in FINAL_STATES and self.rollback is None

    def acquire(self, member_id: str, lock_until: int) -> None:
        """
        Give an acquirable run to a member.
        """
        assert self.is_acquirable, self
        self.state = _ACQUIRED
        self.delivery_count += 1
        self.member_id = member_id
        self.lock_until = lock_until

    def start_transition(self, state: RecordState, max_delivery_count: int) -> RecordState:
        """
        Leave ACQUIRED, as soon as that is written; return the new state.
        """
        assert self.state is _ACQUIRED, self
        assert self.rollback is None, self
        self.rollback = Rollback(self.state, self.member_id, max_delivery_count)
        return self._leave(state, max_delivery_count)

    def end_lock(self, state: RecordState, max_delivery_count: int) -> RecordState:
        """
        Leave ACQUIRED, whether that is written or not; return the new state.
        """
        assert self.state is _ACQUIRED, self
        assert self.rollback is None, self
        self.lock_until = NO_LOCK
        return self._leave(state, max_delivery_count)

    def _leave(self, state: RecordState, max_delivery_count: int) -> RecordState:
        if state is _AVAILABLE and self.delivery_count >= max_delivery_count:
            state = _ARCHIVED
        self.state = state
        self.member_id = NO_MEMBER
        return state

    def complete_transition(self, *, is_written: bool, now_ms: int) -> None:
        """
        The new state is written, or cannot be. The count of deliveries stays in both cases.
        """
        rollback, self.rollback = self.rollback, None
        assert rollback is not None, self
        if is_written or self.is_terminal:
            self.lock_until = NO_LOCK
            return
        if NO_LOCK != self.lock_until <= now_ms:
            is_last = self.delivery_count >= rollback.max_delivery_count
            self.state = _ARCHIVED if is_last else _AVAILABLE
            self.member_id = NO_MEMBER
            self.lock_until = NO_LOCK
            return
        self.state = rollback.state
        self.member_id = rollback.member_id

    def archive(self) -> None:
        """
        Give the records to nobody any more: their offsets have left the log.
        """
        self.is_terminal = True
        self.state = _ARCHIVED
        self.member_id = NO_MEMBER
        self.lock_until = NO_LOCK

    def split(self, offset: int) -> InFlightState:
        """
        Cut off the part from *offset* on.
        """
        assert self.first_offset < offset <= self.last_offset, (self, offset)
        rest = InFlightState(offset, self.last_offset, self.state, self.delivery_count)
        rest.member_id = self.member_id
        rest.lock_until = self.lock_until
        rest.rollback = self.rollback
        rest.is_terminal = self.is_terminal
        self.last_offset = offset - 1
        return rest

    def is_like(self, other: InFlightState) -> bool:
        """
        Whether both are in the same state, so that one run can stand for both.
        """
        return (
            self.state is other.state
            and self.rollback is None
            and other.rollback is None
            and self.delivery_count == other.delivery_count
            and self.member_id == other.member_id
            and self.lock_until == other.lock_until
            and self.is_terminal == other.is_terminal
        )


class InFlightBatch:
    """
    Offsets that were acquired together for the first time (Kafka ``InFlightBatch``).

    Invariants:

    1. The runs follow each other without a gap, from ``first_offset`` to ``last_offset``.
    2. There is one run as long as ``is_tracked`` is false.
    """

    __slots__ = ("first_offset", "is_tracked", "last_offset", "runs")

    def __init__(self, run: InFlightState) -> None:
        self.first_offset = run.first_offset
        self.last_offset = run.last_offset
        self.runs = [run]
        self.is_tracked = False
        """Whether Kafka would have a state for each offset."""

    def __repr__(self) -> str:
        return f"<InFlightBatch {self.runs}{' tracked' * self.is_tracked}>"

    def __len__(self) -> int:
        return self.last_offset - self.first_offset + 1

    @property
    def whole(self) -> InFlightState:
        """
        The state of all offsets, of a batch that is not tracked.
        """
        assert not self.is_tracked, self
        return self.runs[0]

    def track(self) -> None:
        """
        Look at each offset from now on.
        """
        self.is_tracked = True

    def lies_in(self, first_offset: int, last_offset: int) -> bool:
        return first_offset <= self.first_offset and self.last_offset <= last_offset

    def straddles(self, offset: int) -> bool:
        """
        Whether the batch begins before *offset*, and has it.
        """
        return self.first_offset < offset <= self.last_offset

    def runs_in(self, first_offset: int, last_offset: int) -> list[InFlightState]:
        """
        The runs of these offsets alone, as far as they are in the batch.
        """
        self._cut(first_offset)
        self._cut(last_offset + 1)
        return list(self.peek(first_offset, last_offset))

    def peek(self, first_offset: int, last_offset: int) -> Iterator[InFlightState]:
        """
        The runs that have any of these offsets, for looking only.
        """
        runs = self.runs
        for index in range(max(0, self._index_at(first_offset)), len(runs)):
            run = runs[index]
            if run.first_offset > last_offset:
                return
            if run.last_offset >= first_offset:
                yield run

    def cut(self, offsets: Iterable[int]) -> None:
        """
        Let a run begin at each of *offsets*, which are in order, as far as they are in the batch.
        """
        cut: list[InFlightState] = []
        left = iter(self.runs)
        run = next(left)
        for offset in offsets:
            if offset > self.last_offset:
                break
            while run.last_offset < offset:
                cut.append(run)
                run = next(left)
            if run.first_offset < offset:
                rest = run.split(offset)
                cut.append(run)
                run = rest
        self.runs = [*cut, run, *left]

    def run_at(self, offset: int) -> InFlightState:
        """
        The run of *offset*, or the last one where the batch ends before.
        """
        return self.runs[max(0, self._index_at(offset))]

    def join(self) -> None:
        """
        Let one run stand for neighbours in the same state.
        """
        runs = self.runs
        if len(runs) == 1:
            return
        joined = [runs[0]]
        for run in runs[1:]:
            if joined[-1].is_like(run):
                joined[-1].last_offset = run.last_offset
            else:
                joined.append(run)
        self.runs = joined

    def _index_at(self, offset: int) -> int:
        return bisect_right(self.runs, offset, key=_FIRST_OFFSET) - 1

    def _cut(self, offset: int) -> None:
        if not self.first_offset < offset <= self.last_offset:
            return
        index = self._index_at(offset)
        run = self.runs[index]
        if run.first_offset < offset:
            assert self.is_tracked, "only a tracked batch has parts"
            self.runs.insert(index + 1, run.split(offset))
