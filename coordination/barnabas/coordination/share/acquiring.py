"""
Acquiring: which of the records that were read from the log a member gets.

Offsets that are in flight already are given out again if they are available. New ones follow, whole
batches at a time, which become one batch in flight. Records that nobody could process so far are
given out in smaller and smaller parts, and alone at last, so that one bad record does not archive
its neighbours (KIP-932; Kafka ``SharePartition.acquire``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from barnabas.coordination.share.in_flight import InFlightBatch, InFlightState
from barnabas.coordination.share.record_state import RecordState
from barnabas.coordination.share.window import ShareWindow
from barnabas.protocol.messages.share_fetch import AcquiredRecords
from barnabas.protocol.structs import struct
from barnabas.storage.segment.fetched_batches import FetchedBatch

BATCH_OPTIMIZED: Final = 0
RECORD_LIMIT: Final = 1
"""
The modes in which a member acquires (Kafka ``ShareAcquireMode``): whole batches, as many as have
the records asked for; or exactly so many records (KIP-1206).
"""
_LEAST_THROTTLED: Final = 2


@struct(kw_only=True)
class AcquireRequest:
    """
    Who acquires how much.
    """

    member_id: str
    max_records: int
    batch_size: int
    is_record_limit: bool
    max_in_flight: int
    max_delivery_count: int
    lock_until: int  # the time in ms when the acquisition ends

    @property
    def throttled_from(self) -> int:
        """
        The count of deliveries from which on a batch is given out apart from others.
        """
        return max(_LEAST_THROTTLED, (self.max_delivery_count + 1) // 2)


def acquire(
    window: ShareWindow,
    request: AcquireRequest,
    fetch_offset: int,
    batches: Sequence[FetchedBatch],
) -> list[AcquiredRecords]:
    """
    Acquire some of the *batches* that were read from *fetch_offset* on.

    Args:
        batches: those that follow the end of the window by ``max_records`` need not be among them.
    """
    if request.max_records <= 0 or not batches or batches[-1].last_offset < window.start_offset:
        return []
    last_offset, max_records = _bounds(window, request, fetch_offset, batches[-1].last_offset)
    if max_records <= 0:
        return []
    return _Acquisition(window, request, batches, last_offset, max_records).acquire(fetch_offset)


def _bounds(
    window: ShareWindow, request: AcquireRequest, fetch_offset: int, last_offset: int
) -> tuple[int, int]:
    """
    The last offset to acquire, and how many: new ones only while there is room in flight.
    """
    max_records = min(request.max_records, request.max_in_flight - window.in_flight_count)
    if max_records <= 0 and fetch_offset <= window.end_offset:
        return (
            min(last_offset, window.end_offset),
            min(request.max_records, window.end_offset - fetch_offset + 1),
        )
    return last_offset, max_records


class _Acquisition:
    """
    One call of ``acquire``.
    """

    def __init__(
        self,
        window: ShareWindow,
        request: AcquireRequest,
        batches: Sequence[FetchedBatch],
        last_offset: int,
        max_records: int,
    ) -> None:
        self._window = window
        self._request = request
        self._batches = batches
        self._first_offset = batches[0].base_offset
        self._last_offset = last_offset
        self._left = max_records
        self._acquired: list[AcquiredRecords] = []

    def acquire(self, fetch_offset: int) -> list[AcquiredRecords]:
        window = self._window
        window.archive_stale(fetch_offset, self._first_offset)
        base_offset = self._base_offset()
        known = window.between(min(self._first_offset, base_offset), self._last_offset)
        if not known:
            self._acquire_new(base_offset, self._last_offset)
            return self._acquired
        next_offset = base_offset
        for batch in known:
            if self._left <= 0:
                break
            if window.has_gap:
                if next_offset < batch.first_offset:
                    self._acquire_new(next_offset, batch.first_offset - 1)
                next_offset = batch.last_offset + 1
                if self._left <= 0:
                    break
            self._acquire_again(batch)
        if self._left > 0 and known[-1].last_offset < self._last_offset:
            self._acquire_new(known[-1].last_offset + 1, self._last_offset)
        if self._acquired:
            window.move_gap(self._acquired[-1].last_offset + 1)
        return self._acquired

    def _base_offset(self) -> int:
        """
        Where to begin: with the batch in flight that has the first offset, and never before the
        start.
        """
        floor = self._window.floor(self._first_offset)
        if floor is None:
            return max(self._first_offset, self._window.start_offset)
        if floor.last_offset >= self._first_offset:
            return floor.first_offset
        return self._first_offset

    # What is in flight

    def _acquire_again(self, batch: InFlightBatch) -> None:
        """
        Acquire what is available of a batch in flight.
        """
        is_throttled = self._is_throttled(batch)
        if is_throttled and self._acquired:
            self._left = 0  # The batch is for the next fetch alone.
            return
        if not batch.is_tracked:
            if not batch.whole.is_acquirable:
                return
            is_part = (
                is_throttled
                or not batch.lies_in(self._first_offset, self._last_offset)
                or (self._request.is_record_limit and len(batch) > self._left)
            )
            if not is_part:
                self._give(batch.whole)
                self._acquired.append(_acquired(batch.whole))
                self._left -= len(batch)
                return
            batch.track()
        count = self._acquire_part(batch)
        self._left = 0 if is_throttled and count else self._left - count

    def _is_throttled(self, batch: InFlightBatch) -> bool:
        counts = (
            run.delivery_count
            for run in batch.peek(self._first_offset, self._last_offset)
            if run.is_acquirable
        )
        return max(counts, default=0) >= self._request.throttled_from

    def _acquire_part(self, batch: InFlightBatch) -> int:
        """
        Acquire available offsets of a tracked batch; return how many.
        """
        request = self._request
        most = request.max_delivery_count
        limits = [self._left] if request.is_record_limit else []
        is_limited = False  # by deliveries
        parts: list[AcquiredRecords] = []
        count = 0
        for run in batch.runs_in(self._first_offset, self._last_offset):
            if not run.is_acquirable:
                continue
            is_last_attempt = run.delivery_count == most - 1 and most > _LEAST_THROTTLED
            if is_last_attempt and count:
                break
            if run.delivery_count >= request.throttled_from and not is_limited:
                is_limited = True
                halvings = run.delivery_count - request.throttled_from + 1
                limit = max(1, len(batch) >> halvings)
                if limit > count:  # Kafka compares for equality only.
                    limits.append(limit)
            size = min([len(run), *(limit - count for limit in limits)])
            if is_last_attempt:
                size = 1
            end = run.first_offset + size - 1
            (given,) = batch.runs_in(run.first_offset, end)
            self._give(given)
            count += size
            _append(parts, _acquired(given))
            if is_last_attempt or count in limits:
                break
        self._acquired += parts
        return count

    def _give(self, run: InFlightState) -> None:
        run.acquire(self._request.member_id, self._request.lock_until)

    # What is new

    def _acquire_new(self, first_offset: int, last_offset: int) -> None:
        """
        Acquire offsets that are not in flight, up to the end of the batch that has the last one.
        """
        window = self._window
        if not window.batches:
            first_offset = max(first_offset, window.end_offset)
        if first_offset > last_offset:
            return  # Compaction has taken what would be acquired. Kafka acquires an empty batch.
        if self._left < last_offset - first_offset + 1:
            end = self._end_of_batch(first_offset + self._left - 1)
            last_offset = min(end, last_offset) if window.has_gap else end
        if self._request.is_record_limit:
            acquired = [self._add_limited(first_offset, last_offset)]
        else:
            acquired = self._add(first_offset, last_offset)
        if window.batches[0].first_offset == first_offset:
            window.start_offset = first_offset
        window.end_offset = max(window.end_offset, last_offset)
        end = acquired[-1].last_offset
        window.move_gap(end + 1)
        self._acquired += acquired
        self._left -= end - first_offset + 1

    def _end_of_batch(self, offset: int) -> int:
        found = None
        for batch in self._batches:
            if offset < batch.base_offset:
                break
            found = batch
        return offset if found is None else max(offset, found.last_offset)

    def _add(self, first_offset: int, last_offset: int) -> list[AcquiredRecords]:
        """
        Put offsets in flight, divided where batches begin so that each part has ``batch_size`` of
        them or more.
        """
        size = max(1, self._request.batch_size)
        starts = [first_offset]
        if last_offset - first_offset + 1 > size:
            for batch in self._batches:
                if batch.base_offset > last_offset:
                    break
                if batch.base_offset - starts[-1] >= size:
                    starts.append(batch.base_offset)
        ends = [*(start - 1 for start in starts[1:]), last_offset]
        acquired = []
        for start, end in zip(starts, ends, strict=True):
            new = _new_batch(start, end)
            self._window.add(new)
            self._give(new.whole)
            acquired.append(_acquired(new.whole))
        return acquired

    def _add_limited(self, first_offset: int, last_offset: int) -> AcquiredRecords:
        """
        Put offsets in flight, and acquire no more than are left.
        """
        batch = _new_batch(first_offset, last_offset)
        self._window.add(batch)
        end = first_offset + self._left - 1
        if end < last_offset:
            batch.track()
            self._window.finds_next_fetch_offset = True
        (run,) = batch.runs_in(first_offset, min(end, last_offset))
        self._give(run)
        return _acquired(run)


def _new_batch(first_offset: int, last_offset: int) -> InFlightBatch:
    return InFlightBatch(InFlightState(first_offset, last_offset, RecordState.AVAILABLE, 0))


def _acquired(run: InFlightState) -> AcquiredRecords:
    return AcquiredRecords(
        first_offset=run.first_offset,
        last_offset=run.last_offset,
        delivery_count=run.delivery_count,
    )


def _append(parts: list[AcquiredRecords], part: AcquiredRecords) -> None:
    """
    Add a part to *parts*, joined to the last one if that was delivered as often.
    """
    last = parts[-1] if parts else None
    if (
        last is not None
        and last.last_offset + 1 == part.first_offset
        and last.delivery_count == part.delivery_count
    ):
        last.last_offset = part.last_offset
    else:
        parts.append(part)
