"""
The segments of a log as one sequence of batches, with its end and its recovery point.

::

    segment 0        segment 6        segment 12 (active)
    |-----------|----|-----------|----|-----------|
                              ^                   ^
                              recovery point      next offset, and its place in the active segment

This layer does not know producers, consumers or transactions (Kafka's LocalLog).
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence

from barnabas.protocol.structs import NamedTuple
from barnabas.storage.errors import KafkaError, KafkaStorageError, TooManyOpenFiles
from barnabas.storage.log.directory import SegmentDirectory
from barnabas.storage.segment.offset_metadata import LogOffsetMetadata
from barnabas.storage.segment.segment import LogSegment, delete_stale_files
from barnabas.storage.threads.deferred_work import run_all

logger = logging.getLogger(__name__)


class _Flush(NamedTuple):
    """
    The plan of a flush: the segments to make durable, and the offsets that they cover.
    """

    start: int
    end: int
    segments: Sequence[LogSegment]
    has_new_segments: bool
    truncations: int
    """The number of truncations before the plan."""


class LocalLog:
    """
    Segments, the end of the log, and its recovery point.

    Invariants:

    1. ``next_offset_metadata`` is the end of the last batch in the active segment.
    2. Records below ``recovery_point`` survive a crash of the machine.
    3. There is always an active segment, until the log is deleted.

    Every method but ``flush`` is called with the lock held.
    """

    def __init__(
        self,
        directory: SegmentDirectory,
        recovery_point: int,
        next_offset_metadata: LogOffsetMetadata,
        lock: threading.RLock,
    ) -> None:
        """
        Args:
            lock: that of the log, which guards all changes.
        """
        self.directory = directory
        self.segments = directory.segments
        self.recovery_point = recovery_point
        self.next_offset_metadata = next_offset_metadata
        self.flushing = threading.Lock()
        """Held during a flush: the directory is not renamed meanwhile."""
        self._lock = lock
        self._truncations = 0
        self._first_closed: int | None = None
        """The base offset of the first segment that was closed and not flushed since."""

    @property
    def log_end_offset(self) -> int:
        return self.next_offset_metadata.message_offset

    def update_log_end_offset(self, end_offset: int) -> None:
        active = self.segments.active_segment
        self.next_offset_metadata = LogOffsetMetadata(
            end_offset, active.base_offset, active.log.size
        )
        self.recovery_point = min(self.recovery_point, end_offset)

    def raise_recovery_point(self, offset: int) -> None:
        self.recovery_point = max(self.recovery_point, offset)

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
        Remove the bytes of a failed append, so that a restart does not find them.

        If that fails too, recovery finds the whole batches among them. They were not acknowledged.
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
        partition = self.directory.topic_partition
        if active.base_offset == new_offset and active.size == 0:
            # An index of so few entries that it is full when it is empty (KAFKA-6388).
            logger.warning(
                "%s: rolling the empty segment at %d: its indexes have room for %d and %d entries",
                partition,
                new_offset,
                active.offset_index.max_entries,
                active.time_index.max_entries,
            )
            segment = self.directory.create_and_delete(new_offset, active, "log roll")
        else:
            if new_offset <= active.base_offset:
                raise KafkaError(
                    f"Trying to roll a new log segment for topic partition {partition} "
                    f"with start offset {new_offset} =max(provided offset = {expected_next_offset},"
                    f" LEO = {self.log_end_offset}), but the active segment is {active}."
                )
            delete_stale_files(self.directory.files, self.directory.path, new_offset)
            active.on_become_inactive_segment()
            if self._first_closed is None:
                self._first_closed = active.base_offset
            segment = self.directory.add_segment(new_offset)
        self.update_log_end_offset(self.log_end_offset)
        logger.info("%s: rolled new log segment at offset %d", partition, new_offset)
        return segment

    # Flushing.

    def flush(self, offset: int | None, *, include_offset: bool = False) -> bool:
        """
        Return once all records below *offset*, by default all, survive a crash of the machine.

        One thread flushes at a time. Appends continue meanwhile: the lock is held only to plan the
        flush and to note its end.

        Args:
            include_offset: also make a segment durable that begins at *offset*.

        Returns:
            Whether the recovery point has moved; not if the log was truncated meanwhile.

        Raises:
            TooManyOpenFiles: a file cannot be opened; the next flush begins where this one did.
            KafkaStorageError: the disk failed; its content is not known.
        """
        with self.flushing:
            with self._lock:
                flush = self._plan_flush(offset, include_offset=include_offset)
            if flush is None:
                return False
            try:
                for segment in flush.segments:
                    self._flush_segment(segment)
                if flush.has_new_segments:
                    self.directory.sync()
            except TooManyOpenFiles:
                with self._lock:
                    self._first_closed = flush.start
                raise
            with self._lock:
                moves = flush.truncations == self._truncations and flush.end > self.recovery_point
                if moves:
                    self.recovery_point = flush.end
                return moves

    def _plan_flush(self, offset: int | None, *, include_offset: bool) -> _Flush | None:
        if offset is None or offset > self.log_end_offset:
            offset = self.log_end_offset  # The log may have been truncated since the request.
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
        return _Flush(start, offset, segments, has_new, self._truncations)

    def _flush_segment(self, segment: LogSegment) -> None:
        try:
            segment.flush()
        except KafkaStorageError:
            # Retention may have removed the segment in the meantime, and its files with it.
            if self.segments.get(segment.base_offset) is segment:
                raise

    # Shortening.

    def truncate_to(self, target_offset: int) -> Sequence[LogSegment]:
        """
        Remove all batches that reach *target_offset* or beyond; return the removed segments.
        """
        self._truncations += 1
        going = self.segments.filter(lambda segment: segment.base_offset > target_offset)
        self.directory.remove_and_delete(going, "log truncation")
        self.segments.active_segment.truncate_to(target_offset)
        self.update_log_end_offset(target_offset)
        return going

    def truncate_fully_and_start_at(self, new_offset: int) -> None:
        """
        Remove all segments, and begin one at *new_offset*.
        """
        self._truncations += 1
        segments = self.segments.values()
        self.directory.remove_and_delete(segments[:-1], "log truncation")
        self.directory.create_and_delete(new_offset, segments[-1], "log truncation")
        self.update_log_end_offset(new_offset)

    def delete_all_segments(self) -> None:
        """
        Remove all segments and their files, as the log is deleted.
        """
        going = self.segments.values()
        self.segments.clear()
        run_all(segment.delete_if_exists for segment in going)
