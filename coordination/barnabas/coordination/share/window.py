"""
The window of a share-partition: the offsets that the group has fetched and is not done with.

::

         done          |  in flight, batch by batch         |  nobody has it yet
    -------------------+------------------------------------+---------------------
                 start_offset                          end_offset

All that moves the two offsets is here; ``acquiring`` and ``acknowledging`` change the states in
between (together they are Kafka's ``SharePartition``). No clock, no loop and no file: what has to
be written, and when locks end, is for the caller.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import Final

from barnabas.coordination.share.in_flight import NO_LOCK, InFlightBatch, InFlightState
from barnabas.coordination.share.record_state import FINAL_STATES, RecordState
from barnabas.protocol.errors import UnknownServerError
from barnabas.protocol.internal_topics.share_state_records import StateBatch

NO_OFFSET: Final = -1

_FIRST_OFFSET: Final = attrgetter("first_offset")


class GapWindow:
    """
    Offsets between the stored batches, of which nothing is stored (Kafka ``GapWindow``).

    They were acquired and not acknowledged before a restart, or have no records. As long as no
    offset beyond ``end_offset`` is fetched, those from ``gap_start_offset`` on can be acquired.
    """

    __slots__ = ("end_offset", "gap_start_offset")

    def __init__(self, end_offset: int, gap_start_offset: int) -> None:
        self.end_offset = end_offset
        self.gap_start_offset = gap_start_offset


class ShareWindow:
    """
    The batches in flight, and the offsets around them.

    Invariants:

    1. ``batches`` are in the order of their offsets, and do not overlap.
    2. Without batches, ``end_offset`` is the next offset to fetch; with batches, the last one in
       flight.
    3. ``delivery_complete_count`` is the number of records from ``start_offset`` on that are done,
       those included whose state is being written.
    """

    __slots__ = (
        "batches",
        "delivery_complete_count",
        "end_offset",
        "finds_next_fetch_offset",
        "gap",
        "start_offset",
    )

    def __init__(self, start_offset: int, stored: Sequence[StateBatch] = ()) -> None:
        """
        Args:
            stored: what the share coordinator knows of offsets from *start_offset* on.

        Raises:
            UnknownServerError: no share-partition can have stored that.
        """
        self.batches: list[InFlightBatch] = []
        self.start_offset = start_offset
        self.end_offset = start_offset
        self.gap: GapWindow | None = None
        self.delivery_complete_count = 0
        self.finds_next_fetch_offset = bool(stored)
        """Whether there may be something to acquire before ``end_offset``."""
        gap_start_offset = NO_OFFSET
        next_offset = start_offset
        for batch in stored:
            if batch.first_offset < start_offset or batch.last_offset < batch.first_offset:
                raise UnknownServerError(
                    f"The stored batch {batch.first_offset}-{batch.last_offset} cannot be,"
                    f" the start offset is {start_offset}"
                )
            if gap_start_offset == NO_OFFSET and batch.first_offset > next_offset:
                gap_start_offset = next_offset
            next_offset = batch.last_offset + 1
            state = RecordState(batch.delivery_state)
            run = InFlightState(batch.first_offset, batch.last_offset, state, batch.delivery_count)
            self.batches.append(InFlightBatch(run))
            if state in FINAL_STATES:
                self.delivery_complete_count += len(run)
        if self.batches:
            self.end_offset = self.batches[-1].last_offset
            if gap_start_offset != NO_OFFSET:
                self.gap = GapWindow(self.end_offset, gap_start_offset)
            self.advance()

    # Looking

    @property
    def has_gap(self) -> bool:
        return self.gap is not None and self.gap.end_offset == self.end_offset

    @property
    def in_flight_count(self) -> int:
        """
        How many offsets the window has, those that are done among them.
        """
        return self.end_offset - self.start_offset + 1 if self.batches else 0

    def floor_index(self, offset: int) -> int:
        """
        The place of the last batch that begins at *offset* or before, -1 if there is none.
        """
        return bisect_right(self.batches, offset, key=_FIRST_OFFSET) - 1

    def floor(self, offset: int) -> InFlightBatch | None:
        index = self.floor_index(offset)
        return self.batches[index] if index >= 0 else None

    def between(self, first_offset: int, last_offset: int) -> list[InFlightBatch]:
        """
        The batches that begin at one of these offsets.
        """
        start = self.floor_index(first_offset - 1) + 1
        return self.batches[start : self.floor_index(last_offset) + 1]

    def next_fetch_offset(self) -> int:
        """
        The first offset that can be acquired, as far as that is known.
        """
        if not self.batches or self.start_offset > self.batches[-1].last_offset:
            self.finds_next_fetch_offset = False
            return self.end_offset
        if self.finds_next_fetch_offset:
            found = self._first_acquirable()
            if found != NO_OFFSET:
                return found
            self.finds_next_fetch_offset = False
        return self.end_offset + 1

    def _first_acquirable(self) -> int:
        has_gap = self.has_gap
        gap_start_offset = NO_OFFSET if self.gap is None else self.gap.gap_start_offset
        for batch in self.batches:
            if has_gap:
                if batch.first_offset > gap_start_offset:
                    return gap_start_offset
                gap_start_offset = max(batch.last_offset + 1, gap_start_offset)
            for run in batch.runs:
                if run.is_acquirable:
                    return run.first_offset
        return NO_OFFSET

    def can_acquire(self, max_in_flight: int) -> bool:
        """
        Whether there is room for new offsets, or something to acquire among those in flight.
        """
        if self.next_fetch_offset() != self.end_offset + 1:
            return True
        return self.in_flight_count < max_in_flight

    def next_lock_end(self) -> int | None:
        """
        The time in ms when the first lock ends, None if there is none. Those are left out that end
        with the write of a new state.
        """
        ends = (
            run.lock_until
            for batch in self.batches
            for run in batch.runs
            if run.lock_until != NO_LOCK and run.rollback is None
        )
        return min(ends, default=None)

    def count_from_start(self, first_offset: int, last_offset: int) -> int:
        """
        How many of these offsets are not below ``start_offset``.
        """
        return max(0, last_offset - max(self.start_offset, first_offset) + 1)

    # Changing

    def add(self, batch: InFlightBatch) -> None:
        """
        Take a batch of offsets that are not in flight.
        """
        self.batches.insert(self.floor_index(batch.first_offset) + 1, batch)

    def move_gap(self, offset: int) -> None:
        """
        Everything below *offset* was fetched.
        """
        if self.gap is not None:
            if self.has_gap and offset <= self.gap.end_offset:
                self.gap.gap_start_offset = offset
            else:
                self.gap = None

    def advance(self) -> bool:
        """
        Move the start over offsets that are done; return whether there were any.
        """
        if not self._is_start_done():
            return False
        last_done, done_count = self._last_done()
        if last_done == NO_OFFSET:
            return False
        if last_done == self.batches[-1].last_offset:
            # The log may start behind the last batch.
            self.start_offset = self.end_offset = max(self.start_offset, last_done + 1)
            self.batches.clear()
            self.delivery_complete_count = 0
            return True
        index = self.floor_index(last_done)
        if last_done == self.batches[index].last_offset:
            index += 1
            # What follows without records is natural: compaction, or markers of transactions.
            self.start_offset = max(self.start_offset, self.batches[index].first_offset)
            if self.has_gap:
                assert self.gap is not None
                self.start_offset = min(self.gap.gap_start_offset, self.start_offset)
        else:
            self.start_offset = max(self.start_offset, last_done + 1)
        self.delivery_complete_count -= done_count
        del self.batches[:index]
        return True

    def _is_start_done(self) -> bool:
        batch = self.floor(self.start_offset)
        return batch is not None and batch.run_at(self.start_offset).is_done

    def _last_done(self) -> tuple[int, int]:
        """
        The last offset before the first one that is not done, and how many there are from the start
        up to it.
        """
        last_done, count = NO_OFFSET, 0
        gap_start_offset = self.gap.gap_start_offset if self.has_gap and self.gap else None
        for batch in self.batches:
            if gap_start_offset is not None and batch.last_offset >= gap_start_offset:
                break
            for run in batch.runs:
                if not run.is_done:
                    return last_done, count
                last_done = run.last_offset
                count += self.count_from_start(run.first_offset, run.last_offset)
        return last_done, count

    def follow_log_start(self, log_start_offset: int) -> None:
        """
        The log has lost all offsets below *log_start_offset*, which is beyond the start.

        Nothing is written: the next write carries the new start.
        """
        assert log_start_offset > self.start_offset
        if not self.batches:
            self.start_offset = self.end_offset = log_start_offset
            self.delivery_complete_count = 0
            return
        lost = log_start_offset - 1
        lost_count = sum(
            max(0, min(lost, run.last_offset) - max(self.start_offset, run.first_offset) + 1)
            for batch in self.batches
            for run in batch.runs
            if run.state in FINAL_STATES
        )
        if self.archive(self.batches, self.start_offset, lost, RecordState.AVAILABLE):
            self.finds_next_fetch_offset = True
        self.start_offset = log_start_offset
        if self.gap is not None and self.gap.gap_start_offset < log_start_offset:
            # Otherwise the next fetch is for the lost offsets, again and again.
            self.move_gap(log_start_offset)
        self.delivery_complete_count -= lost_count
        self.end_offset = max(self.end_offset, log_start_offset)

    def archive_stale(self, fetch_offset: int, base_offset: int) -> None:
        """
        What was fetched from *fetch_offset* on begins at *base_offset* only: compaction has removed
        the records between.
        """
        if not self.batches or fetch_offset >= base_offset:
            return
        floor = self.floor(fetch_offset)
        first = fetch_offset
        if floor is not None and floor.last_offset >= fetch_offset:
            first = floor.first_offset
        stale = self.between(first, base_offset - 1)
        count = self.archive(stale, fetch_offset, base_offset - 1, RecordState.AVAILABLE)
        if count:
            self.delivery_complete_count += count
            self.finds_next_fetch_offset = True

    def archive(
        self,
        batches: Iterable[InFlightBatch],
        first_offset: int,
        last_offset: int,
        state: RecordState,
    ) -> int:
        """
        Archive those of these offsets that are in *state*; return how many.
        """
        count = 0
        for batch in batches:
            if batch.first_offset > last_offset:
                break
            if not batch.is_tracked:
                if batch.whole.state is not state:
                    continue
                if not batch.lies_in(first_offset, last_offset):
                    batch.track()
            for run in batch.runs_in(first_offset, last_offset):
                if run.state is state:
                    run.archive()
                    count += len(run)
        return count
