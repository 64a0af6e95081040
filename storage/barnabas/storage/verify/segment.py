"""
One segment, batch after batch.

Behind bytes that are not a batch, the walk continues at the next entry of the offset index that
leads to a good batch, and checks the rest of the segment.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

from barnabas.protocol.records.batch import MAGIC, MAGIC_END, SMALLEST_LENGTH, RecordBatch
from barnabas.protocol.structs import struct
from barnabas.storage.errors import CorruptRecord
from barnabas.storage.index.base import LARGEST_RELATIVE_OFFSET
from barnabas.storage.index.offset_index import OffsetPosition
from barnabas.storage.readonly.segment import ReadOnlySegment
from barnabas.storage.segment.records import LARGEST_FILE
from barnabas.storage.verify import invariants
from barnabas.storage.verify.batch import check_batch
from barnabas.storage.verify.epochs import EpochCheck
from barnabas.storage.verify.indexes import OffsetIndexCheck, TimeIndexCheck, check_index_file
from barnabas.storage.verify.producers import ProducerCheck
from barnabas.storage.verify.report import Add, FileReport, VerifyReport
from barnabas.storage.verify.transactions import TxnIndexCheck

_MOST_RESUMPTIONS: Final = 1000
_CHUNK: Final = 1 << 20
_LENGTH_AND_MAGIC: Final = Struct(">8xi4xb")


@struct(frozen=False, kw_only=True)
class LogProgress:
    """
    The progress of the walk along a log.
    """

    end_offset: int
    """The offset behind the last readable batch of all segments."""
    next_offset: int | None
    """The base offset of the next batch; None if damage hides it."""
    may_be_compacted: bool
    end_damaged: bool = False
    """Whether the last batch of the segment is damaged."""


@struct(kw_only=True)
class SegmentContext:
    """
    The surroundings of a segment: the next segment, and the state of its files.
    """

    next_base_offset: int | None
    """None for the last segment."""
    closed: bool
    """Whether it was rolled, or closed with its log."""
    live: bool
    """Whether a broker may be appending to it."""
    may_have_zeros: bool
    """Whether its file may be preallocated."""


class SegmentCheck:
    """
    One walk through one segment.
    """

    def __init__(
        self,
        segment: ReadOnlySegment,
        context: SegmentContext,
        progress: LogProgress,
        *,
        report: FileReport,
        totals: VerifyReport,
        epochs: EpochCheck,
        producers: ProducerCheck,
    ) -> None:
        self._segment = segment
        self._context = context
        self._progress = progress
        self._report = report
        self._totals = totals
        self._epochs = epochs
        self._producers = producers
        self._overlaps = False
        progress.end_damaged = False
        self._index = OffsetIndexCheck(
            segment, report.beside(segment.offset_index.path), live=context.live
        )
        self._times = TimeIndexCheck(
            segment,
            report.beside(segment.time_index.path),
            live=context.live,
            closed=context.closed,
        )
        self._txns = TxnIndexCheck(
            segment, report.beside(segment.txn_index.path), live=context.live
        )

    def run(self) -> None:
        segment = self._segment
        self._check_index_files()
        if segment.size > LARGEST_FILE:
            self._report.add(
                invariants.SEGMENT_SIZE, f"{segment.size} bytes", f"up to {LARGEST_FILE}"
            )
            self._unknown()
            self._progress.end_damaged = True
            return
        position: int | None = 0
        for _ in range(_MOST_RESUMPTIONS):
            if position is None:
                break
            lost_at = self._walk(position)
            position = None if lost_at is None else self._resume(lost_at)
        if self._progress.end_damaged:
            self._index.skip(LARGEST_FILE + 1)
        self._index.end(segment.size)
        self._times.end(self._progress.end_offset)
        self._txns.end()

    def _check_index_files(self) -> None:
        segment, context = self._segment, self._context
        for index in (segment.offset_index, segment.time_index):
            report = self._report.beside(index.path)
            if not index.exists and (context.closed or segment.size) and not context.live:
                report.add(invariants.INDEX_MISSING, "no file", "an index")
            check_index_file(index, report, may_have_zeros=not context.closed)
        txns = segment.txn_index
        check_index_file(txns, self._report.beside(txns.path), may_have_zeros=False)

    def _walk(self, position: int) -> int | None:
        """
        Walk from *position* on, and return the position of bytes that are not a batch, or None.
        """
        totals = self._totals
        end = position
        try:
            for at, batch in self._segment.batches(position):
                self._batch(batch, at)
                end = at + batch.size
                totals.batches += 1
                totals.records += max(0, batch.record_count)
                totals.bytes += batch.size
        except CorruptRecord as error:
            return self._no_batch(error.position, str(error))
        rest = self._segment.size - end
        if rest == 0 or self._context.live:
            return None
        self._report.add(
            invariants.BATCH_INCOMPLETE,
            f"{rest} bytes that are no whole batch",
            "whole batches up to the end",
            position=end,
        )
        self._unknown()
        return end

    def _no_batch(self, position: int, sentence: str) -> int | None:
        if self._is_zero_from(position):
            if not self._context.may_have_zeros:
                rest = self._segment.size - position
                found, expected = f"{rest} bytes of zeros", "nothing behind the last batch"
                self._report.add(invariants.ZERO_TAIL, found, expected, position=position)
                self._progress.end_damaged = True
            return None
        header = self._header(position)
        if header is None or header[0] < SMALLEST_LENGTH or header[1] >= 0:
            self._report.add(invariants.BATCH_SIZE, sentence, "a batch", position=position)
        else:
            found, expected = f"format {header[1]}", f"format 0 to {MAGIC}"
            self._report.add(invariants.BATCH_MAGIC, found, expected, position=position)
        self._unknown()
        return position

    def _batch(self, batch: RecordBatch, position: int) -> None:
        """
        Check a batch, and everything that belongs to it.
        """
        progress = self._progress
        add = self._report.at(position, batch)
        if not check_batch(batch, add) or not self._in_order(batch, add):
            self._unknown()
            self._index.skip(position + batch.size)
            return
        if progress.next_offset != batch.base_offset or (
            batch.record_count <= batch.last_offset_delta
        ):
            self._gap(batch, add)
        self._index.batch(position, batch.last_offset)
        self._times.batch(batch)
        self._epochs.batch(batch, add)
        self._producers.batch(batch, add, self._txns)
        progress.end_offset = progress.next_offset = batch.next_offset
        progress.end_damaged = False

    def _in_order(self, batch: RecordBatch, add: Add) -> bool:
        """
        Whether the offsets of a batch are in the range of the segment and behind earlier ones.
        """
        first, last = batch.base_offset, batch.last_offset
        lowest = max(self._segment.base_offset, self._progress.end_offset)
        highest = self._segment.base_offset + LARGEST_RELATIVE_OFFSET
        if first < lowest or last < first or last > highest:
            found, expected = f"offsets {first} to {last}", f"{lowest} to {highest}, ascending"
            add(invariants.BATCH_OFFSETS, found, expected)
            return False
        limit = self._context.next_base_offset
        if limit is not None and last >= limit and not self._overlaps:
            self._overlaps = True
            found, expected = f"offset {last}", f"below {limit}, where the next segment begins"
            add(invariants.SEGMENT_OVERLAP, found, expected)
        return True

    def _gap(self, batch: RecordBatch, add: Add) -> None:
        """
        Offsets are missing in front of a batch or in it, because of compaction or damage.
        """
        progress = self._progress
        if batch.record_count <= batch.last_offset_delta:
            # No producer writes a batch with fewer records than offsets.
            progress.may_be_compacted = True
        expected = progress.next_offset
        is_gap = expected is not None and batch.base_offset > expected
        if is_gap and not progress.may_be_compacted:
            add(invariants.OFFSET_GAP, f"offset {batch.base_offset}", str(expected))
        self._producers.gap(batch.base_offset)

    def _unknown(self) -> None:
        """
        A batch is damaged: nothing is known up to the next good one.
        """
        progress = self._progress
        progress.end_damaged = True
        progress.next_offset = None
        self._times.unknown(progress.end_offset)
        self._producers.unknown()
        self._txns.unknown()

    # Continuing behind damage.

    def _resume(self, position: int) -> int | None:
        """
        The position of a good batch behind *position*, found in the offset index.
        """
        for number, entry in enumerate(self._segment.offset_entries()):
            if number > _MOST_RESUMPTIONS or entry.position >= self._segment.size:
                return None
            if entry.position > position and self._leads_to_batch(entry):
                self._index.skip(entry.position)
                return entry.position
        return None

    def _leads_to_batch(self, entry: OffsetPosition) -> bool:
        try:
            for _, batch in self._segment.batches(entry.position):
                return batch.last_offset == entry.offset and batch.is_valid()
        except CorruptRecord:
            pass
        return False

    def _header(self, position: int) -> tuple[int, int] | None:
        """
        The length and the format at *position*; None if the file ends before.
        """
        data = self._segment.read(position, MAGIC_END)
        return _LENGTH_AND_MAGIC.unpack(data) if len(data) == MAGIC_END else None

    def _is_zero_from(self, position: int) -> bool:
        while data := self._segment.read(position, _CHUNK):
            if data.count(0) != len(data):
                return False
            position += len(data)
        return True
