"""
The first pass of a cleaning: the keys of a log, and the last offset of each.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

from collections.abc import Callable

from barnabas.protocol.records.batch import HEADER_SIZE, LegacyBatch, RecordBatch
from barnabas.storage.cleaner.batch_filter import decompressed, run_to_end
from barnabas.storage.cleaner.offset_map import OffsetMap
from barnabas.storage.cleaner.record_filter import KeyIndexer
from barnabas.storage.cleaner.stats import CleanerStats
from barnabas.storage.cleaner.transactions import CleanedTransactionMetadata
from barnabas.storage.threads.decompressed import DECOMPRESSED


class BatchIndexer:
    """
    Adds the keys of batches to an offset map (Kafka's Cleaner.buildOffsetMapForSegment).

    Batches come in the order of the log, each once. Those of aborted transactions do not count.
    """

    def __init__(
        self,
        offset_map: OffsetMap,
        transactions: CleanedTransactionMetadata,
        stats: CleanerStats,
        *,
        start_offset: int,
        most_keys: int,
        pause: Callable[[], None],
    ) -> None:
        """
        Args:
            start_offset: keys of records below are left out.
            most_keys: how many keys the map may hold.
            pause: called in the middle of large batches, so that other threads can run.
        """
        self._map = offset_map
        self._transactions = transactions
        self._stats = stats
        self._start_offset = start_offset
        self._most_keys = most_keys
        self._pause = pause

    def take_in(self, batch: RecordBatch, data: bytes) -> bool:
        """
        Add the keys of *batch*, which lies in *data*; return whether there was room for all.

        Raises:
            InvalidRecord: the records are not whole or not consistent.
            CorruptCompressedData: the compressed stream is broken.
        """
        stats = self._stats
        if batch.is_control:
            self._transactions.on_control_batch_read(batch)
            stats.map_messages_read += 1
        elif self._transactions.on_batch_read(batch):
            stats.map_messages_read += batch.record_count
        elif isinstance(batch, LegacyBatch):
            if not self._take_in_legacy_keys(batch):
                return False
        elif not self._take_in_keys(batch, data):
            return False
        if batch.last_offset >= self._start_offset:
            self._map.update_latest_offset(batch.last_offset)
        stats.map_bytes_read += batch.size
        return True

    def _take_in_keys(self, batch: RecordBatch, data: bytes) -> bool:
        if not batch.codec or batch.record_count <= 0:
            return self._index(batch, data, batch.position + HEADER_SIZE, batch.end)
        with DECOMPRESSED.share() as share:
            payload = decompressed(batch, share)
            return self._index(batch, payload, 0, len(payload))

    def _index(self, batch: RecordBatch, data: bytes, start: int, end: int) -> bool:
        indexer = KeyIndexer(
            data,
            start,
            end,
            batch.record_count,
            base_offset=batch.base_offset,
            offset_map=self._map,
            start_offset=self._start_offset,
            most_keys=self._most_keys,
        )
        run_to_end(indexer, self._pause)
        self._stats.map_messages_read += indexer.messages_read
        return not indexer.is_full

    def _take_in_legacy_keys(self, batch: LegacyBatch) -> bool:
        for record in batch.records():
            if record.key is not None and record.offset >= self._start_offset:
                if self._map.size >= self._most_keys:
                    return False
                self._map.put(record.key, record.offset)
            self._stats.map_messages_read += 1
        return True
