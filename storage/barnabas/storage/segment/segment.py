"""
One segment of a log: a file of batches and the indexes into it.

::

    00000000000000000042.log         batches from offset 42 on
    00000000000000000042.index       last offset of some batches -> where they begin
    00000000000000000042.timeindex   largest timestamp so far    -> offset
    00000000000000000042.txnindex    aborted transactions whose marker is here; made when needed

The bytes of all four files are those that Kafka's LogSegment writes.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

import logging
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from barnabas.protocol.errors import UnknownServerError
from barnabas.protocol.records.batch import LOG_OVERHEAD, RecordBatch
from barnabas.storage.clock import Clock
from barnabas.storage.errors import KafkaError, SegmentOffsetOverflow
from barnabas.storage.fs.interface import Files
from barnabas.storage.index.base import LARGEST_RELATIVE_OFFSET, Index
from barnabas.storage.index.lazy import LazyIndex
from barnabas.storage.index.offset_index import OffsetIndex
from barnabas.storage.index.time_index import TimeIndex, TimestampOffset
from barnabas.storage.index.txn_index import AbortedTxn, TransactionIndex
from barnabas.storage.segment.fetch_data import FetchDataInfo
from barnabas.storage.segment.offset_metadata import LogOffsetMetadata
from barnabas.storage.segment.records import (
    SCAN,
    FileRecords,
    LogOffsetPosition,
    TimestampAndOffset,
)
from barnabas.storage.state_files.file_names import (
    log_file,
    offset_index_file,
    offset_index_name,
    replace_suffix,
    time_index_file,
    time_index_name,
    transaction_index_file,
    transaction_index_name,
)
from barnabas.storage.threads.deferred_work import run_all
from barnabas.storage.units import LONG_MAX

if TYPE_CHECKING:
    from barnabas.storage.index.txn_index import CompletedTxn

logger = logging.getLogger(__name__)

_NO_BATCH: Final = (-1, -1, -1, -1)


class SegmentConfig(Protocol):
    """
    The options of a topic that a segment reads.
    """

    @property
    def segment_index_bytes(self) -> int: ...

    @property
    def index_interval_bytes(self) -> int: ...

    def random_segment_jitter(self) -> int: ...


class LogSegment:
    """
    The batches from one base offset up to the next segment's, in four files.

    Invariants:

    1. Offsets grow along the file; the first is never below ``base_offset``, and none is more than
       an int32 above it.
    2. The indexes may have entries for fewer batches than the file has, never for more.
    3. An index entry has the last offset of a batch and the position of that same batch.
    4. The largest timestamp has the last offset of the earliest batch that contains it. It is read
       from the time index when it is first asked for, and kept up from then on.
    5. All four files have the same base offset and the same suffix. Their removal ends no read:
       the last reader closes them.

    One thread at a time may change it: the log that owns it holds its lock. ``read``,
    ``translate_offset`` and the other searches, and ``flush`` are safe from any thread, also while
    the segment is rolled, removed or closed.
    """

    __slots__ = (
        "_bytes_since_last_index_entry",
        "_clock",
        "_files",
        "_last_batch",
        "_lazy_offset_index",
        "_lazy_time_index",
        "_max_timestamp_and_offset_so_far",
        "_max_timestamp_guard",
        "_rolling_based_timestamp",
        "base_offset",
        "created_ms",
        "index_interval_bytes",
        "log",
        "roll_jitter_ms",
        "txn_index",
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
        file_suffix: str = "",
        has_txn_index: bool = False,
    ) -> None:
        """
        Open the segment in *directory*; its ``.log`` is made if there is none.

        Args:
            init_file_size: bytes that are preallocated for a new ``.log``; 0 for none.
            has_txn_index: whether there is a transaction index.

        Raises:
            KafkaError: the ``.log`` is larger than positions in an index can be.
            KafkaStorageError: the disk failed.
        """
        self.base_offset = base_offset
        self.log = FileRecords.open(
            files,
            log_file(directory, base_offset, file_suffix),
            file_already_exists=file_already_exists,
            init_file_size=init_file_size,
        )
        index_bytes = config.segment_index_bytes
        self._lazy_offset_index = LazyIndex(
            OffsetIndex,
            files,
            directory,
            offset_index_name(base_offset, file_suffix),
            base_offset,
            max_size=index_bytes,
        )
        self._lazy_time_index = LazyIndex(
            TimeIndex,
            files,
            directory,
            time_index_name(base_offset, file_suffix),
            base_offset,
            max_size=index_bytes,
        )
        name = transaction_index_name(base_offset, file_suffix)
        self.txn_index = TransactionIndex(files, directory, name, base_offset, exists=has_txn_index)
        self.index_interval_bytes = config.index_interval_bytes
        self.roll_jitter_ms = config.random_segment_jitter()
        self._files = files
        self._clock = clock
        self.created_ms = clock.now_ms()
        self._rolling_based_timestamp: int | None = None
        self._max_timestamp_and_offset_so_far: TimestampOffset | None = None
        self._max_timestamp_guard = threading.Lock()
        self._bytes_since_last_index_entry = 0
        self._last_batch = _NO_BATCH
        """First offset, position, size and last offset of the last batch: consumers at the end of
        the log find it without a search."""

    # Its parts, its size, and the offsets that fit into it.

    @property
    def size(self) -> int:
        """
        Bytes of the batches.
        """
        return self.log.size

    @property
    def offset_index(self) -> OffsetIndex:
        """
        The offset index, which is opened if it is closed.
        """
        return self._lazy_offset_index.index or self._lazy_offset_index.get()

    @property
    def time_index(self) -> TimeIndex:
        """
        The time index, which is opened if it is closed.
        """
        return self._lazy_time_index.index or self._lazy_time_index.get()

    @property
    def indexes(self) -> tuple[LazyIndex[OffsetIndex], LazyIndex[TimeIndex]]:
        """
        Both indexes, as they are, open or closed.
        """
        return self._lazy_offset_index, self._lazy_time_index

    @property
    def _parts(
        self,
    ) -> tuple[FileRecords, LazyIndex[OffsetIndex], LazyIndex[TimeIndex], TransactionIndex]:
        return self.log, self._lazy_offset_index, self._lazy_time_index, self.txn_index

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
        # The indexes are opened before anything is written, also if no entry is due: both files
        # exist from the first append on.
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
        Write the last time entry and cut off all holes: the log continues in another segment.
        """
        if self._has_open_index:
            self.append_largest_timestamp(skip_full_check=True)
        for index in self.indexes:
            index.trim()
        self.log.trim()

    @property
    def _has_open_index(self) -> bool:
        # An append opens an index: if none is open, nothing was appended.
        return self._lazy_offset_index.index is not None or self._lazy_time_index.index is not None

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
        if self.log.size == 0:
            self.created_ms = self._clock.now_ms()
            self._rolling_based_timestamp = None
        if self.max_timestamp_so_far() >= 0:
            self._max_timestamp_and_offset_so_far = self._find_largest_timestamp()
        return removed

    def _find_largest_timestamp(self) -> TimestampOffset:
        last_entry = self.time_index.last_entry
        position = self.offset_index.lookup(last_entry.offset).position
        after = self.log.largest_timestamp_after(position)
        if after.timestamp > last_entry.timestamp:
            return TimestampOffset(after.timestamp, after.offset)
        return last_entry

    # Reading.

    def translate_offset(self, offset: int, *, nowait: bool = False) -> LogOffsetPosition | None:
        """
        The first batch that holds *offset* or a larger one, None if there is none.

        Raises:
            WouldBlock: with *nowait*, the page cache lacks bytes that are searched.
        """
        first_offset, position, size, last_offset = self._last_batch
        if size >= 0 and offset >= first_offset:
            return (
                LogOffsetPosition(first_offset, position, size) if offset <= last_offset else None
            )
        position = self.offset_index.lookup(offset).position
        return self.log.search_for_offset_from_position(offset, position, nowait=nowait)

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
            WouldBlock: with *nowait*, the page cache lacks bytes that are searched.
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

    # The largest timestamp, by which retention deletes the segment.

    def read_max_timestamp_and_offset_so_far(self) -> TimestampOffset:
        """
        The largest timestamp in ms, -1 if there is none, and the last offset of its batch.

        Opens the time index the first time.
        """
        if (known := self._max_timestamp_and_offset_so_far) is not None:
            return known
        with self._max_timestamp_guard:
            # An append may have come first with a larger one.
            if self._max_timestamp_and_offset_so_far is None:
                self._max_timestamp_and_offset_so_far = self.time_index.last_entry
            return self._max_timestamp_and_offset_so_far

    def max_timestamp_so_far(self) -> int:
        return self.read_max_timestamp_and_offset_so_far().timestamp

    def note_timestamp(self, timestamp: int, offset: int) -> None:
        """
        Take *timestamp*, that of a batch with the last offset *offset*, as the largest if it is.
        """
        if timestamp > self.max_timestamp_so_far():
            self._max_timestamp_and_offset_so_far = TimestampOffset(timestamp, offset)

    def append_largest_timestamp(self, *, skip_full_check: bool = False) -> None:
        """
        Write the largest timestamp so far into the time index, if it is not the last there.

        Raises: as ``TimeIndex.maybe_append``.
        """
        largest = self.read_max_timestamp_and_offset_so_far()
        self.time_index.maybe_append(
            largest.timestamp, largest.offset, skip_full_check=skip_full_check
        )

    def largest_record_timestamp(self) -> int | None:
        """
        The largest timestamp of a record in ms, None if no record has one. A closed time index
        stays closed: retention asks every segment of every log.
        """
        known = self._max_timestamp_and_offset_so_far
        if known is None:
            with self._max_timestamp_guard:
                known = self._max_timestamp_and_offset_so_far
                if known is None:
                    known = self._lazy_time_index.peek(lambda index: index.last_entry)
                    self._max_timestamp_and_offset_so_far = known
        return known.timestamp if known.timestamp >= 0 else None

    def largest_timestamp(self) -> int:
        """
        The largest timestamp of a record in ms; if no record has one, the time of the last write.
        """
        timestamp = self.largest_record_timestamp()
        return self.last_modified() if timestamp is None else timestamp

    # The timestamp of the first batch, by which the segment is rolled.

    def first_batch_timestamp(self) -> int:
        """
        The largest timestamp of the first batch in ms, ``LONG_MAX`` if there is none.
        """
        first = self._load_first_batch_timestamp()
        return first if first is not None and first >= 0 else LONG_MAX

    def _load_first_batch_timestamp(self) -> int | None:
        if self._rolling_based_timestamp is None:
            for header in self.log.headers():
                self._rolling_based_timestamp = header.max_timestamp
                break
        return self._rolling_based_timestamp

    # Opening and recovering.

    def sanity_check(
        self, *, has_offset_index_file: bool, time_index_file_newly_created: bool
    ) -> None:
        """
        Check as much as Kafka does at a start: segments that may be damaged are recovered anyway.

        Raises:
            FileNotFoundError: the offset index is missing.
            CorruptIndex: the transaction index contradicts the segment.
        """
        if not has_offset_index_file:
            path = self._lazy_offset_index.path
            raise FileNotFoundError(f"Offset index file {path} does not exist")
        if time_index_file_newly_created:
            self.time_index.resize(0)
        self.txn_index.sanity_check()

    def ends_with_empty_index_entries(self) -> bool:
        """
        Whether an index ends with a hole, or lacks the entries of the closing of the segment: the
        closing was not complete.
        """
        offsets, times = self.offset_index, self.time_index
        last_offset = offsets.entry(offsets.entries - 1) if offsets.entries else None
        return last_offset == (self.base_offset, 0) or (
            times.entries > 0 and times.last_entry == (0, self.base_offset)
        )

    def last_offset_indexed(self) -> int | None:
        """
        The largest last entry of the two indexes, None if both are empty. After a crash it may name
        an offset that the file has lost.
        """
        found = (index.peek(_last_offset_written) for index in self.indexes)
        return max((offset for offset in found if offset is not None), default=None)

    def reset_indexes(self) -> None:
        """
        Forget all that is known but the batches. The offset and the time index are in memory until
        they are stored.
        """
        for index in self.indexes:
            index.reset()
        self.txn_index.reset()
        self._max_timestamp_and_offset_so_far = None
        self._last_batch = _NO_BATCH

    # Its files.

    def last_modified(self) -> int:
        """
        The time of the last write to the batches, in ms; 0 if the file is gone.
        """
        try:
            return self._files.modified_ms(self.log.path)
        except FileNotFoundError:
            return 0

    def set_last_modified(self, ms: int) -> None:
        """
        Raises:
            FileNotFoundError: one of the files is missing.
        """
        for path in (self.log.path, *(index.path for index in self.indexes)):
            self._files.set_modified_ms(path, ms)

    def flush(self) -> None:
        """
        Return once everything survives a crash of the machine. Safe from any thread.
        """
        for part in self._parts:
            part.flush()

    def update_parent_dir(self, directory: Path) -> None:
        """
        Follow the directory of the log, which was renamed.
        """
        for part in self._parts:
            part.update_parent_dir(directory)

    def change_file_suffixes(self, old_suffix: str, new_suffix: str) -> None:
        """
        Rename the files so that their names end in *new_suffix* in the place of *old_suffix*.
        """
        for part in self._parts:
            part.rename_to(replace_suffix(part.path, old_suffix, new_suffix))

    def has_suffix(self, suffix: str) -> bool:
        return all(part.path.name.endswith(suffix) for part in self._parts)

    def delete_if_exists(self) -> None:
        """
        Remove the files. Reads that have begun, and later ones, find the content.

        Raises:
            KafkaStorageError: a file could not be removed; all others were tried.
        """
        run_all(part.delete_if_exists for part in self._parts)
        logger.debug("Deleted log segment %s", self.log.path)

    def close(self) -> None:
        """
        Write the last time entry, cut off all holes, make the batches durable, and close the files.

        Raises:
            KafkaStorageError: a file could not be closed properly; all others were tried.
        """
        if self._has_open_index and self._max_timestamp_and_offset_so_far is not None:
            try:
                self.append_largest_timestamp(skip_full_check=True)
            except (KafkaError, ValueError):
                logger.warning("No last time entry for %s", self.log.path, exc_info=True)
        run_all(part.close for part in (*self.indexes, self.log, self.txn_index))

    def close_handlers(self) -> None:
        """
        Close the files without writing, as the disk has failed.
        """
        for index in self.indexes:
            index.close_handler()
        self.log.close_handlers()
        self.txn_index.close()

    def __repr__(self) -> str:
        largest = self._max_timestamp_and_offset_so_far
        return (
            f"LogSegment(baseOffset={self.base_offset}, size={self.log.size}, "
            f"largestRecordTimestamp={'unknown' if largest is None else largest.timestamp})"
        )


def delete_stale_files(files: Files, directory: Path, base_offset: int, suffix: str = "") -> None:
    """
    Remove the files that an earlier segment of *base_offset* has left.
    """
    for file in (log_file, offset_index_file, time_index_file, transaction_index_file):
        path = file(directory, base_offset, suffix)
        if files.remove(path):
            logger.warning("Segment file %s existed already; deleted it", path)


def _last_offset_written(index: Index) -> int | None:
    return index.last_offset_written
