"""
Batches that cannot be decompressed: too large, or cut off.
"""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from crc32c import crc32c

from barnabas.protocol.compression import CompressionType
from barnabas.protocol.records.batch import CRC_AT, build_batch
from barnabas.protocol.records.record import SimpleRecord
from tests.support.limits import stated


@cache
def bomb(codec: CompressionType, *, base_offset: int = 0) -> bytes:
    """
    A batch of one record that exceeds the limit of decompression. snappy and LZ4 cannot compress
    that much; their batch has 8 MiB and lacks the last bytes of the stream.
    """
    too_large = codec in (CompressionType.GZIP, CompressionType.ZSTD)
    size = int(stated("decompressed")) if too_large else 8 * 2**20
    record = SimpleRecord(1, b"k", bytes(size))
    batch = build_batch([record], base_offset=base_offset, compression=codec)
    if too_large:
        return bytes(batch)
    torn = bytearray(batch[:-9])
    torn[8:12] = (len(torn) - 12).to_bytes(4, "big")
    torn[CRC_AT : CRC_AT + 4] = crc32c(torn[CRC_AT + 4 :]).to_bytes(4, "big")
    return bytes(torn)


@contextmanager
def memory_below(most: int) -> Iterator[None]:
    """
    Fail if Python allocates more than *most* bytes at any time.
    """
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        yield
        _, peak = tracemalloc.get_traced_memory()
        assert peak - before <= most
    finally:
        tracemalloc.stop()
