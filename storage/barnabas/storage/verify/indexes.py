"""
The offset index and the time index of a segment, against its batches.

Both are read along with the batches, so that neither has to be in memory. Where a batch is damaged,
or cannot even be told, the entries that lead there are passed over: nobody can say what they should
be.
"""

from __future__ import annotations

from collections.abc import Iterator

from barnabas.protocol.records.batch import NO_TIMESTAMP, RecordBatch
from barnabas.storage.index.offset_index import OffsetPosition
from barnabas.storage.index.time_index import TimeIndex, TimestampOffset
from barnabas.storage.readonly.index_file import IndexFile
from barnabas.storage.readonly.segment import ReadOnlySegment
from barnabas.storage.verify import rules
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
            rules.INDEX_SIZE,
            f"{index.size} bytes",
            f"a multiple of {index.entry_size}, {odd} fewer or {index.entry_size - odd} more",
        )
    zeros = index.size - index.used
    if index.used == 0 and index.entry_size == TimeIndex.entry_size:
        # This may be the entry of a batch of time 0 that ends at the base offset.
        zeros -= TimeIndex.entry_size
    if zeros >= index.entry_size and not may_have_zeros:
        report.add(
            rules.INDEX_TRIMMED,
            f"{zeros} bytes of zeros behind {index.count} entries",
            "none, as the segment was rolled or closed",
        )


class OffsetIndexCheck:
    """
    Goes along the entries of an offset index.

    Args:
        live: whether a broker may be appending: entries beyond what is seen are no error then.
    """

    __slots__ = ("_entries", "_last", "_live", "_next", "_number", "_report")

    def __init__(self, segment: ReadOnlySegment, report: FileReport, *, live: bool) -> None:
        self._report = report
        self._live = live
        self._entries: Iterator[OffsetPosition] = segment.offset_entries()
        self._number = -1
        self._last = OffsetPosition(segment.base_offset - 1, -1)
        self._next: OffsetPosition | None = None
        self._advance()

    def _advance(self) -> None:
        """
        Go on to the next entry that follows the one before.
        """
        for entry in self._entries:
            self._number += 1
            last = self._last
            if entry.offset > last.offset and entry.position > last.position:
                self._last = self._next = entry
                return
            self._report.add(
                rules.OFFSET_INDEX_ORDER,
                f"offset {entry.offset} at position {entry.position}",
                f"more than {last.offset} and {last.position}",
                entry=self._number,
            )
        self._next = None

    @property
    def next_position(self) -> int:
        """
        That of the next entry, -1 if there is none.
        """
        return -1 if self._next is None else self._next.position

    def batch(self, position: int, last_offset: int) -> None:
        """
        A good batch is at *position*.
        """
        while (entry := self._next) is not None and entry.position <= position:
            if entry.position < position:
                self._add(entry, f"the position of a batch; the next one is at {position}")
            elif entry.offset != last_offset:
                self._add(entry, f"offset {last_offset}")
            self._advance()

    def unknown(self, end: int) -> OffsetPosition | None:
        """
        What lies before *end* cannot be relied upon; the first entry behind that, if there is one.
        """
        while (entry := self._next) is not None and entry.position < end:
            self._advance()
        return self._next

    def end(self, size: int) -> None:
        """
        There are no more batches; what was told apart ends at byte *size*.
        """
        while (entry := self._next) is not None:
            if not self._live:
                self._add(entry, f"a position below {size}, the end of the batches")
            self._advance()

    def _add(self, entry: OffsetPosition, expected: str) -> None:
        self._report.add(
            rules.OFFSET_INDEX_ENTRY,
            f"offset {entry.offset} at position {entry.position}",
            expected,
            entry=self._number,
        )


class TimeIndexCheck:
    """
    Goes along the entries of a time index.

    Args:
        live: as for the offset index.
        closed: whether the segment was rolled or closed, so that its last entry is written.
    """

    __slots__ = (
        "_closed",
        "_entries",
        "_exists",
        "_largest",
        "_last",
        "_live",
        "_next",
        "_number",
        "_report",
        "_unknown_from",
        "_with_unknown",
    )

    def __init__(
        self, segment: ReadOnlySegment, report: FileReport, *, live: bool, closed: bool
    ) -> None:
        self._closed = closed
        self._exists = segment.time_index.exists
        self._report = report
        self._live = live
        self._entries: Iterator[TimestampOffset] = segment.time_entries()
        self._number = -1
        self._last = TimestampOffset(NO_TIMESTAMP, segment.base_offset)
        self._next: TimestampOffset | None = None
        self._largest = TimestampOffset(NO_TIMESTAMP, segment.base_offset)
        self._unknown_from: int | None = None
        self._with_unknown = False
        self._advance()

    def _advance(self) -> None:
        for entry in self._entries:
            self._number += 1
            last = self._last
            if entry.timestamp > last.timestamp and entry.offset >= last.offset:
                self._last = self._next = entry
                return
            self._report.add(
                rules.TIME_INDEX_ORDER,
                _text(entry),
                f"a timestamp above {last.timestamp} and an offset from {last.offset} on",
                entry=self._number,
            )
        self._next = None

    def batch(self, batch: RecordBatch) -> None:
        """
        The next good batch.
        """
        first_offset, last_offset = batch.base_offset, batch.last_offset
        max_timestamp = batch.max_timestamp
        while (entry := self._next) is not None and entry.offset <= last_offset:
            if entry.offset < first_offset:
                if self._unknown_from is None or entry.offset < self._unknown_from:
                    self._add(
                        entry, f"the offset of a batch; the next one begins at {first_offset}"
                    )
            elif entry.timestamp != max_timestamp:
                self._add(entry, f"timestamp {max_timestamp}, the largest of the batch")
            elif entry.timestamp < self._largest.timestamp:
                self._add(entry, f"timestamp {self._largest.timestamp}, the largest up to there")
            elif entry.offset != last_offset and entry.offset != _offset_of_largest(batch):
                self._add(entry, f"offset {last_offset}, the last of the batch")
            self._advance()
        self._unknown_from = None
        if max_timestamp > self._largest.timestamp:
            self._largest = TimestampOffset(max_timestamp, last_offset)

    def unknown(self, from_offset: int) -> None:
        """
        What lies between *from_offset* and the next good batch cannot be relied upon.
        """
        self._with_unknown = True
        if self._unknown_from is None:
            self._unknown_from = from_offset

    def end(self, next_offset: int) -> None:
        """
        There are no more batches; the last one ended before *next_offset*.
        """
        while (entry := self._next) is not None:
            if not self._live and self._unknown_from is None:
                self._add(entry, f"an offset below {next_offset}, the end of the batches")
            self._advance()
        if not self._closed or self._with_unknown or not self._exists:
            return
        # An entry of time 0 at the base offset is all zeros, and looks like none.
        if self._largest.timestamp > max(self._last.timestamp, 0):
            found = _text(self._last) if self._number >= 0 else "no entry"
            self._report.add(rules.TIME_INDEX_LAST, found, _text(self._largest))

    def _add(self, entry: TimestampOffset, expected: str) -> None:
        self._report.add(rules.TIME_INDEX_ENTRY, _text(entry), expected, entry=self._number)


def _offset_of_largest(batch: RecordBatch) -> int:
    """
    The offset of the first record that has the largest timestamp. Until 3.x that was what Kafka
    wrote, unless the batch was compressed.
    """
    for record in batch.records():
        if record.timestamp == batch.max_timestamp:
            return record.offset
    return batch.last_offset


def _text(entry: TimestampOffset) -> str:
    return f"timestamp {entry.timestamp} at offset {entry.offset}"
