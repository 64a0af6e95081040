"""
A log as it looks from outside: where it starts and ends, what is in it.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from uuid import UUID

from barnabas.storage.config.log_config import LogConfig
from barnabas.storage.errors import KafkaStorageError, OffsetOutOfRange
from barnabas.storage.fs.failure import LogDirFailureChannel
from barnabas.storage.index.txn_index import AbortedTxn
from barnabas.storage.log.directory import SegmentDirectory
from barnabas.storage.log.fetch_isolation import FetchIsolation
from barnabas.storage.log.identity import LogIdentity
from barnabas.storage.log.leader_epochs import UNDEFINED_EPOCH_OFFSET, LeaderEpochFileCache
from barnabas.storage.log.loaded import LoadedLogOffsets
from barnabas.storage.log.local_log import LocalLog
from barnabas.storage.log.offsets_by_time import fetch_offset_by_timestamp
from barnabas.storage.log.producers import LastRecord, LogProducers, ProducerState
from barnabas.storage.log.reads import collect_aborted_txns
from barnabas.storage.log.watermarks import Watermarks
from barnabas.storage.producers.state import ProducerStateManager
from barnabas.storage.segment.fetch_data import FetchDataInfo
from barnabas.storage.segment.offset_metadata import LogOffsetMetadata
from barnabas.storage.segment.records import TimestampAndOffset
from barnabas.storage.segment.segment import LogSegment
from barnabas.storage.segment.segments import LogSegments
from barnabas.storage.state_files.file_names import TopicPartition, log_dir_of


class OffsetAndEpoch(NamedTuple):
    """
    Where a leader epoch ends.
    """

    offset: int
    epoch: int


class LogView:
    """
    The part of ``Log`` that changes nothing.

    Safe from any thread; reading takes no lock.
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
    ) -> None:
        self.parent_dir = log_dir_of(directory.path)
        """The log directory."""
        self._lock = threading.RLock()
        self._closed = False
        self._failures = failures
        self._clock = directory.clock
        self._directory = directory
        self._segments = directory.segments
        self._epochs = epochs
        self._identity = LogIdentity(directory)
        self._local = LocalLog(directory, loaded.recovery_point, loaded.next_offset_metadata)
        self._producers = LogProducers(producers)
        self._watermarks = Watermarks(
            self._local,
            producers,
            self._lock,
            log_start_offset=loaded.log_start_offset,
            high_watermark=high_watermark,
        )

    # What there is to know.

    @property
    def topic_id(self) -> UUID | None:
        """
        That of the topic, once it is known.
        """
        return self._identity.topic_id

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
        if self._closed or self._failures.any_offline:
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
        if self._closed or self._failures.any_offline:
            self._check_usable()
        try:
            return fetch_offset_by_timestamp(
                target,
                self._segments,
                self._epochs,
                log_start_offset=self.log_start_offset,
                log_end_offset=self.log_end_offset,
            )
        except KafkaStorageError as error:
            self._report("fetching offset by timestamp for", error)
            raise

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

    def end_offset_for_epoch(self, epoch: int) -> OffsetAndEpoch | None:
        """
        The last known epoch up to *epoch*, and where it ended; None if nothing is known.
        """
        found, end_offset = self._epochs.end_offset_for(epoch, self.log_end_offset)
        if end_offset == UNDEFINED_EPOCH_OFFSET:
            return None
        return OffsetAndEpoch(end_offset, found)

    # Producers.

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
