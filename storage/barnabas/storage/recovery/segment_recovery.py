"""
Recovering a segment after a crash.

Every batch is checked. The segment is cut at the first bad one: that is the end of a write which no
sync has covered, so that no promise is broken. The indexes, which were not synced either, are
rebuilt from the batches (Kafka's LogSegment.recover).
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from barnabas.protocol.errors import CorruptMessage, InvalidRecord
from barnabas.protocol.records.batch import MAGIC, RecordBatch
from barnabas.storage.producers.append_origin import AppendOrigin

if TYPE_CHECKING:
    from barnabas.storage.log.leader_epochs import LeaderEpochFileCache
    from barnabas.storage.producers.state import ProducerStateManager
    from barnabas.storage.segment.segment import LogSegment

logger = logging.getLogger(__name__)


def recover_segment(
    segment: LogSegment,
    producer_state: ProducerStateManager,
    leader_epochs: LeaderEpochFileCache,
) -> int:
    """
    Check every batch, cut off the rest behind the last good one, and rebuild the indexes.

    Args:
        producer_state: the state up to the base of this segment, and up to its end afterwards; it
            has the transactions that were aborted.
        leader_epochs: gets the epochs that it does not have.

    Returns:
        How many bytes were cut off.

    Raises:
        SegmentOffsetOverflow: an offset is too far from the base.
    """
    try:
        return SegmentRecovery(segment, producer_state, leader_epochs).run()
    finally:
        for index in segment.indexes:
            index.store()


class SegmentRecovery:
    """
    One walk through the batches of a segment.

    Invariants:

    1. Up to ``valid_bytes`` every batch is good, and is part of indexes, producers and epochs.
    2. Index entries are as far apart as if the batches had been appended in one run.
    """

    def __init__(
        self,
        segment: LogSegment,
        producer_state: ProducerStateManager,
        leader_epochs: LeaderEpochFileCache,
    ) -> None:
        self.valid_bytes = 0
        self._last_index_entry = 0
        self._segment = segment
        self._producer_state = producer_state
        self._leader_epochs = leader_epochs

    def run(self) -> int:
        """
        Returns:
            How many bytes were cut off.
        """
        segment = self._segment
        segment.reset_indexes()
        try:
            for batch in segment.log.batches():
                self._admit(batch)
        except (CorruptMessage, InvalidRecord) as error:
            logger.warning(
                "Found invalid messages in log segment %s at byte offset %d: %s",
                segment.log.path,
                self.valid_bytes,
                error,
            )
        truncated = segment.log.truncate_to(self.valid_bytes)
        if truncated:
            logger.debug(
                "Truncated %d invalid bytes at the end of segment %s", truncated, segment.log.path
            )
        # As when a segment is closed.
        segment.append_largest_timestamp(skip_full_check=True)
        return truncated

    def _admit(self, batch: RecordBatch) -> None:
        batch.ensure_valid()
        segment = self._segment
        segment.ensure_offset_in_range(batch.last_offset)
        segment.note_timestamp(batch.max_timestamp, batch.last_offset)
        if self.valid_bytes - self._last_index_entry > segment.index_interval_bytes:
            self._append_to_indexes(batch.last_offset)
        self.valid_bytes += batch.size
        if batch.magic >= MAGIC:
            self._learn_epoch(batch)
            self._update_producer_state(batch)

    def _append_to_indexes(self, offset: int) -> None:
        segment = self._segment
        # ``segment.index.bytes`` may have been lowered since the segment was written. Kafka ends
        # here; fewer entries than there could be only make a search longer.
        if not segment.offset_index.is_full and not segment.time_index.is_full:
            segment.offset_index.append(offset, self.valid_bytes)
            segment.append_largest_timestamp()
        self._last_index_entry = self.valid_bytes

    def _learn_epoch(self, batch: RecordBatch) -> None:
        epoch, latest = batch.partition_leader_epoch, self._leader_epochs.latest_epoch
        if epoch >= 0 and (latest is None or epoch > latest):
            self._leader_epochs.assign(epoch, batch.base_offset)

    def _update_producer_state(self, batch: RecordBatch) -> None:
        state = self._producer_state
        if batch.has_producer_id:
            append_info = state.prepare_update(batch.producer_id, AppendOrigin.REPLICATION)
            completed_txn = append_info.append(batch, None)
            state.update(append_info)
            if completed_txn is not None:
                self._segment.update_txn_index(
                    completed_txn, state.transactions.last_stable_offset(completed_txn)
                )
                state.complete_txn(completed_txn)
        state.map_end_offset = batch.last_offset + 1
