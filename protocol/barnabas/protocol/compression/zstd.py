"""
zstd: frames of RFC 8878, one behind the other.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Final

from barnabas.protocol.codec.primitives import Buffer
from barnabas.protocol.compression.types import CorruptCompressedData

if sys.version_info >= (3, 14):
    from compression.zstd import ZstdCompressor, ZstdDecompressor, ZstdError
else:
    from backports.zstd import ZstdCompressor, ZstdDecompressor, ZstdError

_DEFAULT_LEVEL: Final = 3
_PORTION_BYTES: Final = 131_075
"""The size of the pieces that Kafka's decompressor reads: the largest block with its header."""


def compress(data: Buffer, level: int | None) -> bytes:
    """
    One frame without its size, closed after a flush, as Kafka's nested streams do it.
    """
    compressor = ZstdCompressor(level=_DEFAULT_LEVEL if level is None else level)
    return (
        compressor.compress(data)
        + compressor.flush(ZstdCompressor.FLUSH_BLOCK)
        + compressor.flush(ZstdCompressor.FLUSH_FRAME)
    )


def decompress_chunks(data: Buffer, chunk_bytes: int) -> Iterator[bytes]:
    rest: Buffer = data
    while rest:
        start = len(data) - len(rest)
        frame = ZstdDecompressor()
        while not frame.eof:
            try:
                chunk = frame.decompress(rest, chunk_bytes)
            except ZstdError as error:
                raise CorruptCompressedData(f"A zstd stream is corrupt: {error}.") from error
            rest = b""
            if chunk:
                yield chunk
            elif frame.needs_input and not frame.eof:
                if _may_end_early(start, len(data)):
                    return
                raise CorruptCompressedData("A zstd stream ends early.")
        rest = frame.unused_data


def _may_end_early(start: int, end: int) -> bool:
    """
    Whether a frame may be cut: Kafka's decompressor (``ZstdInputStreamNoFinalizer``) remembers that
    the frame before was whole, until it takes another portion of the stream.
    """
    return start % _PORTION_BYTES != 0 and start // _PORTION_BYTES == (end - 1) // _PORTION_BYTES
