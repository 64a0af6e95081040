"""
Loading the files in the directory of a log.

::

    1  left-overs of unfinished work         removed or completed, see ``swap_files``
    2  segments                              opened; one without an offset index is recovered
    3  after a crash                         segments from the recovery point on are recovered: all
                                             batches checked, indexes rebuilt. Behind the first that
                                             has lost something, segments are set aside
    4  producers                             from the newest snapshot and the records behind it

After a clean stop nothing is checked: bytes behind the last whole batch stay there (Kafka's
LogLoader).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from barnabas.storage.errors import CorruptIndex, InvalidOffset, SegmentOffsetOverflow
from barnabas.storage.log.directory import SegmentDirectory
from barnabas.storage.log.leader_epochs import LeaderEpochFileCache
from barnabas.storage.log.loaded import LoadedLogOffsets, RecoveryReport
from barnabas.storage.producers.rebuild import rebuild_producer_state
from barnabas.storage.producers.state import ProducerStateManager
from barnabas.storage.recovery.segment_recovery import recover_segment
from barnabas.storage.recovery.swap_files import numbered
from barnabas.storage.segment.offset_metadata import LogOffsetMetadata
from barnabas.storage.segment.segment import LogSegment
from barnabas.storage.state_files.file_names import (
    DELETE_DIR_SUFFIX,
    is_index_file,
    is_log_file,
    log_file_name,
    offset_from_file_name,
    offset_index_name,
    time_index_name,
    transaction_index_name,
)
from barnabas.storage.units import LONG_MAX

logger = logging.getLogger(__name__)

T = TypeVar("T")


class LogLoader:
    """
    Opens one log, once.

    Args:
        producers: empty; the loader brings it to the state at the log's end.
        names: the result of ``clean_up``.
        log_start_offset: that of the checkpoint, 0 without one.
        recovery_point: likewise; records below it survived a crash. None if no flush is known.
        was_compacted: whether the log has ever been compacted, whatever the config is now.
    """

    def __init__(
        self,
        directory: SegmentDirectory,
        epochs: LeaderEpochFileCache,
        producers: ProducerStateManager,
        names: Sequence[str],
        *,
        had_clean_shutdown: bool,
        log_start_offset: int,
        recovery_point: int | None,
        was_compacted: bool = False,
    ) -> None:
        self.report = RecoveryReport()
        self._directory = directory
        self._segments = directory.segments
        self._epochs = epochs
        self._producers = producers
        self._had_clean_shutdown = had_clean_shutdown
        self._log_start_offset = log_start_offset
        self._recovery_point = recovery_point or 0
        self._is_flush_known = recovery_point is not None
        self._may_have_gaps = was_compacted or directory.config.compact
        self._recovered: ProducerStateManager | None = None
        """The producers as the last segment that was recovered left them."""
        self._names: Sequence[str] = names

    def load(self) -> LoadedLogOffsets:
        """
        Raises:
            CorruptRecord: the log was stopped cleanly, but cannot be read to its end.
            KafkaStorageError: the disk failed.
        """
        directory, segments = self._directory, self._segments
        self._split_on_overflow(self._load_segment_files)
        had_segments = not segments.is_empty
        if directory.path.name.endswith(DELETE_DIR_SUFFIX):
            # It is going to be deleted: its content does not matter.
            if segments.is_empty:
                directory.add_segment(0)
            recovery_point = end = 0
        else:
            recovery_point, end = self._split_on_overflow(self._recover_log)
        self._epochs.truncate_from_end_async_flush(end)
        first = segments.first_segment_base_offset or 0
        start = max(self._log_start_offset, first)
        self._epochs.truncate_from_start_async_flush(self._log_start_offset)
        self._producers.snapshots.remove_strays(segments.base_offsets)
        rebuild_producer_state(
            self._producers,
            segments,
            start,
            end,
            clock=directory.clock,
            reload_from_clean_shutdown=self._had_clean_shutdown,
        )
        self._recall_batches(self._producers)
        for segment in segments.values():
            for index in segment.indexes:
                index.release(unsynced=self.report.recovered_segments > 0)
        active = segments.active_segment
        for index in active.indexes:
            if had_segments:
                index.grow()
            else:
                index.make_file()
        place = LogOffsetMetadata(end, active.base_offset, active.size)
        return LoadedLogOffsets(start, recovery_point, place)

    def _split_on_overflow(self, work: Callable[[], T]) -> T:
        """
        Do *work*; if a segment has offsets too far from its base, split it and try again.
        """
        while True:
            try:
                return work()
            except SegmentOffsetOverflow as error:
                logger.info("%s. Split segment and retry.", error)
                overflowed = self._segments.get(error.base_offset)
                assert overflowed is not None, "the overflowed segment is one of the log"
                result = self._directory.split_overflowed_segment(overflowed)
                self._directory.sync()
                self._delete_producer_snapshots(result.deleted_segments)
                self._names = self._directory.files.names(self._directory.path)
                self.report.split_segments += 1

    # Segments.

    def _load_segment_files(self) -> None:
        directory, segments = self._directory, self._segments
        segments.close()
        segments.clear()
        names = numbered(self._names)
        first_unflushed = self._first_unflushed(
            [offset_from_file_name(name) for name in names if is_log_file(name)]
        )
        known = frozenset(names)
        opened: list[LogSegment] = []  # Added together: each change copies what is there.
        # In order: a transaction may begin in an earlier segment.
        for name in names:
            if is_index_file(name):
                if log_file_name(offset_from_file_name(name)) not in known:
                    self._remove_orphan(name)
            elif is_log_file(name):
                base_offset = offset_from_file_name(name)
                segment = directory.open_segment(
                    base_offset,
                    file_already_exists=True,
                    has_txn_index=transaction_index_name(base_offset) in known,
                )
                opened.append(segment)
                if base_offset < first_unflushed and self._needs_recovery(segment, known):
                    segments.replace((), opened)
                    opened.clear()
                    self._recover_segment(segment)
        segments.replace((), opened)

    def _first_unflushed(self, base_offsets: Sequence[int]) -> int:
        """
        The base offset of the first segment that is going to be recovered in any case, and is not
        checked before. Kafka checks these segments as well, and does not start if one lacks its
        index and another one before it is torn, not even if the log is going to be deleted.
        """
        if self._directory.path.name.endswith(DELETE_DIR_SUFFIX):
            return 0
        if self._had_clean_shutdown:
            return LONG_MAX
        return max((base for base in base_offsets if base <= self._recovery_point), default=0)

    def _remove_orphan(self, name: str) -> None:
        path = self._directory.path / name
        logger.warning("Found an orphaned index file %s, with no log file", path)
        self._directory.files.remove(path)

    @staticmethod
    def _needs_recovery(segment: LogSegment, names: frozenset[str]) -> bool:
        """
        Whether a segment lacks its offset index, or has a corrupt transaction index.

        Args:
            names: of the files that there are.
        """
        base = segment.base_offset
        try:
            segment.sanity_check(
                has_offset_index_file=offset_index_name(base) in names,
                time_index_file_newly_created=time_index_name(base) not in names,
            )
        except (FileNotFoundError, CorruptIndex) as error:
            logger.warning("%s. Recovering the segment.", error)
            return True
        return False

    def _recover_segment(self, segment: LogSegment) -> int:
        """
        Check all batches of a segment and rebuild its indexes; return how many bytes were cut off.

        The producers are those of the segments before it. Their snapshot at its end lets the
        recovery of the next segment begin there.

        That snapshot is synced a little later. If the machine crashes before, the snapshot may be
        missing or torn, as its checksum then shows. The next start takes an older one, which exists
        as long as the segments behind it do, and reads these.
        """
        directory = self._directory
        producers = ProducerStateManager(
            directory.topic_partition,
            self._producers.snapshots,
            self._producers.config,
            directory.clock,
        )
        rebuild_producer_state(
            producers,
            self._segments,
            self._log_start_offset,
            segment.base_offset,
            clock=directory.clock,
        )
        self._recall_batches(producers)
        truncated = recover_segment(segment, producers, self._epochs)
        if snapshot := producers.take_snapshot(sync=False):
            directory.deferred.soon(partial(self._producers.snapshots.flush, snapshot.offset))
        self._recovered = producers
        self.report.recovered_segments += 1
        self.report.recovered_bytes += segment.size
        self.report.truncated_bytes += truncated
        return truncated

    def _recall_batches(self, producers: ProducerStateManager) -> None:
        """
        Add the batches that recovery has found to *producers*, which come from a snapshot.

        A producer whose broker was killed sends all its batches in flight again, and a snapshot has
        only the last one of those that were stored. Kafka does not recover the others and refuses
        them, so that the producer gives up.
        """
        if self._recovered is not None:
            producers.recall_batches(self._recovered.active_producers)

    # The log.

    def _recover_log(self) -> tuple[int, int]:
        """
        Recover the log up to its end; return its recovery point and its end.
        """
        directory, segments = self._directory, self._segments
        if not self._had_clean_shutdown:
            self._recover_unflushed()
        end = self._end_if_behind_start()
        if segments.is_empty:
            directory.add_segment(self._log_start_offset)
        if end is None:
            end = segments.active_segment.read_next_offset()
        elif self._had_clean_shutdown:
            return end, end
        # The recovered records may be in memory only: only a flush moves the recovery point up.
        return min(self._recovery_point, end), end

    def _recover_unflushed(self) -> None:
        unflushed = list(self._segments.values_between(self._recovery_point, LONG_MAX))
        if unflushed:
            self._finish_closing(unflushed[0])
        for number, segment in enumerate(unflushed, 1):
            # After a kill nearly every log has one. The broker says how many there were.
            logger.debug(
                "%s: recovering unflushed segment %d (%d of %d)",
                self._directory.topic_partition,
                segment.base_offset,
                number,
                len(unflushed),
            )
            following = unflushed[number:]
            indexed = segment.last_offset_indexed() if following else None
            truncated = self._recover_unflushed_segment(segment)
            if not following:
                return
            end = segment.read_next_offset()
            if truncated:
                reason = f"the crash damaged records from offset {end} on"
            elif self._has_lost_records(indexed, end, following[0].base_offset):
                reason = (
                    f"the crash lost the records from offset {end} to {indexed}: an index has them,"
                    f" and the last known flush covers offsets below {self._recovery_point}"
                )
            else:
                continue
            self._set_aside(following, reason)
            return

    def _finish_closing(self, unflushed: LogSegment) -> None:
        """
        Recover the segment before *unflushed* if it was closed, and nothing flushed after that. Its
        batches are on the disk, but a time index that ends with zeros would say that they are as
        old as time, and retention would delete them.
        """
        if unflushed.base_offset < self._recovery_point:
            return
        closed = self._segments.lower_segment(unflushed.base_offset)
        if closed is not None and closed.ends_with_empty_index_entries():
            logger.info("%s: closing of %s was not complete", self._directory.path, closed)
            self._recover_segment(closed)

    def _recover_unflushed_segment(self, segment: LogSegment) -> int:
        # An fsync may have failed in the broker before. The page cache then has records that the
        # next flush would not write, and a loss of power would take.
        rewritten = segment.log.rewrite_lost()
        if rewritten:
            logger.warning(
                "Wrote %d bytes of %s again: the page cache had records that the disk lacked",
                rewritten,
                segment.log.path,
            )
        try:
            return self._recover_segment(segment)
        except InvalidOffset:
            logger.warning("Found invalid offset during recovery. Emptying %s", segment)
            truncated = segment.truncate_to(segment.base_offset)
            self.report.truncated_bytes += truncated
            return truncated

    def _has_lost_records(self, indexed: int | None, end: int, next_base: int) -> bool:
        """
        Return True if a machine crash provably took records between a segment and the next one.

        A crash may keep a later segment and lose the end of an earlier one. The gap alone proves
        nothing: compaction leaves the same, here or on another broker. It proves a loss only if
        an index of the segment names an offset in the gap, which a compacted segment never has,
        and the gap is newer than the last flush that a checkpoint knows. Otherwise the log goes
        on behind the gap, as in Kafka.

        Args:
            indexed: the last offset that the indexes had before recovery.
        """
        if self._may_have_gaps or not self._is_flush_known or indexed is None:
            return False
        return self._recovery_point <= end <= indexed < next_base

    def _set_aside(self, segments: Sequence[LogSegment], reason: str) -> None:
        self._directory.set_aside(segments, reason)
        self._delete_producer_snapshots(segments)
        self.report.set_aside_segments += len(segments)

    def _end_if_behind_start(self) -> int | None:
        """
        The end of the log. If that is below its start, as files were lost, all segments are set
        aside and the result is None.
        """
        last = self._segments.last_segment
        if last is None:
            return None
        end = last.read_next_offset()
        if end >= self._log_start_offset:
            return end
        logger.warning(
            "%s: setting all segments aside because logEndOffset (%d) is smaller than"
            " logStartOffset %d. This could happen if segment files were deleted from the file"
            " system.",
            self._directory.topic_partition,
            end,
            self._log_start_offset,
        )
        segments = list(self._segments.values())
        self._directory.set_aside(segments, "the log starts behind its end")
        self.report.set_aside_segments += len(segments)
        self._epochs.clear_and_flush()
        self._producers.truncate_fully_and_start_at(self._log_start_offset)
        return None

    def _delete_producer_snapshots(self, segments: Sequence[LogSegment]) -> None:
        self._directory.delete_producer_snapshots(self._producers.snapshots, segments)
