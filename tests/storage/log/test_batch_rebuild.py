"""
The memory that it takes to compress a batch again.
"""

from __future__ import annotations

import pytest

from barnabas.protocol.compression import CompressionType, decompress
from barnabas.protocol.records.batch import build_batch, read_batch, seal_batch
from barnabas.protocol.records.record import SimpleRecord
from barnabas.storage.log.batch_rebuild import rebuild_batch
from tests.support.bombs import memory_below
from tests.support.limits import stated

COUNT = 50_000


@pytest.mark.parametrize("codec", [codec for codec in CompressionType if codec])
def test_a_batch_is_compressed_again_in_bounded_memory(codec: CompressionType) -> None:
    """
    One that becomes nearly as large as it may, for every codec of a topic.
    """
    records = [SimpleRecord(1, None, bytes(2**20))] * (int(stated("decompressed")) // 2**20 - 1)
    batch = read_batch(memoryview(build_batch(records, compression=codec)))
    scan = batch.scan()

    for target in CompressionType:
        with memory_below(int(stated("recompression"))):
            rebuild_batch(batch, scan, codec=target, level=None)


def test_records_that_are_renumbered_take_no_memory_one_by_one() -> None:
    """
    Their deltas are wrong, so that each has to be read and written again.
    """
    records = [SimpleRecord(1, None, b"x")] * COUNT
    data = bytearray(build_batch(records, compression=CompressionType.ZSTD))
    batch = read_batch(memoryview(data))
    payload = bytearray(decompress(batch.compression, batch.payload))
    payload[3] = 2  # the offset delta of the first record: 1
    gap = seal_batch(
        payload,
        batch.record_count,
        base_offset=0,
        last_offset_delta=batch.record_count - 1,
        base_timestamp=1,
        max_timestamp=1,
        compression=CompressionType.ZSTD,
    )
    renumbered = read_batch(memoryview(gap))
    scan = renumbered.scan()
    assert not scan.consecutive

    with memory_below(4 * len(payload)):
        rebuilt = rebuild_batch(renumbered, scan, codec=CompressionType.ZSTD, level=None)

    offsets = [record.offset for record in read_batch(memoryview(rebuilt)).records()]
    assert list(range(COUNT)) == offsets
