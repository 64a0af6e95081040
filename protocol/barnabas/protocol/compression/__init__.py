"""
The codecs in which the records of a batch may be compressed.

What is written is what Kafka writes, as far as the libraries make the same choices; what is read is
all that Kafka reads. Nothing is decompressed further than asked for: a few bytes may stand for
gigabytes.

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

from barnabas.protocol.compression.types import (
    Buffer,
    CompressionType,
    CorruptCompressedData,
    UnknownCompression,
)

__all__ = [
    "CompressionType",
    "CorruptCompressedData",
    "UnknownCompression",
    "compress",
    "decompress",
    "decompress_chunks",
]

CHUNK_BYTES: Final = 16 * 1024
"""As much as Kafka's streams take at once: of what is wrong, the first such piece decides."""


class Codec(Protocol):
    """
    A module of this package.
    """

    def compress(self, data: Buffer, level: int | None) -> bytes: ...

    def decompress_chunks(self, data: Buffer, chunk_bytes: int) -> Iterator[bytes]: ...


@cache
def _codec(codec: CompressionType) -> Codec:
    return cast(Codec, import_module(f"{__name__}.{codec.name.lower()}"))


def compress(codec: CompressionType, data: Buffer, level: int | None = None) -> Buffer:
    """
    Args:
        level: in the codec's own scale; None for Kafka's default. snappy has no levels.
    """
    return _codec(codec).compress(data, level) if codec else data


def decompress(codec: CompressionType, data: Buffer) -> Buffer:
    """
    All of it at once, however much it becomes.

    Raises:
        CorruptCompressedData: *data* are no whole stream of this codec.
    """
    return b"".join(_codec(codec).decompress_chunks(data, CHUNK_BYTES)) if codec else data


def decompress_chunks(
    codec: CompressionType, data: Buffer, chunk_bytes: int = CHUNK_BYTES
) -> Iterator[bytes]:
    """
    What *data* become, piece by piece, none of them empty.

    Pieces of gzip and zstd are no larger than *chunk_bytes*. LZ4 and snappy come in blocks and give
    one block after the other: at most 4 MiB of LZ4, and of snappy 22 times what is compressed.

    Raises:
        CorruptCompressedData: when that is found; the pieces before it may have been good.
    """
    if codec:
        return _codec(codec).decompress_chunks(data, chunk_bytes)
    view = memoryview(data)
    return (bytes(view[at : at + chunk_bytes]) for at in range(0, len(view), chunk_bytes))
