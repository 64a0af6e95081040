"""
Cleaning one log: only the last one of the records with the same key stays.

::

    log start        first dirty              uncleanable        log end
    |----------------|------------------------|------------------|
     pass 1           keys -> offset map
     pass 2: copied without records that have a
             later one of the same key

The first pass reads the dirty part and stores the last offset of each key, until the offset map
has no room left or the part that can be cleaned ends. The second pass copies all segments up to
there, several small ones into one, without the records that have a later one in the map, and
replaces the old segments by the copies. Offsets do not change (Kafka's Cleaner).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from barnabas.protocol.records.batch import RecordBatch
from barnabas.storage.cleaner.batch_filter import RECORDS_PER_STEP, BatchFilter, CleanedBatches
from barnabas.storage.cleaner.batch_indexer import BatchIndexer
from barnabas.storage.cleaner.batch_reader import BatchReader, ReadBatches
from barnabas.storage.cleaner.cleanable import LogToClean
from barnabas.storage.cleaner.offset_map import OffsetMap
from barnabas.storage.cleaner.segment_groups import group_segments_by_size
from barnabas.storage.cleaner.settings import CleanerSettings
from barnabas.storage.cleaner.states import LogCleaningAborted
from barnabas.storage.cleaner.stats import CleanerStats
from barnabas.storage.cleaner.transactions import CleanedTransactionMetadata
from barnabas.storage.clock import Clock
from barnabas.storage.errors import KafkaError, KafkaStorageError, SegmentOffsetOverflow
from barnabas.storage.log.log import Log
from barnabas.storage.segment.segment import LogSegment
from barnabas.storage.topic_partition import TopicPartition

logger = logging.getLogger(__name__)

_RECORDS_PER_BATCH: Final = 10
"""A batch takes about as much time as this many records (benchmarks/cleaner.py)."""


class Cleaner:
    """
    Cleans logs, one after the other, with memory that is the same for all.

    One thread may use it. While it cleans a log, others may read it and append to it; the caller
    prevents truncation, deletion and retention of the log.
    """

    def __init__(
        self,
        settings: CleanerSettings,
        *,
        throttle: Callable[[int], None],
        check_done: Callable[[TopicPartition], None],
        clock: Clock,
        pause: Callable[[], None],
    ) -> None:
        """
        Args:
            throttle: called with the number of bytes that were read or written; it may block.
            check_done: called often; raises ``LogCleaningAborted`` if the cleaning is to end.
            pause: called several times a millisecond, to let other threads run.

        Raises:
            ValueError: the settings leave no room for a key.
        """
        settings.check()
        self.offset_map = OffsetMap(settings.map_bytes)
        """For the keys of the log that is cleaned; it is empty in between."""
        self._most_keys = int(settings.room)
        self._reader = BatchReader(settings.read_buffer_bytes, settings.max_message_bytes, throttle)
        self._throttle = throttle
        self._check_done = check_done
        self._clock = clock
        self._pause = pause

    def clean(self, to_clean: LogToClean) -> tuple[int, CleanerStats]:
        """
        Clean a log up to its uncleanable offset, or as far as the offset map has room.

        Returns:
            The offset up to which the log is clean now, and the numbers of the cleaning.

        Raises:
            LogCleaningAborted: the caller's ``check_done`` said so, or a segment had to be split
                first. Groups of segments that were complete are cleaned, the others are as before.
            KafkaStorageError: the disk failed, or the log is closed.
            KafkaError, ValueError: the log cannot be cleaned as it is. It is as before, but for
                groups that were complete.
        """
        stats = CleanerStats(self._clock)
        now_ms = self._clock.now_ms()
        log = to_clean.log
        end_of_round = to_clean.uncleanable_offset
        try:
            self._build_offset_map(log, to_clean.first_dirty_offset, end_of_round, stats)
            stats.index_done()
            end_offset = self.offset_map.latest_offset + 1
            # Before a record is removed, the later one with its key must survive a crash.
            log.flush(end_offset)
            self._rewrite(to_clean, end_offset, now_ms, stats)
            stats.buffer_utilization = self.offset_map.utilization
        finally:
            self.offset_map.clear()
        stats.all_done()
        logger.info("%s: cleaned up to offset %d %s", log.topic_partition, end_offset, stats)
        return end_offset, stats

    # The first pass.

    def _build_offset_map(self, log: Log, start: int, end: int, stats: CleanerStats) -> None:
        """
        Add the keys from offset *start* up to *end*, or until the map is full.
        """
        offset_map = self.offset_map
        dirty = log.segments.values_between(start, end)
        transactions = CleanedTransactionMetadata()
        transactions.add_aborted_transactions(log.collect_aborted_transactions(start, end))
        indexer = BatchIndexer(
            offset_map,
            transactions,
            stats,
            start_offset=start,
            most_keys=self._most_keys,
            pause=self._pause,
        )
        ends = [segment.base_offset for segment in dirty[1:]] + [end]
        for segment, end_of_segment in zip(dirty, ends, strict=False):
            for batch, data in self._read_dirty(log, segment, start):
                if not indexer.take_in(batch, data):
                    logger.debug("%s: the offset map is full in %s", log.topic_partition, segment)
                    return
            # No record has the offsets between the last batch and the next segment.
            offset_map.update_latest_offset(end_of_segment - 1)

    def _read_dirty(
        self, log: Log, segment: LogSegment, start: int
    ) -> Iterator[tuple[RecordBatch, bytes]]:
        """
        The batches of a segment from about offset *start* on, and the bytes in which they lie.

        Raises:
            KafkaError: the disk failed. As in Kafka, this is an error of the log only; other reads
                and writes find out whether the disk has failed.
        """
        position = segment.offset_index.lookup(start).position
        try:
            for read in self._read(log, segment, position):
                for batch in self._with_pauses(read.batches):
                    yield batch, read.data
        except KafkaStorageError as error:
            raise KafkaError(
                f"Failed to read from segment {segment} of partition {log.topic_partition} while "
                "loading offset map"
            ) from error

    def _read(self, log: Log, segment: LogSegment, position: int = 0) -> Iterator[ReadBatches]:
        partition = log.topic_partition
        self._check_done(partition)
        most = log.config.max_message_bytes
        for read in self._reader.read(segment.log, position, max_message_bytes=most):
            yield read
            self._pause()
            self._check_done(partition)

    def _with_pauses(self, batches: Iterable[RecordBatch]) -> Iterator[RecordBatch]:
        work = 0
        for batch in batches:
            yield batch
            work += batch.record_count + _RECORDS_PER_BATCH
            if work >= RECORDS_PER_STEP:
                work = 0
                self._pause()

    # The second pass.

    def _rewrite(
        self, to_clean: LogToClean, end_offset: int, now_ms: int, stats: CleanerStats
    ) -> None:
        """
        Rewrite all segments that begin below *end_offset*.
        """
        log, end_of_round = to_clean.log, to_clean.uncleanable_offset
        config = log.config
        clean = log.segments.values_between(0, to_clean.first_dirty_offset)
        transactions = CleanedTransactionMetadata()
        batch_filter = BatchFilter(
            self.offset_map,
            transactions,
            stats,
            now_ms=now_ms,
            delete_retention_ms=config.delete_retention_ms,
            legacy_horizon_ms=(
                clean[-1].last_modified() - config.delete_retention_ms if clean else 0
            ),
            end_offset=end_of_round,
            pause=self._pause,
        )
        groups = group_segments_by_size(
            log.segments.values_between(0, end_offset),
            max_size=config.segment_size,
            max_index_size=config.segment_index_bytes,
            uncleanable_offset=end_of_round,
        )
        for group in groups:
            self._clean_group(log, group, transactions, batch_filter)

    def _clean_group(
        self,
        log: Log,
        group: Sequence[LogSegment],
        transactions: CleanedTransactionMetadata,
        batch_filter: BatchFilter,
    ) -> None:
        """
        Replace several segments by one.
        """
        cleaned = log.create_new_cleaned_segment(group[0].base_offset)
        with _given_up_on_failure(cleaned):
            transactions.cleaned_index = cleaned.txn_index
            batch_filter.last_records = log.last_records_of_active_producers()
            ends = [segment.base_offset for segment in group[1:]] + [group[-1].read_next_offset()]
            for segment, end in zip(group, ends, strict=True):
                # Of the whole range, as the index of the new segment is made from it.
                transactions.add_aborted_transactions(
                    log.collect_aborted_transactions(segment.base_offset, end)
                )
                self._clean_into(log, segment, cleaned, batch_filter)
            cleaned.on_become_inactive_segment()
            cleaned.flush()
            # Retention uses this time where records have no timestamps.
            cleaned.set_last_modified(group[-1].last_modified())
        log.replace_segments([cleaned], group)

    def _clean_into(
        self, log: Log, segment: LogSegment, cleaned: LogSegment, batch_filter: BatchFilter
    ) -> None:
        """
        Append the records that stay of *segment* to *cleaned*.
        """
        batch_filter.begin_segment(segment.last_modified())
        for read in self._read(log, segment):
            out = CleanedBatches(read.data)
            for batch in self._with_pauses(read.batches):
                batch_filter.filter(batch, read.data, out)
            records = out.take()
            if len(records) == 0:
                continue
            try:
                cleaned.append(out.largest_offset, records)
            except SegmentOffsetOverflow as error:
                # It can be cleaned once it is split: this cleaning is given up.
                logger.info("%s: %s", log.topic_partition, error)
                log.split_overflowed_segment(segment)
                raise LogCleaningAborted(str(error)) from error
            self._throttle(len(records))


@contextmanager
def _given_up_on_failure(cleaned: LogSegment) -> Iterator[None]:
    """
    Remove an unfinished segment if something fails; but leave a disk alone that has failed.
    """
    try:
        yield
    except KafkaStorageError:
        cleaned.close_handlers()
        raise
    except BaseException:
        cleaned.close_handlers()
        cleaned.delete_if_exists()
        raise
