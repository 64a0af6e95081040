"""
The log of a partition (Kafka's UnifiedLog, without tiered storage).

::

    Log --+-- LocalLog                segments, the end of the log, its recovery point
          |    +-- SegmentDirectory   creates, replaces and deletes the files of segments
          +-- Watermarks              log start offset, last stable offset, high watermark
          +-- LogAppender             checks batches and writes them
          +-- ProducerStateManager    sequences and transactions
          +-- LeaderEpochFileCache    leader epochs and their start offsets
          +-- LogIdentity             the id of the topic

``recovery.opening`` opens a log. Rules that decide and change nothing are in ``rolling``,
``retention`` and ``validator``.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from uuid import UUID

from barnabas.protocol.errors import OffsetOutOfRange, PolicyViolation
from barnabas.protocol.records.batch import read_batch
from barnabas.storage.config.log_config import LogConfig
from barnabas.storage.errors import KafkaStorageError, TooManyOpenFiles
from barnabas.storage.fs.log_dir_failure import LogDirFailureChannel
from barnabas.storage.index.txn_index import AbortedTxn
from barnabas.storage.log.append import LogAppender
from barnabas.storage.log.append_info import LogAppendInfo
from barnabas.storage.log.directory import SegmentDirectory
from barnabas.storage.log.fetch_isolation import FetchIsolation
from barnabas.storage.log.identity import LogIdentity
from barnabas.storage.log.leader_epochs import LeaderEpochFileCache, OffsetAndEpoch
from barnabas.storage.log.loaded import LoadedLogOffsets, RecoveryReport
from barnabas.storage.log.local_log import LocalLog
from barnabas.storage.log.offsets_by_time import fetch_offset_by_timestamp
from barnabas.storage.log.reads import collect_aborted_txns, out_of_range, read_segments
from barnabas.storage.log.retention import Decision, LogState, Reason, decide, rules_of
from barnabas.storage.log.validator import Examined, LogValidator
from barnabas.storage.log.watermarks import LogStartOffsetIncrementReason, Watermarks
from barnabas.storage.producers.append import TV_UNKNOWN
from barnabas.storage.producers.append_origin import AppendOrigin
from barnabas.storage.producers.entry import SENTINEL, LastRecord, ProducerState, VerificationGuard
from barnabas.storage.producers.rebuild import rebuild_producer_state
from barnabas.storage.producers.snapshots import SnapshotFile
from barnabas.storage.producers.state import ProducerStateManager
from barnabas.storage.segment.fetch_data import FetchDataInfo
from barnabas.storage.segment.offset_metadata import LogOffsetMetadata
from barnabas.storage.segment.records import TimestampAndOffset
from barnabas.storage.segment.segment import LogSegment
from barnabas.storage.state_files.file_names import log_dir_of
from barnabas.storage.threads.turns import SHORT_TURNS, ThreadTurns

logger = logging.getLogger(__name__)

# A member of an enum takes as long to look up as a call, in each read.
_HIGH_WATERMARK: Final = FetchIsolation.HIGH_WATERMARK
_TXN_COMMITTED: Final = FetchIsolation.TXN_COMMITTED

HIGH_WATERMARK: Final = -1
"""In a request to delete records: all up to the high watermark."""


class Log:
    """
    The log of one partition.

    Invariants:

    1. Offsets grow along the log. Records stay as they were appended, until retention, compaction
       or truncation removes them.
    2. A read sees whole appends, in their order.
    3. After an error of the disk the log directory is offline, and all its logs refuse all work.

    Every method that uses files raises ``KafkaStorageError`` if the disk has failed, or if the log
    is closed.

    Safe from any thread. One lock guards all changes; except by ``close``, it is never held during
    a sync to the disk. Reading needs no lock.
    """

    def __init__(
        self,
        directory: SegmentDirectory,
        loaded: LoadedLogOffsets,
        producers: ProducerStateManager,
        epochs: LeaderEpochFileCache,
        *,
        failures: LogDirFailureChannel,
        topic_id: UUID | None,
        high_watermark: int,
        report: RecoveryReport,
    ) -> None:
        """
        See ``recovery.opening``.
        """
        self.topic_partition = directory.topic_partition
        self.parent_dir = log_dir_of(directory.path)
        """The log directory."""
        self.segments = directory.segments
        self.leader_epochs = epochs
        self.producers = producers
        """``maybe_start_transaction_verification`` and others take the lock before they ask it."""
        self.recovery_report = report
        self.next_producer_check_ms = 0
        """When to look for expired producers next; 0 until that has been planned."""
        self.last_flush_time_ms = directory.clock.now_ms()
        self._lock = threading.RLock()
        self._closed = False
        self._failures = failures
        self._clock = directory.clock
        self._directory = directory
        self._identity = LogIdentity(directory, topic_id)
        self._local = LocalLog(
            directory, loaded.recovery_point, loaded.next_offset_metadata, self._lock
        )
        self._watermarks = Watermarks(
            self._local,
            producers,
            self._lock,
            log_start_offset=loaded.log_start_offset,
            high_watermark=high_watermark,
        )
        self._appender: LogAppender | None = None
        """None until the first append: many logs never get one."""
        self._warned_of: int | None = None
        """The base offset of the last segment with timestamps in the future, which was logged."""

    # Its state.

    @property
    def topic_id(self) -> UUID | None:
        """
        The id of the topic, once it is known.
        """
        return self._identity.topic_id

    @property
    def dir(self) -> Path:
        return self._directory.path

    @property
    def config(self) -> LogConfig:
        return self._directory.config

    @property
    def log_start_offset(self) -> int:
        return self._watermarks.log_start_offset

    @property
    def log_end_offset(self) -> int:
        """
        The offset that the next record gets.
        """
        return self._local.next_offset_metadata.message_offset

    @property
    def log_end_offset_metadata(self) -> LogOffsetMetadata:
        return self._local.next_offset_metadata

    @property
    def high_watermark(self) -> int:
        return self._watermarks.high_watermark

    @property
    def last_stable_offset(self) -> int:
        return self._watermarks.last_stable_offset

    @property
    def recovery_point(self) -> int:
        """
        Records below it survive a crash of the machine.
        """
        return self._local.recovery_point

    @property
    def size(self) -> int:
        """
        Bytes of all batches.
        """
        return self.segments.size_in_bytes

    @property
    def active_segment(self) -> LogSegment:
        return self.segments.active_segment

    @property
    def first_segment_base_offset(self) -> int:
        return self.segments.base_offsets[0]

    def largest_record_timestamp(self) -> int | None:
        """
        The largest timestamp of a record, in ms, if any has one.
        """
        timestamps = (segment.largest_record_timestamp() for segment in self.segments.values())
        return max((found for found in timestamps if found is not None), default=None)

    # Appending.

    def append_as_leader(
        self,
        records: memoryview,
        leader_epoch: int,
        *,
        at_once: bool = False,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        verification_guard: VerificationGuard = SENTINEL,
        transaction_version: int = TV_UNKNOWN,
        examined: Examined | None = None,
    ) -> LogAppendInfo:
        """
        Give batches their offsets and append them. Their buffer, which must be writable, is
        changed, and is free again when this returns.

        The high watermark stays where it is: ``update_high_watermark`` acknowledges the append.

        Args:
            at_once: do not append a batch that takes long to examine.
            verification_guard: of the first batch of a transaction.
            transaction_version: of a marker.
            examined: the result of ``examine`` for the batch.

        Raises:
            BatchTakesLong: it is such a batch, or was examined for another configuration.
            CorruptMessage: framing or checksum is wrong.
            InvalidRecord: the batch, or there being several, is not acceptable.
            RecordValidationError: some records are not acceptable.
            MessageTooLarge, RecordListTooLarge: the batch is larger than the topic, or a segment,
                allows.
            InvalidProducerEpoch, OutOfOrderSequenceNumber, InvalidTxnState,
            TransactionCoordinatorFenced: the producer, or the coordinator, may not append this now.
            UnknownServerError: the batch is wrong in a way for which Kafka has no answer.
            OffsetsOutOfOrder, UnexpectedAppendOffset: batches of the origin RAFT_LEADER, which have
                their offsets, do not follow each other or the log.
        """
        if self._closed or self._failures.any_offline:
            self._check_usable()
        try:
            if self._identity.is_unwritten:
                self._identity.write()
            return (self._appender or self._new_appender()).append(
                records,
                leader_epoch,
                origin,
                verification_guard=verification_guard,
                transaction_version=transaction_version,
                at_once=at_once,
                examined=examined,
            )
        except KafkaStorageError as error:
            self._report("appending records to", error)
            raise

    def examine(self, records: memoryview) -> Examined:
        """
        Do the long part of appending the batch of a client, in a thread that has the time.

        Raises:
            KafkaError: the batch is not acceptable, as for ``append_as_leader``.
        """
        validator = LogValidator(self.topic_partition, self.config)
        with SHORT_TURNS:
            return validator.examine(
                read_batch(records),
                origin=AppendOrigin.CLIENT,
                now_ms=self._clock.now_ms(),
                turns=ThreadTurns(),
            )

    def _new_appender(self) -> LogAppender:
        with self._lock:
            # Another thread may have been first.
            if self._appender is None:
                self._appender = LogAppender(
                    self._local,
                    self.producers,
                    self._watermarks,
                    self.leader_epochs,
                    lock=self._lock,
                    clock=self._clock,
                    roll=self._roll,
                )
            return self._appender

    # Reading.

    def read(
        self,
        start_offset: int,
        max_length: int,
        isolation: FetchIsolation,
        min_one_message: bool,
        *,
        nowait: bool = False,
    ) -> FetchDataInfo:
        """
        Find up to *max_length* bytes, from the batch with *start_offset* on. They may end within a
        batch. No lock is needed.

        Args:
            min_one_message: at least the first batch, also if it is larger than *max_length*.
            nowait: fail rather than read from the disk.

        Raises:
            OffsetOutOfRange: the log does not have that offset.
            WouldBlock: with *nowait*, the page cache lacks some of the bytes that are searched.
        """
        if self._closed or self._failures.any_offline:
            self._check_usable()
        watermarks = self._watermarks
        end = self._local.next_offset_metadata
        if start_offset < watermarks.log_start_offset:
            raise out_of_range(self.segments, start_offset, watermarks.log_start_offset, end)
        try:
            if isolation is _HIGH_WATERMARK:
                bound = watermarks.fetch_high_watermark_metadata(nowait=nowait)
            elif isolation is _TXN_COMMITTED:
                bound = watermarks.fetch_last_stable_offset_metadata(nowait=nowait)
            else:
                bound = end
            return read_segments(
                self.segments,
                start_offset,
                max_length,
                min_one_message=min_one_message,
                bound=bound,
                end=self._local.next_offset_metadata,
                include_aborted_txns=isolation is _TXN_COMMITTED,
                nowait=nowait,
            )
        except KafkaStorageError as error:
            self._report("reading from", error)
            raise

    def fetch_offset_by_timestamp(self, target: int) -> TimestampAndOffset | None:
        """
        The offset at which a time begins, in ms, or that a special timestamp of ListOffsets means.

        None if no record is that late. Records above the high watermark are found as well.
        """
        with self._guarded("fetching offset by timestamp for"):
            return fetch_offset_by_timestamp(
                target,
                self.segments,
                self.leader_epochs,
                log_start_offset=self.log_start_offset,
                log_end_offset=self.log_end_offset,
            )

    def collect_aborted_transactions(
        self, start_offset: int, upper_bound_offset: int
    ) -> list[AbortedTxn]:
        """
        The aborted transactions in the segments from that of *start_offset* on that began below the
        bound. Compaction needs them.
        """
        first = self.segments.floor_segment(start_offset)
        if first is None:
            return []
        return collect_aborted_txns(self.segments, first, self.log_start_offset, upper_bound_offset)

    # Rolling and flushing.

    def roll(self) -> LogSegment:
        """
        Begin a new segment at the end of the log.
        """
        with self._guarded("rolling"), self._lock:
            return self._roll()

    def _roll(self, expected_next_offset: int = 0) -> LogSegment:
        segment = self._local.roll(expected_next_offset)
        # Recovery of the new segment begins with this snapshot. The segment may begin above the
        # end of the log.
        self.producers.map_end_offset = segment.base_offset
        snapshot = None
        try:
            snapshot = self.producers.take_snapshot(sync=False)
        except TooManyOpenFiles as error:
            # Recovery begins with an earlier one, and the segment is there.
            logger.warning("%s: no snapshot of producers: %s", self.topic_partition, error)
        self._watermarks.follow_log_end_offset()
        self._directory.deferred.soon(lambda: self._flush_rolled(segment.base_offset, snapshot))
        return segment

    def _flush_rolled(self, offset: int, snapshot: SnapshotFile | None) -> None:
        if snapshot is not None:
            with self._guarded("flushing a producer snapshot of"):
                snapshot.flush()
        self.flush(offset)

    def flush(self, offset: int | None = None, *, force_flush_active_segment: bool = False) -> None:
        """
        Return once all records below *offset* survive a crash of the machine.

        Appends go on meanwhile; the lock is not held.

        Args:
            offset: the end of the log by default.
            force_flush_active_segment: also if the segment is empty, so that it exists after a
                crash.
        """
        with self._guarded("flushing"):
            if self._local.flush(offset, include_offset=force_flush_active_segment):
                self.last_flush_time_ms = self._clock.now_ms()

    # Offsets and epochs.

    def update_high_watermark(self, offset: int) -> int:
        """
        Move the high watermark to *offset*, but not beyond the log; return its new place.
        """
        return self._watermarks.update_high_watermark(offset)

    def assign_epoch_start_offset(self, epoch: int, offset: int) -> None:
        """
        Let a leader epoch begin at *offset*. It survives a crash when this returns.
        """
        with self._guarded("writing leader epochs of"):
            self.leader_epochs.assign(epoch, offset)

    def begin_epoch(self, epoch: int, offset: int) -> None:
        """
        As ``assign_epoch_start_offset``, but it is written soon, at the latest before the first
        append.
        """
        with self._guarded("writing leader epochs of"):
            self.leader_epochs.begin(epoch, offset)

    def end_offset_for_epoch(self, epoch: int) -> OffsetAndEpoch | None:
        """
        The end of the last known epoch up to *epoch*; None if it is not known.
        """
        return self.leader_epochs.end_offset_for(epoch, self.log_end_offset)

    # Producers.

    def maybe_start_transaction_verification(
        self, producer_id: int, sequence: int, epoch: int, *, supports_epoch_bump: bool
    ) -> VerificationGuard:
        """
        The guard with which the first batch of a transaction may be appended, once its coordinator
        has confirmed the transaction; ``SENTINEL`` if the transaction is open here already.

        Raises:
            InvalidProducerEpoch: there was a batch or marker of a later epoch.
        """
        with self._lock:
            return self.producers.maybe_start_transaction_verification(
                producer_id, sequence, epoch, supports_epoch_bump=supports_epoch_bump
            )

    def active_producers(self) -> list[ProducerState]:
        with self._lock:
            return self.producers.describe()

    def last_records_of_active_producers(self) -> dict[int, LastRecord]:
        with self._lock:
            return self.producers.last_records()

    def remove_expired_producers(self, now_ms: int) -> None:
        with self._lock:
            self.producers.remove_expired_producers(now_ms)

    # Removing records at the start.

    def delete_records(self, offset: int) -> int:
        """
        Let the log start at *offset*, -1 for the high watermark, by request of a client; return the
        new start. Records below leave the disk with their segment (Kafka's Partition).

        Raises:
            PolicyViolation: the log is only compacted.
            OffsetOutOfRange: *offset* is above the high watermark, or negative.
        """
        if self.config.compact and not self.config.delete:
            raise PolicyViolation(
                f"Records of partition {self.topic_partition} can not be deleted due to the "
                "configured policy"
            )
        with self._lock:
            if offset == HIGH_WATERMARK:
                offset = self.high_watermark
            if offset < 0:
                raise OffsetOutOfRange(
                    f"The offset {offset} for partition {self.topic_partition} is not valid"
                )
            self.maybe_increment_log_start_offset(
                offset, LogStartOffsetIncrementReason.CLIENT_RECORD_DELETION
            )
            return self.log_start_offset

    def maybe_increment_log_start_offset(
        self, offset: int, reason: LogStartOffsetIncrementReason
    ) -> bool:
        """
        Let the log start at *offset* if that is later than now; return whether it is.

        Raises:
            OffsetOutOfRange: *offset* is above the high watermark.
        """
        watermarks = self._watermarks
        with self._guarded("increasing the log start offset of"), self._lock:
            if offset > watermarks.high_watermark:
                raise OffsetOutOfRange(
                    f"Cannot increment the log start offset to {offset} of partition "
                    f"{self.topic_partition} since it is larger than the high watermark "
                    f"{watermarks.high_watermark}"
                )
            if offset <= watermarks.log_start_offset:
                return False
            watermarks.start_at(offset)
            logger.info(
                "%s: incremented log start offset to %d due to %s",
                self.topic_partition,
                offset,
                reason.value,
            )
            self.leader_epochs.truncate_from_start_async_flush(offset)
            self.producers.on_log_start_offset_incremented(offset)
            watermarks.update_first_unstable_offset()
            return True

    def delete_old_segments(self) -> int:
        """
        Delete the segments that retention does not keep; return how many.
        """
        deleted = 0
        config = self.config
        for rule in rules_of(config):
            with self._guarded("deleting segments of"), self._lock:
                state = LogState(
                    self.segments.values(),
                    self.log_start_offset,
                    self.high_watermark,
                    self.log_end_offset,
                )
                decision = decide(rule, state, config, self._clock.now_ms())
                self._warn_of_future(decision)
                deleted += self._delete_segments(decision.deletable, rule.value)
        return deleted

    def _warn_of_future(self, decision: Decision[LogSegment]) -> None:
        """
        Log once that a segment stays, with all behind it, because of timestamps in the future.
        """
        stopped = decision.stopped_by
        if stopped is None or stopped.reason is not Reason.IN_THE_FUTURE:
            return
        if stopped.segment.base_offset != self._warned_of:
            self._warned_of = stopped.segment.base_offset
            logger.warning(
                "%s: %s contains future timestamp(s), making it ineligible to be deleted",
                self.topic_partition,
                stopped.segment,
            )

    def _delete_segments(self, deletable: Sequence[LogSegment], reason: str) -> int:
        if not deletable:
            return 0
        going = list(deletable)
        if len(going) == self.segments.number_of_segments:
            # There is always a segment.
            fresh = self._roll()
            if fresh.base_offset == going[-1].base_offset:
                del going[-1]
        following = self.segments.higher_segment(going[-1].base_offset) if going else None
        if following is not None:
            # The start moves first: no read may look for a segment that has left.
            self.maybe_increment_log_start_offset(
                following.base_offset, LogStartOffsetIncrementReason.SEGMENT_DELETION
            )
            self._directory.remove_and_delete(going, reason)
        self._delete_producer_snapshots(going)
        return len(deletable)

    # Removing records at the end.

    def truncate_to(self, target_offset: int) -> bool:
        """
        Remove all records from *target_offset* on; return whether there were any.

        Raises:
            ValueError: *target_offset* is negative.
        """
        if target_offset < 0:
            raise ValueError(
                f"Cannot truncate partition {self.topic_partition} to a negative offset "
                f"({target_offset})."
            )
        with self._guarded("truncating"), self._lock:
            if target_offset < self.high_watermark:
                logger.warning(
                    "%s: truncating to offset %d below high watermark %d",
                    self.topic_partition,
                    target_offset,
                    self.high_watermark,
                )
            if target_offset >= self.log_end_offset:
                # There may be an epoch in which nothing was written.
                self.leader_epochs.truncate_from_end_async_flush(self.log_end_offset)
                return False
            logger.info("%s: truncating to offset %d", self.topic_partition, target_offset)
            if self.first_segment_base_offset > target_offset:
                self.truncate_fully_and_start_at(target_offset)
                return True
            self._delete_producer_snapshots(self._local.truncate_to(target_offset))
            self.leader_epochs.truncate_from_end_async_flush(target_offset)
            start = min(target_offset, self.log_start_offset)
            self._rebuild_producer_state(start, target_offset)
            self._watermarks.truncate_to(target_offset)
            return True

    def truncate_fully_and_start_at(self, new_offset: int) -> None:
        """
        Remove all records, and let the log start at *new_offset*.
        """
        with self._guarded("truncating all of"), self._lock:
            self._local.truncate_fully_and_start_at(new_offset)
            self.leader_epochs.clear_and_flush()
            self.producers.truncate_fully_and_start_at(new_offset)
            self._rebuild_producer_state(new_offset, new_offset)
            self._watermarks.restart_at(new_offset)

    def _rebuild_producer_state(self, start_offset: int, end_offset: int) -> None:
        rebuild_producer_state(
            self.producers, self.segments, start_offset, end_offset, clock=self._clock
        )

    # Replacing segments.

    def create_new_cleaned_segment(self, base_offset: int) -> LogSegment:
        """
        A segment that compaction may fill, to be given to ``replace_segments``.
        """
        with self._guarded("making a segment of"):
            return self._directory.create_new_cleaned_segment(base_offset)

    def replace_segments(
        self, new_segments: Sequence[LogSegment], old_segments: Sequence[LogSegment]
    ) -> None:
        """
        Replace segments by the compacted ones that were made from them.
        """
        with self._guarded("replacing segments of"):
            with self._lock:
                self._delete_producer_snapshots(self._directory.replace(new_segments, old_segments))
            # Only the cleaner waits for the disk: appends depend on none of these names.
            self._directory.sync()

    def split_overflowed_segment(self, segment: LogSegment) -> None:
        """
        Replace a segment with offsets too far from its base by several.

        Raises:
            ValueError: *segment* has no such offsets.
        """
        with self._guarded("splitting a segment of"):
            with self._lock:
                result = self._directory.split_overflowed_segment(segment)
                self._delete_producer_snapshots(result.deleted_segments)
            self._directory.sync()

    def _delete_producer_snapshots(self, segments: Sequence[LogSegment]) -> None:
        self._directory.delete_producer_snapshots(self.producers.snapshots, segments)

    # Maintenance.

    def assign_topic_id(self, topic_id: UUID) -> None:
        """
        Note that the log belongs to this topic. The id is written soon, at the latest before the
        first append.

        Raises:
            InconsistentTopicId: it belongs to another one.
        """
        self._identity.assign(topic_id)

    @property
    def is_topic_id_unwritten(self) -> bool:
        """
        Whether an append has to write the topic id first, with three fsyncs.
        """
        return self._identity.is_unwritten

    def write_topic_id(self) -> None:
        """
        Write the topic id now, unless that is done: from a thread that has the time.

        Raises:
            KafkaStorageError: the disk failed.
        """
        with self._guarded("writing the topic id of"):
            self._identity.write()

    def update_config(self, config: LogConfig) -> None:
        """
        Use *config* from now on. Segments that exist keep their index interval and jitter.
        """
        with self._lock:
            self._directory.update_config(config)
            if self._appender is not None:
                self._appender.configure(config)

    def remove_deleted_files(self) -> None:
        """
        Do the deferred work that is due: remove files whose delay is over, sync full segments.

        It has to be called when ``wake_at`` of ``open_log`` says so, or every second or so.
        """
        if not self._closed:
            with self._guarded("looking after"):
                self._directory.deferred.run_due()

    def rename_dir(self, name: str, *, should_reinitialize: bool) -> None:
        """
        Rename the directory of the log.

        Args:
            should_reinitialize: false if the log is not used any more: it is going to be deleted,
                or is a stray.
        """
        with self._guarded("renaming the directory of"), self._local.flushing, self._lock:
            self._identity.write()
            # Kafka writes a change within milliseconds, so the files of a deleted log have it.
            self.leader_epochs.write_pending()
            if not self._directory.rename(name):
                return
            self.producers.snapshots.update_parent_dir(self.dir)
            if should_reinitialize:
                self.leader_epochs.update_parent_dir(self.dir)
            else:
                # Its name may belong to another log soon.
                self._directory.deferred.drop()
                self.leader_epochs.clear()

    def finish_active_segment(self) -> None:
        """
        Do the writes of closing the segment, so that a flush before ``close`` covers them as well:
        the next start does not check the files.
        """
        with self._guarded("closing"), self._lock:
            self.active_segment.on_become_inactive_segment()

    def close(self) -> None:
        """
        Write the files that the next start reads, and close all files. Flush the log before.
        """
        with self._guarded("closing"):
            self._directory.deferred.run_soon()
            with self._lock:
                self._identity.write()
                self.producers.take_snapshot()
                self.segments.close()
                self._closed = True
                # The next start removes the files of segments that wait for it.
                self._directory.deferred.drop()

    def close_handlers(self) -> None:
        """
        Close all files without writing, as the disk has failed.
        """
        with self._lock:
            self._closed = True
            self._directory.deferred.drop()
            self.segments.close_handlers()

    def delete(self) -> None:
        """
        Remove the log from the disk. Reads that have begun may go on.

        Raises:
            KafkaStorageError: the disk failed.
        """
        with self._lock:
            self._closed = True
            self._directory.deferred.drop()
            self.leader_epochs.clear()
            try:
                self._local.delete_all_segments()
                self._directory.files.remove_tree(self.dir)
            except KafkaStorageError as error:
                self._report_failure("deleting", error)
                raise

    # Failing.

    def _check_usable(self) -> None:
        if self._closed:
            raise KafkaStorageError(f"The log of {self.topic_partition} is closed")
        self._failures.check_online(self.parent_dir)

    @contextmanager
    def _guarded(self, action: str) -> Iterator[None]:
        self._check_usable()
        try:
            yield
        except KafkaStorageError as error:
            self._report(action, error)
            raise

    def _report(self, action: str, error: KafkaStorageError) -> None:
        # Work that was in progress when the log was closed finds closed files.
        if not self._closed:
            self._report_failure(action, error)

    def _report_failure(self, action: str, error: KafkaStorageError) -> None:
        self._failures.maybe_add_offline_log_dir(
            self.parent_dir,
            f"Error while {action} {self.topic_partition} in dir {self.parent_dir}",
            error,
        )

    def __repr__(self) -> str:
        return (
            f"Log(dir={self.dir}, topicId={self.topic_id}, highWatermark={self.high_watermark}, "
            f"lastStableOffset={self.last_stable_offset}, logStartOffset={self.log_start_offset}, "
            f"logEndOffset={self.log_end_offset})"
        )
