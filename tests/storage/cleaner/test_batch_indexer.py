from __future__ import annotations

from typing import Unpack

import pytest

from barnabas.protocol.compression import CompressionType
from barnabas.protocol.records.batch import BatchOptions, batches, build_batch
from barnabas.protocol.records.control import ControlRecordType, EndTransactionMarker
from barnabas.protocol.records.record import SimpleRecord
from barnabas.storage.cleaner.batch_filter import RECORDS_PER_STEP
from barnabas.storage.cleaner.batch_indexer import BatchIndexer
from barnabas.storage.cleaner.offset_map import BYTES_PER_ENTRY, OffsetMap
from barnabas.storage.cleaner.stats import CleanerStats
from barnabas.storage.cleaner.transactions import CleanedTransactionMetadata
from barnabas.storage.index.txn_index import AbortedTxn
from tests.support.clock import StillClock


class Indexer:
    def __init__(self, *, start_offset: int = 0, most_keys: int = 5000) -> None:
        self.offset_map = OffsetMap(10_000 * BYTES_PER_ENTRY)
        self.transactions = CleanedTransactionMetadata()
        self.stats = CleanerStats(StillClock())
        self.pauses = 0
        self.indexer = BatchIndexer(
            self.offset_map,
            self.transactions,
            self.stats,
            start_offset=start_offset,
            most_keys=most_keys,
            pause=self._pause,
        )

    def _pause(self) -> None:
        self.pauses += 1

    def take_in(self, *sources: bytearray) -> list[bool]:
        data = b"".join(sources)
        return [self.indexer.take_in(batch, data) for batch in batches(data)]


def batch_of(*keys: bytes, base_offset: int = 0, **options: Unpack[BatchOptions]) -> bytearray:
    records = [SimpleRecord(0, key, b"v") for key in keys]
    return build_batch(records, base_offset=base_offset, **options)


@pytest.mark.parametrize("codec", CompressionType)
def test_indexer_reads_keys_of_batches_in_every_codec(codec: CompressionType) -> None:
    test = Indexer()
    first = batch_of(b"a", b"b", compression=codec)
    second = batch_of(b"b", base_offset=2, compression=codec)

    assert [True, True] == test.take_in(first, second)

    assert (0, 2) == (test.offset_map.get(b"a"), test.offset_map.get(b"b"))
    assert 3 == test.stats.map_messages_read
    assert len(first) + len(second) == test.stats.map_bytes_read


def test_aborted_data_and_markers_are_counted_but_add_no_keys() -> None:
    test = Indexer()
    test.transactions.add_aborted_transactions([AbortedTxn(7, 0, 2, 3)])
    data = batch_of(b"a", b"b", producer_id=7, is_transactional=True)
    marker = EndTransactionMarker(ControlRecordType.ABORT, 0).batch(
        0, base_offset=2, producer_id=7, producer_epoch=0
    )

    assert [True, True] == test.take_in(data, marker)

    assert (0, 2) == (test.offset_map.size, test.offset_map.latest_offset)
    assert 3 == test.stats.map_messages_read
    assert len(data) + len(marker) == test.stats.map_bytes_read


def test_indexing_a_large_batch_yields_to_other_threads() -> None:
    test = Indexer()

    test.take_in(batch_of(*(b"%d" % at for at in range(2 * RECORDS_PER_STEP + 1))))

    assert 2 == test.pauses
    assert 2 * RECORDS_PER_STEP + 1 == test.offset_map.size
