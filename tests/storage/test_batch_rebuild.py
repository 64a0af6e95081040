"""
The memory that it takes to compress a batch again.
"""

from __future__ import annotations

import pytest

from barnabas.protocol.compression import CompressionType
from barnabas.protocol.record_batch import build_batch, read_batch
from barnabas.protocol.records import SimpleRecord
from barnabas.storage.batch_rebuild import rebuild_batch
from tests.support.bombs import memory_below
from tests.support.limits import stated


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
            rebuild_batch(
                batch,
                scan,
                base_offset=0,
                leader_epoch=0,
                codec=target,
                level=None,
                log_append_time=None,
            )
