"""
Appending batches to a log (Kafka's UnifiedLog.append).

::

    1  headers and checksums            a bad batch is refused
    2  offsets, records, size           likewise; the batch has its offsets now
    3  leader epoch
    4  roll, if the segment is full
    5  producers                        a duplicate is answered with the offsets of the first
    6  write
    7  high watermark, producers, transactions

The order is Kafka's, and visible: a batch that is refused for its producer, or a duplicate, may
still begin a new segment.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final

from barnabas.protocol.errors import InvalidRecord, RecordListTooLarge
from barnabas.protocol.records.batch import RecordBatch, read_batch
from barnabas.storage.clock import Clock
from barnabas.storage.config.log_config import LogConfig
from barnabas.storage.errors import UnexpectedAppendOffset
from barnabas.storage.log.append_info import LogAppendInfo
from barnabas.storage.log.batch_checks import check_batches, check_order
from barnabas.storage.log.leader_epochs import LeaderEpochFileCache
from barnabas.storage.log.local_log import LocalLog
from barnabas.storage.log.rolling import RollParams, SegmentEnd, reason_to_roll
from barnabas.storage.log.validator import Examined, LogValidator
from barnabas.storage.log.watermarks import Watermarks
from barnabas.storage.producers.append import NO_PRODUCERS, TV_UNKNOWN, ProducerAnalysis
from barnabas.storage.producers.append_origin import AppendOrigin
from barnabas.storage.producers.entry import SENTINEL, BatchMetadata, VerificationGuard
from barnabas.storage.producers.state import ProducerStateManager
from barnabas.storage.segment.offset_metadata import LogOffsetMetadata
from barnabas.storage.segment.segment import LogSegment

Roll = Callable[[int], LogSegment]
"""
Begins a segment at an offset.
"""

_RAFT_LEADER: Final = AppendOrigin.RAFT_LEADER


class LogAppender:
    """
    Appends to one log, one append at a time.

    Invariants:

    1. An append that is refused leaves the log as it was, but for a new empty segment.
    2. Batches that were written count: the log's end moves with them, whatever fails afterwards.
    """

    __slots__ = (
        "_clock",
        "_epochs",
        "_flush_messages",
        "_local",
        "_lock",
        "_max_message_bytes",
        "_partition",
        "_producers",
        "_roll",
        "_roll_params",
        "_segment_end",
        "_segment_size",
        "_validator",
        "_watermarks",
    )

    def __init__(
        self,
        local: LocalLog,
        producers: ProducerStateManager,
        watermarks: Watermarks,
        epochs: LeaderEpochFileCache,
        *,
        lock: threading.RLock,
        clock: Clock,
        roll: Roll,
    ) -> None:
        self._local = local
        self._producers = producers
        self._watermarks = watermarks
        self._epochs = epochs
        self._lock = lock
        self._clock = clock
        self._roll = roll
        self._partition = local.directory.topic_partition
        self._segment_end = SegmentEnd()
        self.configure(local.directory.config)

    def configure(self, config: LogConfig) -> None:
        """
        Use *config* from now on.
        """
        self._flush_messages = config.flush_messages
        self._max_message_bytes = config.max_message_bytes
        self._segment_size = config.segment_size
        self._roll_params = RollParams(config.max_segment_ms, config.segment_size, 0, 0, 0, 0)
        self._validator = LogValidator(self._partition, config)

    def append(
        self,
        records: memoryview,
        leader_epoch: int,
        origin: AppendOrigin,
        *,
        verification_guard: VerificationGuard = SENTINEL,
        transaction_version: int = TV_UNKNOWN,
        at_once: bool = False,
        examined: Examined | None = None,
    ) -> LogAppendInfo:
        """
        Append batches. Their buffer is changed, except for the origin RAFT_LEADER, which has
        numbered its records.

        Raises:
            BatchTakesLong: as ``Log.append_as_leader``.
            KafkaError: as ``Log.append_as_leader``.
        """
        partition = self._partition
        batches = check_batches(
            records,
            partition,
            origin=origin,
            leader_epoch=leader_epoch,
            max_batch_size=self._max_message_bytes,
        )
        info = LogAppendInfo(self._watermarks.log_start_offset)
        if not batches:
            return info
        with self._lock:
            now_ms = self._clock.now_ms()
            if origin is _RAFT_LEADER:
                records = self._take_offsets(info, batches, records)
            else:
                records = self._assign_offsets(
                    info,
                    batches,
                    leader_epoch,
                    origin=origin,
                    now_ms=now_ms,
                    at_once=at_once,
                    examined=examined,
                )
            size = info.valid_bytes = len(records)
            if size > self._segment_size:
                raise RecordListTooLarge(
                    f"Message batch size is {size} bytes in append to partition {partition}, which "
                    f"exceeds the maximum configured segment size of {self._segment_size}."
                )
            segment = self._maybe_roll(size, info, now_ms)
            analysis = NO_PRODUCERS
            for batch in batches:
                if batch.producer_id >= 0:
                    analysis = self._producers.analyze(
                        batches,
                        LogOffsetMetadata(info.first_offset, segment.base_offset, segment.log.size),
                        origin=origin,
                        verification_guard=verification_guard,
                        transaction_version=transaction_version,
                    )
                    break
            if analysis.maybe_duplicate is not None:
                return _as_duplicate(info, analysis.maybe_duplicate)
            completed = analysis.completed_txns
            if completed and any(txn.is_aborted for txn in completed):
                # Before the batch is written: after that, nothing may fail.
                segment.txn_index.open_for_writing()
            self._local.append(info.last_offset, records, segment)
            self._watermarks.follow_log_end_offset()
            self._update_producers(analysis, segment, info.last_offset + 1)
            unflushed = info.last_offset + 1 - self._local.recovery_point
            info.flush_due = unflushed >= self._flush_messages
            return info

    def _assign_offsets(
        self,
        info: LogAppendInfo,
        batches: list[RecordBatch],
        leader_epoch: int,
        *,
        origin: AppendOrigin,
        now_ms: int,
        at_once: bool,
        examined: Examined | None,
    ) -> memoryview:
        if len(batches) > 1:
            raise InvalidRecord("Compressed outer record has more than one batch")
        offset = info.first_offset = self._local.next_offset_metadata.message_offset
        batch = batches[0]
        validator = self._validator
        if examined is None:
            examined = validator.examine(batch, origin=origin, now_ms=now_ms, at_once=at_once)
        records = validator.assign_offsets(examined, info, leader_epoch=leader_epoch, now_ms=now_ms)
        if batch.producer_id >= 0:
            batches[0] = read_batch(records)
        self._epochs.assign(leader_epoch, offset)
        return records

    def _take_offsets(
        self, info: LogAppendInfo, batches: list[RecordBatch], records: memoryview
    ) -> memoryview:
        check_order(batches, self._partition)
        info.first_offset = batches[0].base_offset
        info.last_offset = batches[-1].last_offset
        info.max_timestamp = max(batch.max_timestamp for batch in batches)
        self._check_offsets(info)
        for batch in batches:
            if batch.partition_leader_epoch >= 0:
                self._epochs.assign(batch.partition_leader_epoch, batch.base_offset)
        return records[: batches[-1].end]

    def _check_offsets(self, info: LogAppendInfo) -> None:
        end = self._local.log_end_offset
        if info.first_offset < end:
            raise UnexpectedAppendOffset(
                f"Unexpected offset in append to {self._partition}. First offset "
                f"{info.first_offset} is less than the next offset {end}. Last offset in append: "
                f"{info.last_offset}. Log start offset = {self._watermarks.log_start_offset}",
                first_offset=info.first_offset,
                last_offset=info.last_offset,
            )

    def _maybe_roll(self, size: int, info: LogAppendInfo, now_ms: int) -> LogSegment:
        segment = self._local.segments.active_segment
        params = self._roll_params
        params.max_timestamp_in_messages = info.max_timestamp
        params.max_offset_in_messages = info.last_offset
        params.messages_size = size
        params.now = now_ms
        end = self._segment_end
        end.fill(segment)
        if reason_to_roll(end, params) is None:
            return segment
        return self._roll(info.first_offset)

    def _update_producers(
        self, analysis: ProducerAnalysis, segment: LogSegment, end_offset: int
    ) -> None:
        state = self._producers
        # Also where there is no producer: a snapshot is that of the log's end.
        state.map_end_offset = end_offset
        if analysis is NO_PRODUCERS:
            return
        for updated in analysis.updated_producers:
            state.update(updated)
        for txn in analysis.completed_txns:
            segment.update_txn_index(txn, state.transactions.last_stable_offset(txn))
            state.complete_txn(txn)
        self._watermarks.update_first_unstable_offset()


def _as_duplicate(info: LogAppendInfo, duplicate: BatchMetadata) -> LogAppendInfo:
    info.first_offset = duplicate.first_offset
    info.last_offset = duplicate.last_offset
    info.log_append_time = duplicate.timestamp
    info.is_duplicate = True
    return info
