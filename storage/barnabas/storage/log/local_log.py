"""
The segments of a log as one row of bytes: where it ends, how far it is on the disk.

::

    segment 0        segment 6        segment 12 (active)
    |-----------|----|-----------|----|-----------|
                              ^                   ^
                              recovery point      next offset, and its place in the active segment

What the records mean to producers, consumers and transactions is the affair of ``log``.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

from barnabas.protocol.named_tuple import NamedTuple
from barnabas.storage.errors import KafkaError, KafkaStorageError
from barnabas.storage.log.directory import SegmentDirectory
from barnabas.storage.log.reads import find_offset, read_segments
from barnabas.storage.segment.fetch_data import FetchDataInfo
from barnabas.storage.segment.offset_metadata import LogOffsetMetadata
from barnabas.storage.segment.segment import LogSegment
from barnabas.storage.state_files.file_names import (
    log_file,
    offset_index_file,
    time_index_file,
    transaction_index_file,
)
from barnabas.storage.threads.deferred_work import run_all

logger = logging.getLogger(__name__)


class Flush(NamedTuple):
    """
    What a flush has to make durable.
    """

    start: int
    end: int
    segments: Sequence[LogSegment]
    has_new_segments: bool
    truncations: int
    """How often the log had been truncated when the flush was planned."""


class LocalLog:
    """
    Segments, the end of the log, and its recovery point.

    Invariants:

    1. ``next_offset_metadata`` is the end of the last batch in the active segment.
    2. What is below ``recovery_point`` survives a crash of the machine.
    3. There is always an active segment, until the log is deleted.

    The log that owns it holds its lock for everything but ``read`` and ``flush``.
    """

    def __init__(
        self,
        directory: SegmentDirectory,
        recovery_point: int,
        next_offset_metadata: LogOffsetMetadata,
    ) -> None:
        self.directory = directory
        self.segments = directory.segments
        self.recovery_point = recovery_point
        self.next_offset_metadata = next_offset_metadata
        self.last_flush_time_ms = directory.clock.now_ms()
        self._truncations = 0
        self._first_closed: int | None = None
        """Of the segments that were closed and not flushed since, the base of the first."""

    @property
    def topic_partition(self) -> object:
        return self.directory.topic_partition

    @property
    def dir(self) -> Path:
        return self.directory.path

    @property
    def log_end_offset(self) -> int:
        return self.next_offset_metadata.message_offset

    def update_log_end_offset(self, end_offset: int) -> None:
        active = self.segments.active_segment
        self.next_offset_metadata = LogOffsetMetadata(
            end_offset, active.base_offset, active.log.size
        )
        self.recovery_point = min(self.recovery_point, end_offset)

    # Writing.

    def append(self, last_offset: int, records: memoryview, active: LogSegment) -> None:
        """
        Write batches to the active segment; none of it if that fails.

        Raises:
            KafkaStorageError: the disk failed.
        """
        log = active.log
        size = log.size
        try:
            active.append(last_offset, records)
        except KafkaError:
            self._cut_back(active, size)
            raise
        self.next_offset_metadata = LogOffsetMetadata(last_offset + 1, active.base_offset, log.size)

    @staticmethod
    def _cut_back(segment: LogSegment, size: int) -> None:
        """
        Remove what a failed append has left, so that it does not come to light after a restart.

        It may be too late for that. Then recovery will find the part that is whole batches, which
        nobody was told of.
        """
        try:
            segment.log.truncate_to(size)
        except (KafkaStorageError, ValueError):
            logger.warning("Cannot cut %s back to %d bytes", segment, size, exc_info=True)

    def roll(self, expected_next_offset: int) -> LogSegment:
        """
        Begin a new segment at the end of the log, or at *expected_next_offset* if that is higher.

        Raises:
            KafkaError: there is such a segment already, or a later one.
        """
        new_offset = max(expected_next_offset, self.log_end_offset)
        active = self.segments.active_segment
        if active.base_offset == new_offset and active.size == 0:
            # An index of so few entries that it is full when it is empty (KAFKA-6388).
            logger.warning(
                "%s: rolling the empty segment at %d: its indexes have room for %d and %d entries",
                self.topic_partition,
                new_offset,
                active.offset_index.max_entries,
                active.time_index.max_entries,
            )
            segment = self.directory.create_and_delete(new_offset, active, "log roll")
        else:
            if new_offset <= active.base_offset:
                raise KafkaError(
                    f"Trying to roll a new log segment for topic partition {self.topic_partition} "
                    f"with start offset {new_offset} =max(provided offset = {expected_next_offset},"
                    f" LEO = {self.log_end_offset}), but the active segment is {active}."
                )
            self._remove_stale_files(new_offset)
            active.on_become_inactive_segment()
            if self._first_closed is None:
                self._first_closed = active.base_offset
            segment = self.directory.add_segment(new_offset)
        self.update_log_end_offset(self.log_end_offset)
        logger.info("%s: rolled new log segment at offset %d", self.topic_partition, new_offset)
        return segment

    def _remove_stale_files(self, base_offset: int) -> None:
        for name in (log_file, offset_index_file, time_index_file, transaction_index_file):
            path = name(self.dir, base_offset)
            if self.directory.files.remove(path):
                logger.warning("Newly rolled segment file %s existed already; deleted it", path)

    def begin_flush(self, offset: int | None, *, include_offset: bool = False) -> Flush | None:
        """
        Plan a flush of everything below *offset*, or of the whole log; None if the disk has it.

        Args:
            include_offset: also make a segment that begins at *offset* known to the disk.
        """
        if offset is None or offset > self.log_end_offset:
            offset = self.log_end_offset  # The log may have been truncated since somebody asked.
        end = offset + 1 if include_offset else offset
        start = self.recovery_point
        if self._first_closed is not None and self._first_closed < end:
            # Closing a segment has written to its indexes, after its batches were flushed perhaps.
            start = min(start, self._first_closed)
            self._first_closed = None
        if end <= start:
            return None
        segments = self.segments.values_between(start, end)
        has_new = any(segment.base_offset >= self.recovery_point for segment in segments)
        return Flush(start, offset, segments, has_new, self._truncations)

    def flush(self, flush: Flush) -> None:
        """
        Return once what was planned survives a crash of the machine. No lock is needed.

        Raises:
            KafkaStorageError: the disk failed; what it holds is not known.
        """
        for segment in flush.segments:
            self._flush_segment(segment)
        if flush.has_new_segments:
            self.directory.files.sync_directory(self.dir)

    def _flush_segment(self, segment: LogSegment) -> None:
        try:
            segment.flush()
        except KafkaStorageError:
            # Retention may have removed the segment in the meantime, and its files with it.
            if self.segments.get(segment.base_offset) is segment:
                raise

    def flush_again(self, flush: Flush) -> None:
        """
        Let the next flush begin where this one did, which could not be done.
        """
        self._first_closed = flush.start

    def mark_flushed(self, flush: Flush) -> None:
        """
        Move the recovery point, unless something was truncated since the flush was planned.
        """
        if flush.truncations == self._truncations and flush.end > self.recovery_point:
            self.recovery_point = flush.end
            self.last_flush_time_ms = self.directory.clock.now_ms()

    # Reading.

    def read(
        self,
        start_offset: int,
        max_length: int,
        *,
        min_one_message: bool,
        bound: LogOffsetMetadata,
        include_aborted_txns: bool = False,
        nowait: bool = False,
    ) -> FetchDataInfo:
        """
        See ``read_segments``.
        """
        return read_segments(
            self.segments,
            start_offset,
            max_length,
            min_one_message=min_one_message,
            bound=bound,
            end=self.next_offset_metadata,
            include_aborted_txns=include_aborted_txns,
            nowait=nowait,
        )

    def convert_to_offset_metadata(self, offset: int, *, nowait: bool = False) -> LogOffsetMetadata:
        """
        Where *offset* is.

        Raises:
            OffsetOutOfRange: it is not in the log.
            WouldBlock: with *nowait*, the page cache lacks what has to be looked at.
        """
        return find_offset(self.segments, offset, self.next_offset_metadata, nowait=nowait)

    # Shortening.

    def truncate_to(self, target_offset: int) -> Sequence[LogSegment]:
        """
        Remove all batches that reach *target_offset* or go beyond it; return segments that went.
        """
        self._truncations += 1
        going = self.segments.filter(lambda segment: segment.base_offset > target_offset)
        self.directory.remove_and_delete(going, "log truncation")
        self.segments.active_segment.truncate_to(target_offset)
        self.update_log_end_offset(target_offset)
        return going

    def truncate_fully_and_start_at(self, new_offset: int) -> None:
        """
        Remove everything and begin anew at *new_offset*.
        """
        self._truncations += 1
        segments = self.segments.values()
        self.directory.remove_and_delete(segments[:-1], "log truncation")
        self.directory.create_and_delete(new_offset, segments[-1], "log truncation")
        self.update_log_end_offset(new_offset)

    def delete_all_segments(self) -> None:
        """
        Remove all segments and their files, as the log itself goes.
        """
        going = self.segments.values()
        self.segments.clear()
        run_all(segment.delete_if_exists for segment in going)
