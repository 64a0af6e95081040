"""
The codecs in which the records of a batch may be compressed.

What is written is what Kafka writes, as far as the libraries make the same choices; what is read is
all that Kafka reads, up to a limit: a few bytes may stand for gigabytes. So nothing is decompressed
further than asked for, and no further than ``most_decompressed_bytes``.

gzip is the standard library's. zstd is the standard library's from Python 3.14 on, and before that
``backports.zstd``, which is the same code from the same hand. snappy and LZ4 are ``cramjam``, which
is typed and has raw blocks of both, and ``lz4`` for the levels that ``cramjam`` ignores; the frames
around the blocks, in which Kafka is particular, are ours. All have wheels for the systems and
versions that Python itself supports, and none is loaded before its codec is used.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib import import_module
from typing import Final, Protocol, cast

from barnabas.protocol.codec.primitives import INT32_MAX, Buffer
from barnabas.protocol.compression.types import (
    CompressionType,
    CorruptCompressedData,
    DecompressedTooLarge,
    UnknownCompression,
)

__all__ = [
    "LARGEST_BYTES",
    "LARGEST_RATIO",
    "CompressionType",
    "CorruptCompressedData",
    "DecompressedTooLarge",
    "UnknownCompression",
    "compress",
    "decompress",
    "decompress_chunks",
    "most_decompressed_bytes",
]

CHUNK_BYTES: Final = 16 * 1024
"""The size of the pieces that Kafka's streams read: the first damaged piece decides."""


LEAST_LIMIT_BYTES: Final = 64 * 1024 * 1024
LARGEST_RATIO: Final = 256
LARGEST_BYTES: Final = INT32_MAX
"""The largest buffer of Java: Kafka can neither compact nor compress again what becomes more."""


def most_decompressed_bytes(compressed_bytes: int) -> int:
    """
    The limit for the content of a stream of that many bytes. Records of real producers compress to
    a hundredth at the most, and a producer that repeats one byte makes batches of a few MiB.
    """
    return min(LARGEST_BYTES, max(LEAST_LIMIT_BYTES, LARGEST_RATIO * compressed_bytes))


class CompressionCodec(Protocol):
    """
    A module of this package.
    """

    def compress(self, data: Buffer, level: int | None) -> bytes: ...

    def decompress_chunks(self, data: Buffer, chunk_bytes: int) -> Iterator[bytes]: ...


@cache
def _codec(codec: CompressionType) -> CompressionCodec:
    return cast(CompressionCodec, import_module(f"{__name__}.{codec.name.lower()}"))


def compress(codec: CompressionType, data: Buffer, level: int | None = None) -> Buffer:
    """
    Args:
        level: in the codec's own scale; None for Kafka's default. snappy has no levels.
    """
    return _codec(codec).compress(data, level) if codec else data


def decompress(codec: CompressionType, data: Buffer) -> Buffer:
    """
    All of it at once.

    Raises:
        CorruptCompressedData: *data* are no whole stream of this codec.
        DecompressedTooLarge: they become too much.
    """
    return b"".join(decompress_chunks(codec, data)) if codec else data


def decompress_chunks(
    codec: CompressionType,
    data: Buffer,
    chunk_bytes: int = CHUNK_BYTES,
    most_bytes: int = LARGEST_BYTES,
) -> Iterator[bytes]:
    """
    The content of *data*, piece by piece, none of them empty.

    Pieces of gzip and zstd are no larger than *chunk_bytes*. LZ4 and snappy come in blocks and give
    one block after the other: at most 4 MiB of LZ4, and of snappy 22 times what is compressed.

    Args:
        most_bytes: in all, if that is less than ``most_decompressed_bytes``.

    Raises:
        CorruptCompressedData, DecompressedTooLarge: when that is found; the pieces before it may
            have been good.
    """
    if codec:
        most_bytes = min(most_bytes, most_decompressed_bytes(len(data)))
        chunks = _codec(codec).decompress_chunks(data, chunk_bytes)
        return _Limited(chunks, len(data), most_bytes)
    view = memoryview(data)
    return (bytes(view[at : at + chunk_bytes]) for at in range(0, len(view), chunk_bytes))


class _Limited:
    """
    Pieces, as long as they are not too many bytes. A generator would hold each while it is used, so
    that its memory could not be that of the next one.
    """

    __slots__ = ("_chunks", "_compressed_bytes", "_left", "_most_bytes")

    def __init__(self, chunks: Iterator[bytes], compressed_bytes: int, most_bytes: int) -> None:
        self._chunks = chunks
        self._compressed_bytes = compressed_bytes
        self._left = self._most_bytes = most_bytes

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        chunk = next(self._chunks)
        self._left -= len(chunk)
        if self._left < 0:
            before, most = self._compressed_bytes, self._most_bytes
            raise DecompressedTooLarge(f"{before} compressed bytes become more than {most} bytes")
        return chunk
