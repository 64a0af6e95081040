"""
How a log becomes shorter: at its start by retention and by request, at its end by truncation, in
its middle by compaction.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

import logging
from collections.abc import Sequence
from enum import Enum

from barnabas.protocol.errors import OffsetOutOfRange, PolicyViolation
from barnabas.storage.log.retention import Decision, LogState, Reason, decide, rules_of
from barnabas.storage.log.view import LogView
from barnabas.storage.producers.rebuild import delete_producer_snapshots, rebuild_producer_state
from barnabas.storage.segment.segment import LogSegment

logger = logging.getLogger(__name__)

HIGH_WATERMARK = -1
"""In a request to delete records: all up to the high watermark."""


class LogStartOffsetIncrementReason(Enum):
    """
    Why the log starts later than before.
    """

    SEGMENT_DELETION = "segment deletion"
    CLIENT_RECORD_DELETION = "client delete records request"
    SNAPSHOT_GENERATED = "snapshot generated"


class TrimmableLog(LogView):
    """
    The part of ``Log`` that makes it shorter. It takes the lock for what it changes.
    """

    _warned_of: int | None = None
    """The segment of which it was said that it is in the future."""

    def _roll(self, expected_next_offset: int = 0) -> LogSegment:
        raise NotImplementedError

    # At the start.

    def maybe_increment_log_start_offset(
        self, offset: int, reason: LogStartOffsetIncrementReason
    ) -> bool:
        """
        Let the log start at *offset*, if that is later than now; whether it is.

        Raises:
            OffsetOutOfRange: *offset* is above the high watermark.
            KafkaStorageError: the disk failed, or the log is closed.
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
            self._epochs.truncate_from_start_async_flush(offset)
            self._producers.state.on_log_start_offset_incremented(offset)
            watermarks.update_first_unstable_offset()
            return True

    def delete_records(self, offset: int) -> int:
        """
        Let the log start at *offset*, -1 for the high watermark, by request of a client; where it
        starts then. What is below leaves the disk with its segment (Kafka's Partition).

        Raises:
            PolicyViolation: the log is only compacted.
            OffsetOutOfRange: *offset* is above the high watermark, or negative.
            KafkaStorageError: the disk failed, or the log is closed.
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

    def delete_old_segments(self) -> int:
        """
        Delete the segments that retention lets go of; how many that were.

        Raises:
            KafkaStorageError: the disk failed, or the log is closed.
        """
        deleted = 0
        config = self.config
        for rule in rules_of(config):
            with self._guarded("deleting segments of"), self._lock:
                decision = decide(rule, self._state(), config, self._clock.now_ms())
                self._warn_of_future(decision)
                deleted += self._delete_segments(decision.deletable, rule.value)
        return deleted

    def _state(self) -> LogState[LogSegment]:
        return LogState(
            self._segments.values(),
            self.log_start_offset,
            self.high_watermark,
            self.log_end_offset,
        )

    def _warn_of_future(self, decision: Decision[LogSegment]) -> None:
        """
        Say once that a segment stays, and all behind it, because its records are not written yet.
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
        if len(going) == self._segments.number_of_segments:
            # There is always a segment.
            fresh = self._roll()
            if fresh.base_offset == going[-1].base_offset:
                del going[-1]
        following = self._segments.higher_segment(going[-1].base_offset) if going else None
        if following is not None:
            # The start moves first: nobody looks for what is not there.
            self.maybe_increment_log_start_offset(
                following.base_offset, LogStartOffsetIncrementReason.SEGMENT_DELETION
            )
            self._directory.remove_and_delete(going, reason)
        self._delete_producer_snapshots(going)
        return len(deletable)

    # At the end.

    def truncate_to(self, target_offset: int) -> bool:
        """
        Remove all from *target_offset* on; false if there is nothing.

        Raises:
            ValueError: *target_offset* is negative.
            KafkaStorageError: the disk failed, or the log is closed.
        """
        if target_offset < 0:
            raise ValueError(
                f"Cannot truncate partition {self.topic_partition} to a negative offset "
                f"({target_offset})."
            )
        watermarks = self._watermarks
        with self._guarded("truncating"), self._lock:
            if target_offset < watermarks.high_watermark:
                logger.warning(
                    "%s: truncating to offset %d below high watermark %d",
                    self.topic_partition,
                    target_offset,
                    watermarks.high_watermark,
                )
            if target_offset >= self.log_end_offset:
                # There may be an epoch in which nothing was written.
                self._epochs.truncate_from_end_async_flush(self.log_end_offset)
                return False
            logger.info("%s: truncating to offset %d", self.topic_partition, target_offset)
            if self.first_segment_base_offset > target_offset:
                self.truncate_fully_and_start_at(target_offset)
                return True
            self._delete_producer_snapshots(self._local.truncate_to(target_offset))
            self._epochs.truncate_from_end_async_flush(target_offset)
            watermarks.log_start_offset = min(target_offset, watermarks.log_start_offset)
            self._rebuild_producer_state(target_offset)
            watermarks.follow_log_end_offset()
            return True

    def truncate_fully_and_start_at(
        self, new_offset: int, log_start_offset: int | None = None
    ) -> None:
        """
        Remove everything and begin anew at *new_offset*.

        Raises:
            KafkaStorageError: the disk failed, or the log is closed.
        """
        with self._guarded("truncating all of"), self._lock:
            self._local.truncate_fully_and_start_at(new_offset)
            self._epochs.clear_and_flush()
            self._producers.state.truncate_fully_and_start_at(new_offset)
            start = new_offset if log_start_offset is None else log_start_offset
            self._watermarks.log_start_offset = start
            self._rebuild_producer_state(new_offset)
            self._watermarks.update_high_watermark(new_offset)

    def _rebuild_producer_state(self, end_offset: int) -> None:
        rebuild_producer_state(
            self._producers.state,
            self._segments,
            self.log_start_offset,
            end_offset,
            clock=self._clock,
        )

    # In the middle.

    def create_new_cleaned_segment(self, base_offset: int) -> LogSegment:
        """
        A segment that compaction may fill, to be given to ``replace_segments``.

        Raises:
            KafkaStorageError: the disk failed, or the log is closed.
        """
        with self._guarded("making a segment of"):
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
            with self._lock:
                gone = self._directory.replace(new_segments, old_segments)
                self._delete_producer_snapshots(gone)
            # Only the cleaner waits for the disk: appends depend on none of these names.
            self._directory.sync()

    def split_overflowed_segment(self, segment: LogSegment) -> None:
        """
        Put several segments in the place of one that has offsets too far from its base.

        Raises:
            ValueError: *segment* has no such offsets.
            KafkaStorageError: the disk failed, or the log is closed.
        """
        with self._guarded("splitting a segment of"):
            with self._lock:
                result = self._directory.split_overflowed_segment(segment)
                self._delete_producer_snapshots(result.deleted_segments)
            self._directory.sync()

    def _delete_producer_snapshots(self, segments: Sequence[LogSegment]) -> None:
        delete_producer_snapshots(
            self._producers.state,
            segments,
            self._directory.deferred,
            self.config.file_delete_delay_ms,
        )
