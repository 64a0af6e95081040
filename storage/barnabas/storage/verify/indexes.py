"""
The offset index and the time index of a segment, compared with its batches.

An entry that leads to a damaged batch, or behind one whose length is damaged, is skipped: its right
value is unknown.
"""

from __future__ import annotations

from barnabas.protocol.records.batch import NO_TIMESTAMP, RecordBatch
from barnabas.storage.index.offset_index import OffsetPosition
from barnabas.storage.index.time_index import TimeIndex, TimestampOffset
from barnabas.storage.readonly.index_file import IndexFile
from barnabas.storage.readonly.segment import ReadOnlySegment
from barnabas.storage.verify import invariants
from barnabas.storage.verify.entry_walk import EntryWalk
from barnabas.storage.verify.report import FileReport


def check_index_file(index: IndexFile, report: FileReport, *, may_have_zeros: bool) -> None:
    """
    Check the length of an index.

    Args:
        may_have_zeros: whether the segment is active and was not closed.
    """
    if index.size is None:
        return
    if odd := index.size % index.entry_size:
        report.add(
            invariants.INDEX_SIZE,
            f"{index.size} bytes",
            f"a multiple of {index.entry_size}, {odd} fewer or {index.entry_size - odd} more",
        )
    zeros = index.size - index.used
    if index.used == 0 and index.entry_size == TimeIndex.entry_size:
        # This may be the entry of a batch of timestamp 0 whose last offset is the base offset.
        zeros -= TimeIndex.entry_size
    if zeros >= index.entry_size and not may_have_zeros:
        report.add(
            invariants.INDEX_TRIMMED,
            f"{zeros} bytes of zeros behind {index.count} entries",
            "none, as the segment was rolled or closed",
        )


class OffsetIndexCheck:
    """
    Compares the entries of an offset index.

    Args:
        live: whether a broker may be appending. Entries behind the known end are no error then.
    """

    def __init__(self, segment: ReadOnlySegment, report: FileReport, *, live: bool) -> None:
        self._live = live
        self._entries = EntryWalk(
            segment.offset_entries(),
            OffsetPosition(segment.base_offset - 1, -1),
            report,
            order=invariants.OFFSET_INDEX_ORDER,
            right=invariants.OFFSET_INDEX_ENTRY,
            expected=_offset_order,
            text=_offset_text,
        )

    def batch(self, position: int, last_offset: int) -> None:
        """
        Compare with a good batch at *position*.
        """
        while (entry := self._entries.next) is not None and entry.position <= position:
            if entry.position < position:
                self._entries.add(f"the position of a batch; the next one is at {position}")
            elif entry.offset != last_offset:
                self._entries.add(f"offset {last_offset}")
            self._entries.advance()

    def skip(self, end: int) -> None:
        """
        Skip the entries for positions below *end*, where a batch is damaged.
        """
        while (entry := self._entries.next) is not None and entry.position < end:
            self._entries.advance()

    def end(self, size: int) -> None:
        """
        Report the entries behind the last batch, which ends before byte *size*.
        """
        while self._entries.next is not None:
            if not self._live:
                self._entries.add(f"a position below {size}, the end of the batches")
            self._entries.advance()


def _offset_order(entry: OffsetPosition, last: OffsetPosition) -> str | None:
    if entry.offset > last.offset and entry.position > last.position:
        return None
    return f"more than {last.offset} and {last.position}"


def _offset_text(entry: OffsetPosition) -> str:
    return f"offset {entry.offset} at position {entry.position}"


class TimeIndexCheck:
    """
    Compares the entries of a time index.

    Args:
        live: as for the offset index.
        closed: whether the segment was rolled or closed, which writes its last entry.
    """

    def __init__(
        self, segment: ReadOnlySegment, report: FileReport, *, live: bool, closed: bool
    ) -> None:
        self._closed = closed
        self._exists = segment.time_index.exists
        self._report = report
        self._live = live
        none = TimestampOffset(NO_TIMESTAMP, segment.base_offset)
        self._entries = EntryWalk(
            segment.time_entries(),
            none,
            report,
            order=invariants.TIME_INDEX_ORDER,
            right=invariants.TIME_INDEX_ENTRY,
            expected=_time_order,
            text=_time_text,
        )
        self._largest = none
        self._unknown_from: int | None = None
        self._with_unknown = False

    def batch(self, batch: RecordBatch) -> None:
        """
        Compare with the next good batch.
        """
        last_offset = batch.last_offset
        while (entry := self._entries.next) is not None and entry.offset <= last_offset:
            expected = self._expected(entry, batch)
            if expected is not None:
                self._entries.add(expected)
            self._entries.advance()
        self._unknown_from = None
        if batch.max_timestamp > self._largest.timestamp:
            self._largest = TimestampOffset(batch.max_timestamp, last_offset)

    def _expected(self, entry: TimestampOffset, batch: RecordBatch) -> str | None:
        """
        The right value of an entry up to the end of *batch*; None if it has it, or it is unknown.
        """
        first_offset, largest = batch.base_offset, self._largest.timestamp
        if entry.offset < first_offset:
            if self._unknown_from is not None and entry.offset >= self._unknown_from:
                return None
            return f"the offset of a batch; the next one begins at {first_offset}"
        if entry.timestamp != batch.max_timestamp:
            return f"timestamp {batch.max_timestamp}, the largest of the batch"
        if entry.timestamp < largest:
            return f"timestamp {largest}, the largest up to there"
        if entry.offset != batch.last_offset and entry.offset != _offset_of_largest(batch):
            return f"offset {batch.last_offset}, the last of the batch"
        return None

    def unknown(self, from_offset: int) -> None:
        """
        A batch between *from_offset* and the next good batch is damaged.
        """
        self._with_unknown = True
        if self._unknown_from is None:
            self._unknown_from = from_offset

    def end(self, next_offset: int) -> None:
        """
        Report the entries behind the last batch, which ends before *next_offset*.
        """
        while self._entries.next is not None:
            if not self._live and self._unknown_from is None:
                self._entries.add(f"an offset below {next_offset}, the end of the batches")
            self._entries.advance()
        if not self._closed or self._with_unknown or not self._exists:
            return
        # An entry of timestamp 0 at the base offset is all zeros, like no entry.
        last = self._entries.last
        if self._largest.timestamp > max(last.timestamp, 0):
            found = _time_text(last) if self._entries.number >= 0 else "no entry"
            self._report.add(invariants.TIME_INDEX_LAST, found, _time_text(self._largest))


def _time_order(entry: TimestampOffset, last: TimestampOffset) -> str | None:
    if entry.timestamp > last.timestamp and entry.offset >= last.offset:
        return None
    return f"a timestamp above {last.timestamp} and an offset from {last.offset} on"


def _time_text(entry: TimestampOffset) -> str:
    return f"timestamp {entry.timestamp} at offset {entry.offset}"


def _offset_of_largest(batch: RecordBatch) -> int:
    """
    The offset of the first record with the largest timestamp. Kafka wrote this one until 3.x,
    except for a compressed batch.
    """
    for record in batch.outlines():
        if record.timestamp == batch.max_timestamp:
            return record.offset
    return batch.last_offset
