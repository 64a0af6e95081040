"""
The log of a partition.

::

    Log --+-- LogAppender         checks batches and writes them
          +-- LocalLog            segments, the log's end, its recovery point
          +-- Watermarks          log start, last stable offset, high watermark
          +-- LogProducers        sequences and transactions
          +-- LogTrimmer          retention, truncation
          +-- DeferredWork        what nobody should wait for

``Log.create`` opens what is in a directory, after a crash recovering it, or begins with nothing. It
is Kafka's UnifiedLog, without tiered storage.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from uuid import UUID

from barnabas.storage.append_info import LogAppendInfo
from barnabas.storage.append_origin import AppendOrigin
from barnabas.storage.checkpoints import LeaderEpochCheckpointFile
from barnabas.storage.clock import Clock
from barnabas.storage.deferred_work import DeferredWork
from barnabas.storage.errors import InconsistentTopicId, KafkaStorageError, OffsetOutOfRange
from barnabas.storage.fetch_data import FetchDataInfo, FileSlice, LogOffsetMetadata
from barnabas.storage.fetch_isolation import FetchIsolation
from barnabas.storage.file_records import TimestampAndOffset
from barnabas.storage.files import Files
from barnabas.storage.leader_epochs import UNDEFINED_EPOCH_OFFSET, LeaderEpochFileCache
from barnabas.storage.loader import LogLoader, RecoveryReport
from barnabas.storage.local_log import LocalLog
from barnabas.storage.log_appends import LogAppender
from barnabas.storage.log_config import LogConfig
from barnabas.storage.log_dir_failure import LogDirFailureChannel
from barnabas.storage.log_files import TopicPartition, parse_topic_partition_name
from barnabas.storage.log_producers import LastRecord, LogProducers, ProducerState
from barnabas.storage.log_reads import collect_aborted_txns
from barnabas.storage.log_trimming import LogStartOffsetIncrementReason, LogTrimmer
from barnabas.storage.offsets_by_time import fetch_offset_by_timestamp
from barnabas.storage.options import DAYS
from barnabas.storage.partition_metadata import PartitionMetadataFile
from barnabas.storage.producer_append import TV_UNKNOWN
from barnabas.storage.producer_entry import SENTINEL, VerificationGuard
from barnabas.storage.producer_snapshots import SnapshotFile
from barnabas.storage.producer_state import ProducerStateManager, ProducerStateManagerConfig
from barnabas.storage.retention import Decision
from barnabas.storage.segment import LogSegment
from barnabas.storage.segment_directory import SegmentDirectory
from barnabas.storage.segments import LogSegments
from barnabas.storage.txn_index import AbortedTxn
from barnabas.storage.watermarks import Watermarks

__all__ = [
    "AppendOrigin",
    "FetchDataInfo",
    "FetchIsolation",
    "FileSlice",
    "Log",
    "LogAppendInfo",
    "LogStartOffsetIncrementReason",
    "OffsetAndEpoch",
    "RecoveryReport",
]

logger = logging.getLogger(__name__)


class OffsetAndEpoch(NamedTuple):
    """
    Where a leader epoch ends.
    """

    offset: int
    epoch: int


class Log:
    """
    The log of one partition.

    Invariants:

    1. Offsets grow along the log. What was appended stays as it is, until retention, compaction or
       truncation removes it.
    2. Whoever reads sees whole appends, in their order.
    3. After an error of the disk the log directory is offline, and all its logs refuse everything.

    Safe from any thread. One lock guards all changes; it is never held while a sync to the disk
    takes its time, except by ``close``. Reading needs no lock.
    """

    def __init__(
        self,
        directory: SegmentDirectory,
        loader: LogLoader,
        producers: ProducerStateManager,
        epochs: LeaderEpochFileCache,
        *,
        failures: LogDirFailureChannel,
        high_watermark: int,
    ) -> None:
        """
        See ``create``.
        """
        loaded = loader.load()
        self.recovery_report = loader.report
        self.topic_id: UUID | None = None
        """That of the topic, once it is known."""
        self.parent_dir = directory.path.parent
        """The log directory."""
        self._lock = threading.RLock()
        self._flushing = threading.Lock()
        self._closed = False
        self._failures = failures
        self._clock = directory.clock
        self._directory = directory
        self._segments = directory.segments
        self._epochs = epochs
        self._local = LocalLog(directory, loaded.recovery_point, loaded.next_offset_metadata)
        self._producers = LogProducers(producers)
        self._watermarks = Watermarks(
            self._local,
            producers,
            self._lock,
            log_start_offset=loaded.log_start_offset,
            high_watermark=high_watermark,
        )
        self._appender = LogAppender(
            self._local,
            self._producers,
            self._watermarks,
            epochs,
            lock=self._lock,
            clock=self._clock,
            roll=self._roll,
        )
        self._trimmer = LogTrimmer(
            self._local,
            producers,
            self._watermarks,
            epochs,
            lock=self._lock,
            clock=self._clock,
            roll=self._roll,
        )
        self._partition_metadata = PartitionMetadataFile(directory.files, directory.path)
        self._has_unwritten_topic_id = False

    @classmethod
    def create(
        cls,
        directory: Path,
        config: LogConfig,
        *,
        files: Files,
        clock: Clock,
        failures: LogDirFailureChannel,
        topic_id: UUID | None = None,
        log_start_offset: int = 0,
        recovery_point: int = 0,
        high_watermark: int = 0,
        had_clean_shutdown: bool = True,
        producer_id_expiration_ms: int = 1 * DAYS,
        transaction_verification: bool = True,
    ) -> Log:
        """
        Open the log in *directory*, which is made if it is missing.

        Args:
            topic_id: of the topic that the log is for, if it is a new one.
            log_start_offset: as it was noted in the checkpoint of the log directory.
            recovery_point: likewise; what is below is on the disk.
            high_watermark: likewise.
            had_clean_shutdown: whether nothing needs to be recovered.
            producer_id_expiration_ms: how long a producer may be idle before it is forgotten.
            transaction_verification: whether transactional batches need a ``VerificationGuard``.

        Raises:
            InvalidLogDirectory: the name of *directory* is not one of a partition.
            InconsistentTopicId: the log belongs to another topic.
            CorruptRecord: the log was stopped cleanly, but cannot be read to its end.
            KafkaStorageError: the disk failed.
        """
        partition = parse_topic_partition_name(directory)
        files.make_directory(directory)
        deferred = DeferredWork(clock)
        place = SegmentDirectory(
            directory, partition, config, files=files, clock=clock, deferred=deferred
        )
        checkpoint = LeaderEpochCheckpointFile(files, directory)
        epochs = LeaderEpochFileCache(partition, checkpoint, deferred.soon)
        settings = ProducerStateManagerConfig(
            producer_id_expiration_ms=producer_id_expiration_ms,
            transaction_verification_enabled=transaction_verification,
        )
        producers = ProducerStateManager(partition, directory, settings, clock, files=files)
        loader = LogLoader(
            place,
            epochs,
            producers,
            had_clean_shutdown=had_clean_shutdown,
            log_start_offset=log_start_offset,
            recovery_point=recovery_point,
        )
        log = cls(
            place, loader, producers, epochs, failures=failures, high_watermark=high_watermark
        )
        log._initialize_topic_id(topic_id)
        return log

    # Whose log it is.

    def _initialize_topic_id(self, topic_id: UUID | None) -> None:
        if self._partition_metadata.exists():
            self.topic_id = self._partition_metadata.read().topic_id
        if topic_id is not None:
            self.assign_topic_id(topic_id)

    def assign_topic_id(self, topic_id: UUID) -> None:
        """
        The log belongs to this topic; it is written soon, at the latest before the first append.

        Raises:
            InconsistentTopicId: it belongs to another one.
        """
        if self.topic_id is not None:
            if self.topic_id != topic_id:
                raise InconsistentTopicId(
                    f"Tried to assign topic ID {topic_id} to log for topic partition "
                    f"{self.topic_partition}, but log already contained topic ID {self.topic_id}"
                )
            return
        self.topic_id = topic_id
        self._partition_metadata.record(topic_id)
        self._has_unwritten_topic_id = True
        self._directory.deferred.soon(self._write_topic_id)

    def _write_topic_id(self) -> None:
        if self._has_unwritten_topic_id:
            self._partition_metadata.maybe_flush()
            # The directory of the log is as new as the file.
            self._directory.files.sync_directory(self.parent_dir)
            self._has_unwritten_topic_id = False

    # What there is to know.

    @property
    def dir(self) -> Path:
        return self._directory.path

    @property
    def topic_partition(self) -> TopicPartition:
        return self._directory.topic_partition

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
    def first_unstable_offset(self) -> int | None:
        return self._watermarks.first_unstable_offset

    @property
    def recovery_point(self) -> int:
        """
        What is below survives a crash of the machine.
        """
        return self._local.recovery_point

    @property
    def last_flush_time_ms(self) -> int:
        return self._local.last_flush_time_ms

    @property
    def is_empty(self) -> bool:
        return self.log_start_offset == self.log_end_offset

    @property
    def size(self) -> int:
        """
        Bytes of all batches.
        """
        return self._segments.size_in_bytes

    @property
    def segments(self) -> LogSegments:
        return self._segments

    @property
    def active_segment(self) -> LogSegment:
        return self._segments.active_segment

    @property
    def first_segment_base_offset(self) -> int:
        return self._segments.base_offsets[0]

    def largest_record_timestamp(self) -> int | None:
        """
        The largest timestamp of a record, in ms, if any has one.
        """
        timestamps = (segment.largest_record_timestamp() for segment in self._segments.values())
        return max((found for found in timestamps if found is not None), default=None)

    @property
    def latest_epoch(self) -> int | None:
        return self._epochs.latest_epoch

    @property
    def leader_epochs(self) -> LeaderEpochFileCache:
        return self._epochs

    @property
    def producers(self) -> LogProducers:
        return self._producers

    # Appending.

    def append_as_leader(
        self,
        records: memoryview,
        leader_epoch: int,
        *,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        verification_guard: VerificationGuard = SENTINEL,
        transaction_version: int = TV_UNKNOWN,
    ) -> LogAppendInfo:
        """
        Give batches their offsets and append them. Their buffer, which must be writable, is
        changed, and is free again when this returns.

        The high watermark stays where it is: whoever acknowledges the append moves it.

        Args:
            verification_guard: of the first batch of a transaction.
            transaction_version: of a marker.

        Raises:
            CorruptMessage: framing or checksum is wrong.
            InvalidRecord: the batch, or there being several, is not acceptable.
            RecordValidationError: some records are not acceptable.
            MessageTooLarge, RecordListTooLarge: the batch is larger than the topic, or a segment,
                allows.
            InvalidProducerEpoch, OutOfOrderSequenceNumber, InvalidTxnState,
            TransactionCoordinatorFenced: the producer, or the coordinator, may not append this now.
            UnknownServerError: the batch is wrong in a way for which Kafka has no answer.
            KafkaStorageError: the disk failed, or the log is closed.
        """
        self._check_usable()
        try:
            if self._has_unwritten_topic_id:
                self._write_topic_id()
            return self._appender.append(
                records, leader_epoch, origin, verification_guard, transaction_version
            )
        except KafkaStorageError as error:
            self._report("appending records to", error)
            raise

    def append_as_follower(self, records: memoryview, leader_epoch: int) -> LogAppendInfo:
        """
        Append batches that a leader has checked and given their offsets.

        Raises:
            CorruptMessage: framing or checksum is wrong.
            OffsetsOutOfOrder, UnexpectedAppendOffset: the offsets do not follow.
            RecordListTooLarge: the batches are larger than a segment.
            KafkaStorageError: the disk failed, or the log is closed.
        """
        with self._guarded("appending records to"):
            self._write_topic_id()
            return self._appender.append(records, leader_epoch, AppendOrigin.REPLICATION)

    def roll(self) -> LogSegment:
        """
        Begin a new segment at the end of the log.

        Raises:
            KafkaStorageError: the disk failed, or the log is closed.
        """
        with self._guarded("rolling"), self._lock:
            return self._roll()

    def _roll(self, expected_next_offset: int = 0) -> LogSegment:
        segment = self._local.roll(expected_next_offset)
        # Recovery of the new segment begins with this snapshot. The segment may begin above the
        # end of the log.
        state = self._producers.state
        state.update_map_end_offset(segment.base_offset)
        snapshot = state.take_snapshot(sync=False)
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
        Return once everything below *offset* survives a crash of the machine.

        Appends go on meanwhile; the lock is not held.

        Args:
            offset: the end of the log if it is not given.
            force_flush_active_segment: also if nothing is in it, so that it is there after a crash.

        Raises:
            KafkaStorageError: the disk failed, or the log is closed.
        """
        with self._guarded("flushing"), self._flushing:
            end = self.log_end_offset if offset is None else offset
            if self._local.flush(end, include_offset=force_flush_active_segment):
                with self._lock:
                    self._local.mark_flushed(end)

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
            nowait: rather fail than ask the disk.

        Raises:
            OffsetOutOfRange: the log does not have that offset.
            WouldBlock: with *nowait*, the page cache lacks what has to be looked at.
            KafkaStorageError: the disk failed, or the log is closed.
        """
        self._check_usable()
        watermarks = self._watermarks
        if start_offset < watermarks.log_start_offset:
            raise OffsetOutOfRange(
                start_offset,
                watermarks.log_start_offset,
                self.log_end_offset,
                f"partition {self.topic_partition}",
            )
        try:
            if isolation is FetchIsolation.HIGH_WATERMARK:
                bound = watermarks.fetch_high_watermark_metadata(nowait=nowait)
            elif isolation is FetchIsolation.TXN_COMMITTED:
                bound = watermarks.fetch_last_stable_offset_metadata(nowait=nowait)
            else:
                bound = self._local.next_offset_metadata
            return self._local.read(
                start_offset,
                max_length,
                min_one_message=min_one_message,
                bound=bound,
                include_aborted_txns=isolation is FetchIsolation.TXN_COMMITTED,
                nowait=nowait,
            )
        except KafkaStorageError as error:
            self._report("reading from", error)
            raise

    def fetch_offset_by_timestamp(self, target: int) -> TimestampAndOffset | None:
        """
        The offset at which a time begins, in ms, or that a special timestamp of ListOffsets means.

        None if no record is that late. What is above the high watermark is found as well.

        Raises:
            KafkaStorageError: the disk failed, or the log is closed.
        """
        with self._guarded("fetching offset by timestamp for"):
            return fetch_offset_by_timestamp(
                target,
                self._segments,
                self._epochs,
                log_start_offset=self.log_start_offset,
                log_end_offset=self.log_end_offset,
            )

    def collect_aborted_transactions(
        self, start_offset: int, upper_bound_offset: int
    ) -> list[AbortedTxn]:
        """
        The aborted transactions that the segments from that of *start_offset* on know, and that
        began below the bound. Compaction asks for them.
        """
        first = self._segments.floor_segment(start_offset)
        if first is None:
            return []
        return collect_aborted_txns(
            self._segments, first, self.log_start_offset, upper_bound_offset
        )

    # Offsets and epochs.

    def update_high_watermark(self, offset: int) -> int:
        """
        Move the high watermark to *offset*, or as near as the log reaches; where it is then.
        """
        return self._watermarks.update_high_watermark(offset)

    def maybe_increment_high_watermark(self, new: LogOffsetMetadata) -> LogOffsetMetadata | None:
        """
        Move the high watermark up; where it was, or None if that is not below *new*.

        Raises:
            ValueError: *new* is beyond the end of the log.
        """
        return self._watermarks.maybe_increment_high_watermark(new)

    def assign_epoch_start_offset(self, epoch: int, offset: int) -> None:
        """
        A leader epoch begins at *offset*. It survives a crash when this returns.

        Raises:
            KafkaStorageError: the disk failed, or the log is closed.
        """
        with self._guarded("writing leader epochs of"):
            self._epochs.assign(epoch, offset)

    def end_offset_for_epoch(self, epoch: int) -> OffsetAndEpoch | None:
        """
        The last known epoch up to *epoch*, and where it ended; None if nothing is known.
        """
        found, end_offset = self._epochs.end_offset_for(epoch, self.log_end_offset)
        if end_offset == UNDEFINED_EPOCH_OFFSET:
            return None
        return OffsetAndEpoch(end_offset, found)

    # Shortening.

    def maybe_increment_log_start_offset(
        self, offset: int, reason: LogStartOffsetIncrementReason
    ) -> bool:
        """
        Let the log start at *offset*, if that is later than now; whether it is.

        Raises:
            OffsetOutOfRange: *offset* is above the high watermark.
            KafkaStorageError: the disk failed, or the log is closed.
        """
        with self._guarded("increasing the log start offset of"):
            return self._trimmer.maybe_increment_log_start_offset(offset, reason)

    def delete_records(self, offset: int) -> int:
        """
        Let the log start at *offset*, -1 for the high watermark, by request of a client; where it
        starts then. What is below leaves the disk with its segment.

        Raises:
            PolicyViolation: the log is only compacted.
            OffsetOutOfRange: *offset* is above the high watermark, or negative.
            KafkaStorageError: the disk failed, or the log is closed.
        """
        with self._guarded("deleting records of"):
            return self._trimmer.delete_records(offset)

    def delete_old_segments(self) -> int:
        """
        Delete the segments that retention lets go of; how many that were.

        Raises:
            KafkaStorageError: the disk failed, or the log is closed.
        """
        with self._guarded("deleting segments of"):
            return self._trimmer.delete_old_segments()

    def retention_plan(self) -> list[Decision[LogSegment]]:
        """
        What ``delete_old_segments`` would do now, rule by rule, and why not more.
        """
        with self._guarded("looking at segments of"):
            return self._trimmer.retention_plan()

    def truncate_to(self, target_offset: int) -> bool:
        """
        Remove all from *target_offset* on; false if there is nothing.

        Raises:
            ValueError: *target_offset* is negative.
            KafkaStorageError: the disk failed, or the log is closed.
        """
        with self._guarded("truncating"):
            return self._trimmer.truncate_to(target_offset)

    def truncate_fully_and_start_at(
        self, new_offset: int, log_start_offset: int | None = None
    ) -> None:
        """
        Remove everything and begin anew at *new_offset*.

        Raises:
            KafkaStorageError: the disk failed, or the log is closed.
        """
        with self._guarded("truncating all of"):
            self._trimmer.truncate_fully_and_start_at(new_offset, log_start_offset)

    # Compaction.

    def create_new_cleaned_segment(self, base_offset: int) -> LogSegment:
        """
        A segment that compaction may fill, to be given to ``replace_segments``.
        """
        return self._directory.create_new_cleaned_segment(base_offset)

    def replace_segments(
        self, new_segments: Sequence[LogSegment], old_segments: Sequence[LogSegment]
    ) -> None:
        """
        Put compacted segments in the place of those that they were made of.

        Raises:
            KafkaStorageError: the disk failed, or the log is closed.
        """
        with self._guarded("replacing segments of"):
            self._trimmer.replace_segments(new_segments, old_segments)

    # Producers.

    def maybe_start_transaction_verification(
        self, producer_id: int, sequence: int, epoch: int, *, supports_epoch_bump: bool
    ) -> VerificationGuard:
        """
        The guard with which the first batch of a transaction may be appended, once its coordinator
        has said that there is one; ``SENTINEL`` if the transaction is open here already.

        Raises:
            InvalidProducerEpoch: there was a batch or marker of a later epoch.
        """
        with self._lock:
            return self._producers.maybe_start_transaction_verification(
                producer_id, sequence, epoch, supports_epoch_bump=supports_epoch_bump
            )

    def has_ongoing_transaction(self, producer_id: int, epoch: int) -> bool:
        with self._lock:
            return self._producers.has_ongoing_transaction(producer_id, epoch)

    def has_late_transaction(self, now_ms: int) -> bool:
        """
        Whether a transaction is open for longer than any may be.
        """
        with self._lock:
            return self._producers.state.has_late_transaction(now_ms)

    def active_producers(self) -> list[ProducerState]:
        with self._lock:
            return self._producers.active()

    def last_records_of_active_producers(self) -> dict[int, LastRecord]:
        """
        The last record of each producer; compaction keeps its batch.
        """
        with self._lock:
            return self._producers.last_records()

    def remove_expired_producers(self, now_ms: int) -> None:
        """
        Forget the producers that were idle for too long.
        """
        with self._lock:
            self._producers.state.remove_expired_producers(now_ms)

    def take_producer_snapshot(self) -> None:
        """
        Write what is known of producers, unless it has been.

        Raises:
            KafkaStorageError: the disk failed, or the log is closed.
        """
        with self._guarded("taking a producer snapshot of"), self._lock:
            self._producers.state.take_snapshot()

    # Looking after it.

    def update_config(self, config: LogConfig) -> None:
        """
        Go by *config* from now on. Segments that exist keep their index interval and jitter.
        """
        with self._lock:
            self._directory.config = config
            self._appender.configure(config)

    def remove_deleted_files(self) -> None:
        """
        Do what was put off: remove files whose delay is over, sync segments that are full.

        Somebody should call this every second or so.
        """
        if not self._closed:
            with self._guarded("looking after"):
                self._directory.deferred.run_due()

    def rename_dir(self, name: str, *, should_reinitialize: bool) -> None:
        """
        Rename the directory of the log.

        Args:
            should_reinitialize: false if the log is of no further use: it is going to be deleted,
                or nobody knows it.

        Raises:
            KafkaStorageError: the disk failed, or the log is closed.
        """
        with self._guarded("renaming the directory of"), self._flushing, self._lock:
            self._write_topic_id()
            if not self._directory.rename(name):
                return
            self._producers.state.update_parent_dir(self.dir)
            self._partition_metadata.update_parent_dir(self.dir)
            if should_reinitialize:
                self._epochs.update_parent_dir(self.dir)
            else:
                # Its name may belong to another log soon.
                self._directory.deferred.drop()
                self._epochs.clear()

    def close(self) -> None:
        """
        Write what the next start wants to know, and give all files back. Flush the log before.

        Raises:
            KafkaStorageError: the disk failed, or the log is closed.
        """
        with self._guarded("closing"):
            self._directory.deferred.run_soon()
            with self._lock:
                self._write_topic_id()
                self._producers.state.take_snapshot()
                self._segments.close()
                self._closed = True

    def close_handlers(self) -> None:
        """
        Give all files back without writing, for when the disk has failed.
        """
        with self._lock:
            self._closed = True
            self._directory.deferred.drop()
            self._segments.close_handlers()

    def delete(self) -> None:
        """
        Remove the log from the disk. Who reads from it may go on.

        Raises:
            KafkaStorageError: the disk failed.
        """
        with self._lock:
            self._closed = True
            self._directory.deferred.drop()
            self._epochs.clear()
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
        # Who was at work while the log was closed meets files that are closed.
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
