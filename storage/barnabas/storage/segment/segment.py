"""
One segment of a log: a file of batches and the indexes into it.

::

    00000000000000000042.log         batches from offset 42 on
    00000000000000000042.index       last offset of some batches -> where they begin
    00000000000000000042.timeindex   largest timestamp so far    -> offset
    00000000000000000042.txnindex    aborted transactions whose marker is here; made when needed

What goes where and when is Kafka's LogSegment, to the byte.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Final

from barnabas.protocol.errors import UnknownServerError
from barnabas.protocol.records.batch import LOG_OVERHEAD, RecordBatch
from barnabas.storage.clock import Clock
from barnabas.storage.errors import KafkaError, SegmentOffsetOverflow
from barnabas.storage.fs.interface import Files
from barnabas.storage.index.base import LARGEST_RELATIVE_OFFSET
from barnabas.storage.index.offset_index import OffsetPosition
from barnabas.storage.index.time_index import TimestampOffset
from barnabas.storage.index.txn_index import AbortedTxn, TxnIndexSearchResult
from barnabas.storage.segment.fetch_data import FetchDataInfo
from barnabas.storage.segment.files import SegmentConfig
from barnabas.storage.segment.offset_metadata import LogOffsetMetadata
from barnabas.storage.segment.records import (
    SCAN,
    FileRecords,
    LogOffsetPosition,
    TimestampAndOffset,
)
from barnabas.storage.segment.times import SegmentTimes

if TYPE_CHECKING:
    from barnabas.storage.index.txn_index import CompletedTxn

logger = logging.getLogger(__name__)

_NO_BATCH: Final = (-1, -1, -1, -1)


class LogSegment(SegmentTimes):
    """
    The batches from one base offset up to the next segment's.

    Invariants:

    1. Offsets grow along the file; the first is never below ``base_offset``, and none is more than
       an int32 above it.
    2. The indexes may know fewer batches than the file, never more.
    3. An index entry stands for the last offset of a batch and the position of that same batch.

    One thread at a time may change it: the log that owns it holds its lock. ``read``,
    ``translate_offset`` and the other searches, and ``flush`` are safe from any thread, also while
    the segment is rolled, removed or closed.
    """

    __slots__ = (
        "_bytes_since_last_index_entry",
        "_last_batch",
        "index_interval_bytes",
        "roll_jitter_ms",
    )

    def __init__(
        self,
        directory: Path,
        base_offset: int,
        config: SegmentConfig,
        clock: Clock,
        *,
        files: Files,
        file_already_exists: bool = False,
        init_file_size: int = 0,
        preallocate: bool = False,
        file_suffix: str = "",
        has_txn_index: bool | None = None,
    ) -> None:
        """
        Open the segment in *directory*; its ``.log`` is made if there is none.

        Args:
            init_file_size: bytes that a new ``.log`` has at once, with *preallocate*.
            has_txn_index: whether there is a transaction index, if that is known.
        """
        super().__init__(
            files,
            directory,
            base_offset,
            clock,
            max_index_size=config.segment_index_bytes,
            file_suffix=file_suffix,
            file_already_exists=file_already_exists,
            init_file_size=init_file_size,
            preallocate=preallocate,
            has_txn_index=has_txn_index,
        )
        self.index_interval_bytes = config.index_interval_bytes
        self.roll_jitter_ms = config.random_segment_jitter()
        self._bytes_since_last_index_entry = 0
        self._last_batch = _NO_BATCH
        """First offset, position, size and last offset of what was appended last: consumers at the
        end of the log find it without a search."""

    # What it is.

    def has_overflow(self) -> bool:
        """
        Whether the last offset is too far from the base (a broker before 2.0 could write that).
        """
        next_offset = self.read_next_offset()
        return next_offset > self.base_offset and not self._can_convert(next_offset - 1)

    def _can_convert(self, offset: int) -> bool:
        return 0 <= offset - self.base_offset <= LARGEST_RELATIVE_OFFSET

    def ensure_offset_in_range(self, offset: int) -> None:
        """
        Raises:
            SegmentOffsetOverflow: *offset* is too far from the base.
        """
        if not self._can_convert(offset):
            raise SegmentOffsetOverflow(self.log.path, self.base_offset, offset)

    def sanity_check(
        self, *, has_offset_index_file: bool, time_index_file_newly_created: bool
    ) -> None:
        """
        The little that Kafka checks at a start: segments that may be damaged are recovered anyway.

        Raises:
            FileNotFoundError: the offset index is missing.
            CorruptIndex: the transaction index contradicts the segment.
        """
        if not has_offset_index_file:
            raise FileNotFoundError(f"Offset index file {self.offset_index_file} does not exist")
        if time_index_file_newly_created:
            self.time_index.resize(0)
        self.txn_index.sanity_check()

    # Writing.

    def append(self, largest_offset: int, records: memoryview) -> None:
        """
        Write whole batches of the current format, and index entries for some of them.

        An entry is due for a batch when more than ``index.interval.bytes`` lie between it and the
        one that had the last entry.

        Args:
            largest_offset: that of the last batch.

        Raises:
            SegmentOffsetOverflow: *largest_offset* is too far from the base; nothing is written.
            TooManyOpenFiles: an index cannot be opened; nothing is written.
            KafkaStorageError: the disk failed.
        """
        total = len(records)
        if total == 0:
            return
        self.ensure_offset_in_range(largest_offset)
        # What is needed is opened before anything is written. Also if no entry is due: both files
        # are there from the first append on.
        offset_index = self.offset_index
        largest = self.read_max_timestamp_and_offset_so_far()
        since = self._bytes_since_last_index_entry
        if since + total > self.index_interval_bytes:
            self._open_indexes_for_writing()
        start = position = self.log.size
        self.log.append(records)
        while position - start < total:
            base_offset, length, _, _, delta, timestamp = SCAN.unpack_from(
                records, position - start
            )
            last_offset = base_offset + delta
            if timestamp > largest.timestamp:
                largest = TimestampOffset(timestamp, last_offset)
                self._max_timestamp_and_offset_so_far = largest
            if since > self.index_interval_bytes:
                offset_index.append(last_offset, position)
                self.time_index.maybe_append(largest.timestamp, largest.offset)
                since = 0
            size = length + LOG_OVERHEAD
            self._last_batch = base_offset, position, size, last_offset
            position += size
            since += size
        self._bytes_since_last_index_entry = since

    def append_from_file(self, records: FileRecords, start: int) -> int:
        """
        Append batches of another file, from the byte *start* on, as long as their offsets fit.

        Returns:
            How many bytes were appended.
        """
        position = start
        for batch in records.batches(start):
            if not self._can_convert(batch.last_offset):
                break
            self._append_batch(batch)
            position += batch.size
        return position - start

    def _append_batch(self, batch: RecordBatch) -> None:
        """
        Append one batch, which may be of an old format.
        """
        offset_index, position = self.offset_index, self.log.size
        self.max_timestamp_so_far()
        self._open_indexes_for_writing()
        self.log.append(batch.data)
        self.note_timestamp(batch.max_timestamp, batch.last_offset)
        if self._bytes_since_last_index_entry > self.index_interval_bytes:
            offset_index.append(batch.last_offset, position)
            self.append_largest_timestamp()
            self._bytes_since_last_index_entry = 0
        self._bytes_since_last_index_entry += batch.size
        self._last_batch = batch.base_offset, position, batch.size, batch.last_offset

    def _open_indexes_for_writing(self) -> None:
        self.offset_index.open_for_writing()
        self.time_index.open_for_writing()

    def prepare_txn_index(self) -> None:
        """
        Open the transaction index, so that ``update_txn_index`` finds it open.
        """
        self.txn_index.open_for_writing()

    def update_txn_index(self, completed_txn: CompletedTxn, last_stable_offset: int) -> None:
        """
        Remember a transaction, if it was aborted.
        """
        if completed_txn.is_aborted:
            self.txn_index.append(
                AbortedTxn(
                    completed_txn.producer_id,
                    completed_txn.first_offset,
                    completed_txn.last_offset,
                    last_stable_offset,
                )
            )

    def on_become_inactive_segment(self) -> None:
        """
        The log goes on in another segment: write the last time entry, cut off all holes.
        """
        if self.has_open_index:
            self.append_largest_timestamp(skip_full_check=True)
        self.trim_indexes()
        self.log.trim()

    def truncate_to(self, offset: int) -> int:
        """
        Remove all batches that reach *offset* or go beyond it.

        Returns:
            How many bytes of batches were removed.
        """
        self._last_batch = _NO_BATCH
        # Before the index forgets where to begin.
        found = self.translate_offset(offset)
        for index in (self.offset_index, self.time_index):
            index.truncate_to(offset)
            # The segment is the active one from now on.
            index.resize(index.max_index_size)
        self.txn_index.truncate_to(offset)
        removed = 0 if found is None else self.log.truncate_to(found.position)
        self._bytes_since_last_index_entry = 0
        self._note_truncation()
        return removed

    # Reading.

    def translate_offset(
        self, offset: int, starting_file_position: int = 0, *, nowait: bool = False
    ) -> LogOffsetPosition | None:
        """
        The first batch that holds *offset* or a larger one, None if there is none.

        Args:
            starting_file_position: where to begin at the earliest.

        Raises:
            WouldBlock: with *nowait*, the page cache lacks what has to be looked at.
        """
        first_offset, position, size, last_offset = self._last_batch
        if size >= 0 and offset >= first_offset:
            return (
                LogOffsetPosition(first_offset, position, size) if offset <= last_offset else None
            )
        position = self.offset_index.lookup(offset).position
        return self.log.search_for_offset_from_position(
            offset, max(position, starting_file_position), nowait=nowait
        )

    def read(
        self,
        start_offset: int,
        max_size: int,
        max_position: int | None,
        *,
        min_one_message: bool = False,
        nowait: bool = False,
    ) -> FetchDataInfo | None:
        """
        Find the bytes from the batch that holds *start_offset* on; None if no batch does.

        The bytes begin with a batch but may end within one.

        Args:
            max_position: where the readable part of the segment ends; None if that is not known,
                and then the answer has no bytes.
            min_one_message: at least the first batch, also if it is larger than *max_size*.

        Raises:
            UnknownServerError: *max_size* is negative.
            WouldBlock: with *nowait*, the page cache lacks what has to be looked at.
        """
        if max_size < 0:
            raise UnknownServerError(f"A read of {self.log} cannot have {max_size} bytes")
        found = self.translate_offset(start_offset, nowait=nowait)
        if found is None:
            return None
        start = found.position
        metadata = LogOffsetMetadata(found.offset, self.base_offset, start)
        if min_one_message and max_size < found.size:
            max_size = found.size
        if max_size == 0 or max_position is None:
            return FetchDataInfo(metadata, None)
        records = self.log.slice(start, min(max_position - start, max_size))
        return FetchDataInfo(metadata, records, max_size < found.size)

    def fetch_upper_bound_offset(
        self, start_offset_position: OffsetPosition, fetch_size: int
    ) -> int | None:
        """
        An offset that a read of *fetch_size* bytes does not go beyond, if the index knows one.
        """
        found = self.offset_index.fetch_upper_bound_offset(start_offset_position, fetch_size)
        return None if found is None else found.offset

    def read_next_offset(self) -> int:
        """
        The offset behind the last batch. It reads the file from the last index entry on.
        """
        if self.log.size == 0:
            return self.base_offset
        start = self.translate_offset(self.offset_index.last_offset)
        next_offset = self.base_offset
        if start is not None:
            for header in self.log.headers(start.position):
                next_offset = header.last_offset + 1
        return next_offset

    def find_offset_by_timestamp(
        self, timestamp_ms: int, starting_offset: int
    ) -> TimestampAndOffset | None:
        """
        The first record that is not older than *timestamp_ms*, nor below *starting_offset*.
        """
        from_offset = self.time_index.lookup(timestamp_ms).offset
        position = self.offset_index.lookup(max(from_offset, starting_offset)).position
        return self.log.search_for_timestamp(timestamp_ms, position, starting_offset)

    def collect_aborted_txns(
        self, fetch_offset: int, upper_bound_offset: int
    ) -> TxnIndexSearchResult:
        return self.txn_index.collect_aborted_txns(fetch_offset, upper_bound_offset)

    # After a crash.

    def ends_with_empty_index_entries(self) -> bool:
        """
        Whether one of the indexes was not cut to its size when the segment was closed, or lacks
        what was written to it then.
        """
        offsets, times = self.offset_index, self.time_index
        last_offset = offsets.entry(offsets.entries - 1) if offsets.entries else None
        return last_offset == (self.base_offset, 0) or (
            times.entries > 0 and times.last_entry == (0, self.base_offset)
        )

    def forget_everything_but_batches(self) -> None:
        """
        Empty the indexes, as nobody knows whether they were written in time.
        """
        self.begin_indexes_anew()
        self.txn_index.reset()
        self._max_timestamp_and_offset_so_far = None
        self._last_batch = _NO_BATCH

    def close(self) -> None:
        """
        Write the last time entry, cut off all holes, and give the files back.

        Raises:
            KafkaStorageError: a file could not be closed properly; all others were tried.
        """
        if self.has_open_index and self._max_timestamp_and_offset_so_far is not None:
            try:
                self.append_largest_timestamp(skip_full_check=True)
            except (KafkaError, ValueError):
                logger.warning("No last time entry for %s", self.log.path, exc_info=True)
        super().close()

    def __repr__(self) -> str:
        largest = self._max_timestamp_and_offset_so_far
        return (
            f"LogSegment(baseOffset={self.base_offset}, size={self.log.size}, "
            f"largestRecordTimestamp={'unknown' if largest is None else largest.timestamp})"
        )
