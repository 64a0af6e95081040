"""
The batches of a log that stay when it is cleaned, and how those are written that stay in part.

The results for a batch::

    unchanged      all of its records stay, and it needs no delete horizon
    rewritten      some records stay, or tombstones or a marker in it begin their delay
    only a header  no record stays, but the batch is the last of its producer or of the cleaning
    removed        no record stays

A message of an old format is rewritten in any case if a part of it stays.

The first and last offset, the producer and its sequence do not change, so that offsets do not move
and a producer can continue (Kafka's MemoryRecords.filterTo and Cleaner.cleanInto).
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Final

from barnabas.protocol.compression import decompress_chunks
from barnabas.protocol.errors import InvalidRecord, KafkaError
from barnabas.protocol.records.batch import (
    HEADER_SIZE,
    NO_TIMESTAMP,
    LegacyBatch,
    RecordBatch,
    seal_batch,
)
from barnabas.protocol.records.record import encode_records, iter_records
from barnabas.storage.cleaner.legacy import look_at_legacy, rebuild_legacy
from barnabas.storage.cleaner.offset_map import OffsetMap
from barnabas.storage.cleaner.record_filter import (
    ALL,
    BY_KEY,
    NONE,
    KeyIndexer,
    RecordFilter,
    TimestampShift,
)
from barnabas.storage.cleaner.stats import CleanerStats
from barnabas.storage.cleaner.transactions import CleanedTransactionMetadata
from barnabas.storage.log.batch_rebuild import check_producer
from barnabas.storage.producers.entry import LastRecord
from barnabas.storage.threads.decompressed import DECOMPRESSED, BudgetShare
from barnabas.storage.units import LONG_MAX

RECORDS_PER_STEP: Final = 100
"""About 0.1 ms of compiled code, during which no other thread runs (benchmarks/cleaner.py)."""


JOINED: Final = 2
"""How often the pieces of a batch are in memory while they are joined."""

CleaningWalk = KeyIndexer | RecordFilter | TimestampShift


class BatchRetention(Enum):
    """
    The results for a batch of which no record stays.
    """

    DELETE = "it is removed, and its records are not read"
    DELETE_EMPTY = "it is removed"
    RETAIN_EMPTY = "its header stays"


class CleanedBatches:
    """
    The batches that stay of one read, in the order of the log.

    Adjacent batches that do not change are one piece, which is copied only when it is written.
    """

    def __init__(self, data: bytes) -> None:
        """
        Args:
            data: the bytes of the read.
        """
        self.largest_offset = -1
        """That of a record that stays, or of a batch that does not change or becomes a header."""
        self._view = memoryview(data)
        self._pieces: list[memoryview | bytearray] = []
        self._from = self._to = 0

    def keep(self, start: int, end: int, last_offset: int) -> None:
        """
        Add the batch from *start* up to *end*, which does not change.
        """
        if start != self._to:
            self._end_piece()
            self._from = start
        self._to = end
        self.largest_offset = max(self.largest_offset, last_offset)

    def add(self, batch: bytearray, largest_offset: int) -> None:
        """
        Add a batch that was rewritten.
        """
        self._end_piece()
        self._from = self._to
        self._pieces.append(batch)
        self.largest_offset = max(self.largest_offset, largest_offset)

    def _end_piece(self) -> None:
        if self._to > self._from:
            self._pieces.append(self._view[self._from : self._to])

    def take(self) -> memoryview:
        """
        The bytes of all batches.
        """
        self._end_piece()
        self._from = self._to
        if len(self._pieces) == 1:
            return memoryview(self._pieces[0])
        return memoryview(b"".join(self._pieces))


class BatchFilter:
    """
    Decides about the batches of a log, one after the other, in one cleaning.

    Invariants:

    1. The offset map is complete: it knows all keys up to its latest offset.
    2. Batches come in the order of the log, each once.
    """

    def __init__(
        self,
        offset_map: OffsetMap,
        transactions: CleanedTransactionMetadata,
        stats: CleanerStats,
        *,
        now_ms: int,
        delete_retention_ms: int,
        legacy_horizon_ms: int,
        end_offset: int,
        pause: Callable[[], None],
    ) -> None:
        """
        Args:
            now_ms: the time of the cleaning, the same for all batches.
            delete_retention_ms: how long tombstones and markers stay once they have a horizon.
            legacy_horizon_ms: tombstones of old formats are removed if their segment was not
                modified since.
            end_offset: records from here on do not change in this cleaning. The batch before it
                is never removed, so that the end of the log stays known.
            pause: called in the middle of large batches, so that other threads can run.
        """
        self.last_records: Mapping[int, LastRecord] = {}
        """The last record of each producer that may continue."""
        self._legacy_horizon_ms = legacy_horizon_ms
        self._keep_legacy_tombstones = True
        self._map = offset_map
        self._transactions = transactions
        self._stats = stats
        self._now_ms = now_ms
        horizon = now_ms + delete_retention_ms
        # With a retention of "for ever", Kafka's sum overflows and then is no horizon.
        self._new_horizon_ms = horizon if horizon <= LONG_MAX else None
        self._end_offset = end_offset
        self._pause = pause

    def begin_segment(self, last_modified_ms: int) -> None:
        """
        Note that the next batches are in a segment that was modified at that time.
        """
        self._keep_legacy_tombstones = last_modified_ms > self._legacy_horizon_ms

    def filter(self, batch: RecordBatch, data: bytes, out: CleanedBatches) -> None:
        """
        Decide about *batch*, which lies in *data*, and add its records that stay to *out*.

        Raises:
            InvalidRecord: the records are not whole or not consistent.
            CorruptCompressedData: the compressed stream is broken.
            UnknownServerError: the producer of a batch that is to be rewritten is not valid.
        """
        if isinstance(batch, LegacyBatch):
            self._filter_legacy(batch, out)
            return
        is_control = batch.is_control
        horizon_ms = batch.delete_horizon_ms
        if is_control:
            is_superfluous = self._transactions.on_control_batch_read(batch)
            discard = is_superfluous and horizon_ms is not None and horizon_ms <= self._now_ms
        else:
            is_superfluous = False
            discard = self._transactions.on_batch_read(batch)
        self._stats.bytes_read += batch.size
        retention = self._retention(batch, discard)
        if retention is BatchRetention.DELETE:
            return
        which = NONE if discard else ALL if is_control else BY_KEY
        if not batch.codec or batch.record_count <= 0:
            found = self._look(batch, data, batch.position + HEADER_SIZE, batch.end, which)
            self._take(batch, found, retention, is_superfluous, out)
            return
        with DECOMPRESSED.share() as share:
            payload = decompressed(batch, share)
            found = self._look(batch, payload, 0, len(payload), which)
            self._take(batch, found, retention, is_superfluous, out)

    def _take(
        self,
        batch: RecordBatch,
        found: RecordFilter,
        retention: BatchRetention,
        is_superfluous: bool,
        out: CleanedBatches,
    ) -> None:
        """
        Add the records that stay of a batch to *out*.

        Args:
            is_superfluous: whether it is a marker whose transaction has no records left.
        """
        horizon_ms = batch.delete_horizon_ms
        self._stats.messages_read += found.record_count
        self._stats.invalid_messages_read += found.invalid
        if found.kept == 0:
            if retention is BatchRetention.RETAIN_EMPTY:
                self._write(empty_batch(batch), batch.last_offset, 0, out)
            return
        needs_horizon = horizon_ms is None and (found.has_tombstones or is_superfluous)
        if found.kept == found.record_count and not needs_horizon:
            out.keep(batch.position, batch.end, batch.last_offset)
            self._stats.bytes_written += batch.size
            self._stats.messages_written += found.kept
            return
        new = self._rebuild(batch, found, self._new_horizon_ms if needs_horizon else horizon_ms)
        largest_offset = batch.base_offset + found.largest_offset_delta
        self._write(new, largest_offset, found.kept, out)

    def _filter_legacy(self, batch: LegacyBatch, out: CleanedBatches) -> None:
        """
        Write the records that stay of a message of an old format as a batch of the current one.
        """
        self._transactions.on_batch_read(batch)
        stats = self._stats
        stats.bytes_read += batch.size
        with DECOMPRESSED.share() as share:
            self._take_legacy(batch, share, out)

    def _take_legacy(self, batch: LegacyBatch, share: BudgetShare, out: CleanedBatches) -> None:
        stats = self._stats
        found = look_at_legacy(
            batch, self._map, share, keep_tombstones=self._keep_legacy_tombstones
        )
        stats.messages_read += found.messages_read
        stats.invalid_messages_read += found.invalid
        if found.kept:
            new = rebuild_legacy(batch, found.kept, self._new_horizon_ms)
            self._write(new, found.kept[-1].offset, len(found.kept), out)
        elif batch.next_offset == self._end_offset:
            raise KafkaError("Empty batches are only supported for magic v2 and above")

    def _write(self, batch: bytearray, offset: int, records: int, out: CleanedBatches) -> None:
        out.add(batch, offset)
        self._stats.bytes_written += len(batch)
        self._stats.messages_written += records

    def _retention(self, batch: RecordBatch, discard: bool) -> BatchRetention:
        if batch.producer_id >= 0 and self._is_last_of_producer(batch):
            return BatchRetention.RETAIN_EMPTY
        if batch.next_offset == self._end_offset:
            return BatchRetention.RETAIN_EMPTY
        return BatchRetention.DELETE if discard else BatchRetention.DELETE_EMPTY

    def _is_last_of_producer(self, batch: RecordBatch) -> bool:
        """
        Whether the batch has the last sequence or epoch of its producer: the sequence is in the
        last batch of data, and if that was removed, the epoch is in the last marker.
        """
        last = self.last_records.get(batch.producer_id)
        if last is None:
            return False
        if last.last_data_offset is not None:
            return batch.last_offset == last.last_data_offset
        return batch.is_control and batch.producer_epoch == last.producer_epoch

    def _look(
        self, batch: RecordBatch, data: bytes, start: int, end: int, which: int
    ) -> RecordFilter:
        """
        Find out which of the records from *start* up to *end* of *data* stay.
        """
        horizon_ms = batch.delete_horizon_ms
        found = RecordFilter(
            data,
            start,
            end,
            batch.record_count,
            base_offset=batch.base_offset,
            offset_map=self._map,
            which=which,
            keep_tombstones=horizon_ms is None or self._now_ms < horizon_ms,
        )
        run_to_end(found, self._pause)
        return found

    def _rebuild(
        self, batch: RecordBatch, found: RecordFilter, horizon_ms: int | None
    ) -> bytearray:
        """
        The batch with the records that stay (Kafka's MemoryRecordsBuilder).
        """
        check_producer(batch)
        if horizon_ms is not None and horizon_ms < 0:
            # A producer may have set the bit. It does not survive.
            horizon_ms = None
        first, least, largest = timestamps_of(batch, found)
        if least < NO_TIMESTAMP or largest > LONG_MAX:
            raise InvalidRecord(f"A record of {batch} has an invalid timestamp.")
        if not found.in_order:
            raise InvalidRecord(f"The offsets of the records of {batch} do not grow.")
        base_timestamp = first if horizon_ms is None else horizon_ms
        log_append_time = batch.max_timestamp if batch.timestamp_type else None
        return seal_batch(
            self._kept_records(batch, found, base_timestamp, log_append_time),
            found.kept,
            base_offset=batch.base_offset,
            last_offset_delta=batch.last_offset_delta,
            base_timestamp=base_timestamp,
            max_timestamp=largest,
            partition_leader_epoch=batch.partition_leader_epoch,
            compression=batch.compression,
            log_append_time=log_append_time,
            producer_id=batch.producer_id,
            producer_epoch=batch.producer_epoch,
            base_sequence=batch.base_sequence,
            is_transactional=batch.is_transactional,
            is_control=batch.is_control,
            delete_horizon_ms=horizon_ms,
        )

    def _kept_records(
        self,
        batch: RecordBatch,
        found: RecordFilter,
        base_timestamp: int,
        log_append_time: int | None,
    ) -> bytes | bytearray:
        """
        The records that stay, with timestamp deltas from *base_timestamp*.
        """
        kept = found.kept_records()
        if not found.all_regular:
            records = iter_records(
                kept,
                found.kept,
                base_offset=batch.base_offset,
                base_timestamp=batch.base_timestamp,
                log_append_time=log_append_time,
            )
            return encode_records(records, batch.base_offset, base_timestamp)
        if log_append_time is not None:
            shift = TimestampShift(kept, found.kept, log_append_time - base_timestamp, True)
        elif base_timestamp != batch.base_timestamp:
            shift = TimestampShift(kept, found.kept, batch.base_timestamp - base_timestamp, False)
        else:
            return kept
        run_to_end(shift, self._pause)
        return shift.records()


def decompressed(batch: RecordBatch, share: BudgetShare) -> bytes:
    """
    The records of a compressed batch, in one piece.

    Args:
        share: counts them; wait for it.

    Raises:
        CorruptCompressedData: the compressed stream is broken.
    """
    pieces = []
    for piece in decompress_chunks(batch.compression, batch.payload):
        share.take(JOINED * len(piece))
        pieces.append(piece)
    return b"".join(pieces)


def timestamps_of(batch: RecordBatch, found: RecordFilter) -> tuple[int, int, int]:
    """
    The first, the least and the largest timestamp of the records that stay, in ms.
    """
    if batch.timestamp_type:
        return batch.max_timestamp, batch.max_timestamp, batch.max_timestamp
    base = batch.base_timestamp
    return (
        base + found.first_timestamp_delta,
        base + found.least_timestamp_delta,
        base + found.largest_timestamp_delta,
    )


def empty_batch(batch: RecordBatch) -> bytearray:
    """
    The header of *batch* without its records, and without a codec or horizon, which are theirs.
    """
    return seal_batch(
        b"",
        0,
        base_offset=batch.base_offset,
        last_offset_delta=batch.last_offset_delta,
        base_timestamp=NO_TIMESTAMP,
        max_timestamp=batch.max_timestamp,
        partition_leader_epoch=batch.partition_leader_epoch,
        log_append_time=batch.max_timestamp if batch.timestamp_type else None,
        producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        base_sequence=batch.base_sequence,
        is_transactional=batch.is_transactional,
        is_control=batch.is_control,
    )


def run_to_end(walk: CleaningWalk, pause: Callable[[], None]) -> None:
    """
    Do all steps of *walk*, with a *pause* between them.
    """
    while not walk.step(RECORDS_PER_STEP):
        pause()
