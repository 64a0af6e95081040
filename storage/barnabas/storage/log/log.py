"""
The log of a partition.

::

    Log             appending, flushing, opening and closing
     TrimmableLog   retention, truncation, what compaction replaces
      LogView       reading
       |
       +-- LogAppender     checks batches and writes them
       +-- LocalLog        segments, the log's end, its recovery point
       +-- Watermarks      log start, last stable offset, high watermark
       +-- LogProducers    sequences and transactions
       +-- DeferredWork    what nobody should wait for

``Log.create`` opens what is in a directory, after a crash recovering it, or begins with nothing. It
is Kafka's UnifiedLog, without tiered storage.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

import logging
import threading
from uuid import UUID

from barnabas.protocol.records.batch import read_batch
from barnabas.storage.config.log_config import LogConfig
from barnabas.storage.errors import KafkaStorageError, TooManyOpenFiles
from barnabas.storage.fs.failure import LogDirFailureChannel
from barnabas.storage.log.append import LogAppender
from barnabas.storage.log.append_info import LogAppendInfo
from barnabas.storage.log.directory import SegmentDirectory
from barnabas.storage.log.fetch_isolation import FetchIsolation
from barnabas.storage.log.leader_epochs import LeaderEpochFileCache
from barnabas.storage.log.loaded import LoadedLogOffsets, RecoveryReport
from barnabas.storage.log.trimming import LogStartOffsetIncrementReason, TrimmableLog
from barnabas.storage.log.validator import Examined, LogValidator
from barnabas.storage.log.view import OffsetAndEpoch
from barnabas.storage.producers.append import TV_UNKNOWN
from barnabas.storage.producers.append_origin import AppendOrigin
from barnabas.storage.producers.entry import SENTINEL, VerificationGuard
from barnabas.storage.producers.snapshots import SnapshotFile
from barnabas.storage.producers.state import ProducerStateManager
from barnabas.storage.segment.fetch_data import FetchDataInfo, FileSlice
from barnabas.storage.segment.segment import LogSegment
from barnabas.storage.threads.turns import SHORT_TURNS, Turns

logger = logging.getLogger(__name__)

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


class Log(TrimmableLog):
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
        loaded: LoadedLogOffsets,
        producers: ProducerStateManager,
        epochs: LeaderEpochFileCache,
        *,
        failures: LogDirFailureChannel,
        high_watermark: int,
        report: RecoveryReport,
    ) -> None:
        """
        See ``recovery.opening``.
        """
        super().__init__(
            directory,
            loaded,
            producers,
            epochs,
            failures=failures,
            high_watermark=high_watermark,
        )
        self.recovery_report = report
        self.next_producer_check_ms = 0
        """When expired producers are looked for next; 0 until that has been planned."""
        self._flushing = threading.Lock()
        self._appender: LogAppender | None = None
        """None until something is appended: that is never so for many logs."""

    def assign_topic_id(self, topic_id: UUID) -> None:
        """
        The log belongs to this topic; it is written soon, at the latest before the first append.

        Raises:
            InconsistentTopicId: it belongs to another one.
        """
        self._identity.assign(topic_id)

    # Appending.

    def append_as_leader(
        self,
        records: memoryview,
        leader_epoch: int,
        at_once: bool = False,
        *,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        verification_guard: VerificationGuard = SENTINEL,
        transaction_version: int = TV_UNKNOWN,
        examined: Examined | None = None,
    ) -> LogAppendInfo:
        """
        Give batches their offsets and append them. Their buffer, which must be writable, is
        changed, and is free again when this returns.

        The high watermark stays where it is: whoever acknowledges the append moves it.

        Args:
            at_once: do not append a batch that takes long to examine.
            verification_guard: of the first batch of a transaction.
            transaction_version: of a marker.
            examined: what ``examine`` has made of the batch.

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
            KafkaStorageError: the disk failed, or the log is closed.
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
        Do what takes long of appending the batch of a client, in a thread that has the time.

        Raises:
            KafkaError: the batch is not acceptable, as for ``append_as_leader``.
        """
        validator = LogValidator(self.topic_partition, self.config)
        with SHORT_TURNS:
            return validator.examine(
                read_batch(records),
                origin=AppendOrigin.CLIENT,
                now_ms=self._clock.now_ms(),
                turns=Turns(),
            )

    def _new_appender(self) -> LogAppender:
        with self._lock:
            # Another thread may have been first.
            if self._appender is None:
                self._appender = LogAppender(
                    self._local,
                    self._producers,
                    self._watermarks,
                    self._epochs,
                    lock=self._lock,
                    clock=self._clock,
                    roll=self._roll,
                )
            return self._appender

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
        snapshot = None
        try:
            snapshot = state.take_snapshot(sync=False)
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
        Return once everything below *offset* survives a crash of the machine.

        Appends go on meanwhile; the lock is not held.

        Args:
            offset: the end of the log if it is not given.
            force_flush_active_segment: also if nothing is in it, so that it is there after a crash.

        Raises:
            KafkaStorageError: the disk failed, or the log is closed.
        """
        with self._guarded("flushing"), self._flushing:
            with self._lock:
                flush = self._local.begin_flush(offset, include_offset=force_flush_active_segment)
            if flush is None:
                return
            try:
                self._local.flush(flush)
            except TooManyOpenFiles:
                with self._lock:
                    self._local.flush_again(flush)
                raise
            with self._lock:
                self._local.mark_flushed(flush)

    # Offsets and epochs.

    def update_high_watermark(self, offset: int) -> int:
        """
        Move the high watermark to *offset*, or as near as the log reaches; where it is then.
        """
        return self._watermarks.update_high_watermark(offset)

    def assign_epoch_start_offset(self, epoch: int, offset: int) -> None:
        """
        A leader epoch begins at *offset*. It survives a crash when this returns.

        Raises:
            KafkaStorageError: the disk failed, or the log is closed.
        """
        with self._guarded("writing leader epochs of"):
            self._epochs.assign(epoch, offset)

    def begin_epoch(self, epoch: int, offset: int) -> None:
        """
        As ``assign_epoch_start_offset``, but the disk hears of it soon, at the latest before the
        first append.
        """
        with self._guarded("writing leader epochs of"):
            self._epochs.begin(epoch, offset)

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

    def remove_expired_producers(self, now_ms: int) -> None:
        """
        Forget the producers that were idle for too long.
        """
        with self._lock:
            self._producers.state.remove_expired_producers(now_ms)

    def configure_producers(self, *, expiration_ms: int, transaction_verification: bool) -> None:
        """
        See the arguments of ``create``; they count at once.
        """
        settings = self._producers.state.config
        settings.producer_id_expiration_ms = expiration_ms
        settings.transaction_verification_enabled = transaction_verification

    # Looking after it.

    def update_config(self, config: LogConfig) -> None:
        """
        Go by *config* from now on. Segments that exist keep their index interval and jitter.
        """
        with self._lock:
            self._directory.config = config
            if self._appender is not None:
                self._appender.configure(config)

    def remove_deleted_files(self) -> None:
        """
        Do what was put off: remove files whose delay is over, sync segments that are full.

        Somebody should call this when ``create`` was told to, or every second or so.
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
            self._identity.write()
            # Kafka's files follow a change within milliseconds, so those of a deleted log have it.
            self._epochs.write_pending()
            if not self._directory.rename(name):
                return
            self._producers.state.update_parent_dir(self.dir)
            self._identity.update_parent_dir(self.dir)
            if should_reinitialize:
                self._epochs.update_parent_dir(self.dir)
            else:
                # Its name may belong to another log soon.
                self._directory.deferred.drop()
                self._epochs.clear()

    def finish_active_segment(self) -> None:
        """
        Write what closing it would write, so that a flush before ``close`` covers that as well. The
        next start believes what it finds.

        Raises:
            KafkaStorageError: the disk failed, or the log is closed.
        """
        with self._guarded("closing"), self._lock:
            self.active_segment.on_become_inactive_segment()

    def close(self) -> None:
        """
        Write what the next start wants to know, and give all files back. Flush the log before.

        Raises:
            KafkaStorageError: the disk failed, or the log is closed.
        """
        with self._guarded("closing"):
            self._directory.deferred.run_soon()
            with self._lock:
                self._identity.write()
                self._producers.state.take_snapshot()
                self._segments.close()
                self._closed = True
                # The next start removes the files of segments that wait for it.
                self._directory.deferred.drop()

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
