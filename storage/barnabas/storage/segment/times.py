"""
What a segment knows of time.

Two times matter: that of its first batch, from which on it grows old until the log goes on in
another segment; and the largest one of all its batches, by which retention lets it go.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

import threading
from pathlib import Path
from typing import Final

from barnabas.storage.clock import Clock
from barnabas.storage.fs.interface import Files
from barnabas.storage.index.time_index import TimestampOffset
from barnabas.storage.segment.files import SegmentFiles

_NEVER: Final = 2**63 - 1


class SegmentTimes(SegmentFiles):
    """
    The files of a segment, and the times of what is in them.

    Invariants:

    1. The largest timestamp goes with the last offset of the earliest batch that has it.
    2. It is read from the time index when it is first asked for, and then kept up. Who only wants
       to know, as retention does with each log, leaves the index closed.
    3. The time of the first batch is read from the file when it is first asked for, and then kept.
    """

    __slots__ = (
        "_clock",
        "_created",
        "_max_timestamp_and_offset_so_far",
        "_max_timestamp_guard",
        "_rolling_based_timestamp",
    )

    def __init__(
        self,
        files: Files,
        directory: Path,
        base_offset: int,
        clock: Clock,
        *,
        max_index_size: int,
        file_suffix: str = "",
        file_already_exists: bool = False,
        init_file_size: int = 0,
        preallocate: bool = False,
        has_txn_index: bool | None = None,
    ) -> None:
        super().__init__(
            files,
            directory,
            base_offset,
            max_index_size=max_index_size,
            file_suffix=file_suffix,
            file_already_exists=file_already_exists,
            init_file_size=init_file_size,
            preallocate=preallocate,
            has_txn_index=has_txn_index,
        )
        self._clock = clock
        self._created = clock.now_ms()
        self._rolling_based_timestamp: int | None = None
        self._max_timestamp_and_offset_so_far: TimestampOffset | None = None
        self._max_timestamp_guard = threading.Lock()

    # The largest.

    def read_max_timestamp_and_offset_so_far(self) -> TimestampOffset:
        """
        The largest timestamp, -1 if there is none, and the last offset of the batch that has it.

        Opens the time index the first time.
        """
        if (known := self._max_timestamp_and_offset_so_far) is not None:
            return known
        with self._max_timestamp_guard:
            # An append may have come first with a larger one.
            if self._max_timestamp_and_offset_so_far is None:
                self._max_timestamp_and_offset_so_far = self.time_index.last_entry
            return self._max_timestamp_and_offset_so_far

    def note_timestamp(self, timestamp: int, offset: int) -> None:
        """
        A batch whose last offset is *offset* has *timestamp* as its largest.
        """
        if timestamp > self.max_timestamp_so_far():
            self._max_timestamp_and_offset_so_far = TimestampOffset(timestamp, offset)

    def max_timestamp_so_far(self) -> int:
        return self.read_max_timestamp_and_offset_so_far().timestamp

    def largest_record_timestamp(self) -> int | None:
        """
        The largest timestamp of a record, if any has one.
        """
        timestamp = self._peek_max_timestamp()
        return timestamp if timestamp >= 0 else None

    def largest_timestamp(self) -> int:
        """
        The largest timestamp of a record; if none has one, when the file was last written.
        """
        timestamp = self._peek_max_timestamp()
        return timestamp if timestamp >= 0 else self.last_modified()

    def _peek_max_timestamp(self) -> int:
        known = self._max_timestamp_and_offset_so_far
        if known is None:
            with self._max_timestamp_guard:
                known = self._max_timestamp_and_offset_so_far
                if known is None:
                    known = self._lazy_time_index.peek(lambda index: index.last_entry)
                    self._max_timestamp_and_offset_so_far = known
        return known.timestamp

    def append_largest_timestamp(self, *, skip_full_check: bool = False) -> None:
        """
        Write the largest timestamp so far into the time index, if it is not the last there.

        Raises: as ``TimeIndex.maybe_append``.
        """
        largest = self.read_max_timestamp_and_offset_so_far()
        self.time_index.maybe_append(
            largest.timestamp, largest.offset, skip_full_check=skip_full_check
        )

    # The first.

    def time_waited_for_roll(self, now: int, message_timestamp: int) -> int:
        """
        How old the segment is, in ms: by the timestamps of its first batch and of the next one.

        If the first batch has none, by the clock since the segment was opened.
        """
        first = self._load_first_batch_timestamp()
        if first is not None and first >= 0:
            return message_timestamp - first
        return now - self._created

    def first_batch_timestamp(self) -> int:
        """
        The largest timestamp of the first batch; if there is none, a time that never comes.
        """
        first = self._load_first_batch_timestamp()
        return first if first is not None and first >= 0 else _NEVER

    def _load_first_batch_timestamp(self) -> int | None:
        if self._rolling_based_timestamp is None:
            for header in self.log.headers():
                self._rolling_based_timestamp = header.max_timestamp
                break
        return self._rolling_based_timestamp

    # After truncation.

    def _note_truncation(self) -> None:
        """
        Batches were cut off: look for the largest timestamp again; with none left, begin anew.
        """
        if self.log.size == 0:
            self._created = self._clock.now_ms()
            self._rolling_based_timestamp = None
        if self.max_timestamp_so_far() >= 0:
            self._max_timestamp_and_offset_so_far = self._read_largest_timestamp()

    def _read_largest_timestamp(self) -> TimestampOffset:
        last_entry = self.time_index.last_entry
        position = self.offset_index.lookup(last_entry.offset).position
        after = self.log.largest_timestamp_after(position)
        if after.timestamp > last_entry.timestamp:
            return TimestampOffset(after.timestamp, after.offset)
        return last_entry
