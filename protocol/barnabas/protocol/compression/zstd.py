"""
zstd: frames of RFC 8878, one behind the other.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Final

from barnabas.protocol.compression.types import Buffer, CorruptCompressedData

if sys.version_info >= (3, 14):
    from compression.zstd import ZstdCompressor, ZstdDecompressor, ZstdError
else:
    from backports.zstd import ZstdCompressor, ZstdDecompressor, ZstdError

_DEFAULT_LEVEL: Final = 3


def compress(data: Buffer, level: int | None) -> bytes:
    """
    One frame that does not tell its size, closed after a flush, as Kafka's nested streams do it.
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
                raise CorruptCompressedData("A zstd stream ends early.")
        rest = frame.unused_data
