"""
Acknowledging: what members did with the records that they have acquired.

A request changes all that it names in a partition, or nothing. The change is written by the share
coordinator first; until that is done its records are in no state that another request could
change, and if it fails they go back (Kafka ``SharePartition.acknowledge``,
``releaseAcquiredRecords`` and ``releaseAcquisitionLockOnTimeout``).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import Final, NamedTuple

from barnabas.coordination.share.in_flight import NO_LOCK, InFlightBatch, InFlightState
from barnabas.coordination.share.record_state import (
    FINAL_STATES,
    STATE_AFTER,
    AcknowledgeType,
    RecordState,
)
from barnabas.coordination.share.window import ShareWindow
from barnabas.protocol.errors import InvalidRecordState, InvalidRequest, KafkaError
from barnabas.protocol.internal_topics.share_state_records import StateBatch

MOST_RUNS: Final = 10_000
"""
How many runs of offsets in different states acknowledgements may cut a batch into. As many are
changed in one turn of the event loop.
"""

_ACQUIRED: Final = RecordState.ACQUIRED


class Acknowledgement(NamedTuple):
    """
    What a member says of offsets: one type for all, or one for each.
    """

    first_offset: int
    last_offset: int
    types: Sequence[int]

    def by_type(self) -> Iterator[tuple[int, int]]:
        """
        The first offset of each run of the same type, and the type.
        """
        offset = self.first_offset
        for kind, those in groupby(self.types):
            yield offset, kind
            offset += sum(1 for _ in those)


class StateChange:
    """
    A change of states that is to be written.
    """

    __slots__ = ("_runs", "_window", "batches", "is_certain")

    def __init__(self, window: ShareWindow, *, is_certain: bool) -> None:
        """
        Args:
            is_certain: the states have changed already, whether that is written or not.
        """
        self._window = window
        self._runs: list[tuple[InFlightBatch, InFlightState]] = []
        self.batches: list[StateBatch] = []
        """What the share coordinator is told."""
        self.is_certain = is_certain

    def add(self, batch: InFlightBatch, run: InFlightState) -> None:
        """
        This *run* of *batch* has a new state.
        """
        self._runs.append((batch, run))
        self.batches.append(
            StateBatch(
                first_offset=run.first_offset,
                last_offset=run.last_offset,
                delivery_state=run.state,
                delivery_count=run.delivery_count,
            )
        )
        if run.state in FINAL_STATES:
            window = self._window
            window.delivery_complete_count += window.count_from_start(
                run.first_offset, run.last_offset
            )

    def complete(self, *, is_written: bool, now_ms: int) -> bool:
        """
        The change is written, or cannot be. Return whether the start has moved.
        """
        window = self._window
        if not self.is_certain:
            for (batch, _), stored in zip(self._runs, self.batches, strict=True):
                for run in batch.peek(stored.first_offset, stored.last_offset):
                    self._complete(run, stored, is_written=is_written, now_ms=now_ms)
        for batch in {id(batch): batch for batch, _ in self._runs}.values():
            batch.join()
        return (is_written or self.is_certain) and window.advance()

    def _complete(
        self, run: InFlightState, stored: StateBatch, *, is_written: bool, now_ms: int
    ) -> None:
        window = self._window
        run.complete_transition(is_written=is_written, now_ms=now_ms)
        if run.state is RecordState.AVAILABLE:
            window.finds_next_fetch_offset = True
        if (
            not is_written
            and stored.delivery_state in FINAL_STATES
            and run.state not in FINAL_STATES
        ):
            window.delivery_complete_count -= window.count_from_start(
                run.first_offset, run.last_offset
            )


class Acknowledging:
    """
    What members may change in a window.
    """

    def __init__(
        self,
        window: ShareWindow,
        member_id: str,
        *,
        max_delivery_count: int,
        lock_until: int = NO_LOCK,
    ) -> None:
        """
        Args:
            lock_until: the time in ms when an acquisition ends that is renewed now; -1 if the group
                does not allow that.
        """
        self._window = window
        self._member_id = member_id
        self._max_delivery_count = max_delivery_count
        self._lock_until = lock_until
        self._change = StateChange(window, is_certain=False)

    # Acknowledgements

    def acknowledge(self, acknowledgements: Sequence[Acknowledgement], now_ms: int) -> StateChange:
        """
        Raises:
            InvalidRecordState: some record is not acquired by the member, or cannot be renewed.
            InvalidRequest: some offset was never acquired, or a batch would have more than
                ``MOST_RUNS`` runs.
        """
        try:
            for acknowledgement in acknowledgements:
                if acknowledgement.last_offset >= self._window.start_offset:
                    self._acknowledge(acknowledgement)
        except KafkaError:
            self._change.complete(is_written=False, now_ms=now_ms)
            raise
        return self._change

    def _acknowledge(self, acknowledgement: Acknowledgement) -> None:
        first, last = acknowledgement.first_offset, acknowledgement.last_offset
        start_offset = self._window.start_offset
        kinds = list(acknowledgement.by_type())
        starts = [start for start, _ in kinds]
        for batch in self._named(first, last):
            if batch.last_offset < start_offset:
                continue
            if not batch.is_tracked:
                self._check_owner(batch.whole)
                if (
                    not batch.lies_in(first, last)
                    or len(acknowledgement.types) > 1
                    or batch.straddles(start_offset)
                ):
                    batch.track()
            at = max(0, bisect_right(starts, batch.first_offset) - 1)
            cuts = starts[at + 1 : bisect_right(starts, batch.last_offset)]
            if len(cuts) >= MOST_RUNS:
                raise _too_many_runs(batch)
            batch.cut(cuts)
            runs = batch.runs_in(max(first, start_offset), last)
            if len(batch.runs) > MOST_RUNS:
                batch.join()
                raise _too_many_runs(batch)
            for run in runs:
                while at + 1 < len(starts) and starts[at + 1] <= run.first_offset:
                    at += 1
                self._check_owner(run)
                self._set(batch, run, kinds[at][1])

    def _named(self, first_offset: int, last_offset: int) -> list[InFlightBatch]:
        window = self._window
        index = window.floor_index(first_offset)
        if index < 0 and first_offset < window.start_offset <= last_offset:
            index = window.floor_index(window.start_offset)
        if index < 0:
            raise InvalidRecordState(f"No record at offset {first_offset} or before is in flight")
        named = window.batches[index : window.floor_index(last_offset) + 1]
        end = named[-1].last_offset
        if end < last_offset:
            raise InvalidRequest(
                f"Offsets {first_offset} to {last_offset} were not all acquired,"
                f" those in flight end at {end}"
            )
        return named

    def _check_owner(self, run: InFlightState) -> None:
        """
        Raises:
            InvalidRecordState: the member has not acquired these records.
        """
        if run.state is not _ACQUIRED:
            raise InvalidRecordState(
                f"Offsets {run.first_offset} to {run.last_offset} are not acquired"
            )
        if run.member_id != self._member_id:
            raise InvalidRecordState(
                f"Another member has acquired offsets {run.first_offset} to {run.last_offset}"
            )

    def _set(self, batch: InFlightBatch, run: InFlightState, kind: int) -> None:
        if kind != AcknowledgeType.RENEW:
            run.start_transition(STATE_AFTER[kind], self._max_delivery_count)
            self._change.add(batch, run)
        elif self._lock_until == NO_LOCK:
            raise InvalidRecordState("The group does not allow to renew acquisitions")
        else:
            run.lock_until = self._lock_until

    # The end of an acquisition

    def release(self) -> StateChange:
        """
        Release what the member has acquired: its session has ended.
        """
        for batch in self._window.batches:
            for run in self._parts(batch, lambda run: run.member_id == self._member_id):
                run.start_transition(self._state_after(run), self._max_delivery_count)
                self._change.add(batch, run)
        return self._change

    def end_locks(self, now_ms: int) -> StateChange:
        """
        Release what anybody has acquired for too long.
        """
        change = StateChange(self._window, is_certain=True)
        for batch in self._window.batches:
            for run in self._parts(batch, lambda run: run.lock_until <= now_ms):
                state = run.end_lock(self._state_after(run), self._max_delivery_count)
                change.add(batch, run)
                if state is not RecordState.ARCHIVED:
                    self._window.finds_next_fetch_offset = True
        return change

    def _parts(
        self, batch: InFlightBatch, is_meant: Callable[[InFlightState], bool]
    ) -> list[InFlightState]:
        """
        The runs that are acquired and meant; none has offsets on both sides of the start.
        """

        def parts() -> list[InFlightState]:
            return [run for run in batch.runs if run.state is _ACQUIRED and is_meant(run)]

        start_offset = self._window.start_offset
        if not batch.straddles(start_offset) or not parts():
            return parts()
        batch.track()
        batch.cut([start_offset])
        return parts()

    def _state_after(self, run: InFlightState) -> RecordState:
        is_lost = run.last_offset < self._window.start_offset
        return RecordState.ARCHIVED if is_lost else RecordState.AVAILABLE


def _too_many_runs(batch: InFlightBatch) -> InvalidRequest:
    return InvalidRequest(
        f"Offsets {batch.first_offset} to {batch.last_offset} would be in more than {MOST_RUNS}"
        " runs of different states"
    )
