"""
snappy: blocks in the container of snappy-java, or one block alone.

::

    82 53 4e 41 50 50 59 00   version 1   oldest version that can read it 1
    then blocks, each         length   snappy block of up to 32 KiB

The numbers are int32. A second header may follow where a length could, as streams were joined.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import Final

from cramjam import DecompressionError
from cramjam import snappy as blocks

from barnabas.protocol.codec.primitives import Buffer
from barnabas.protocol.compression.types import CorruptCompressedData

_MAGIC: Final = b"\x82SNAPPY\0"
_HEADER: Final = Struct(">8sii")
_LENGTH: Final = Struct(">i")
_BLOCK_BYTES: Final = 32 * 1024
_OLDEST_VERSION: Final = 1
_BEST_RATIO: Final = 22
"""The shortest element of a block that gives the most is 3 bytes for 64."""


def compress(data: Buffer, _level: int | None) -> bytes:
    view = memoryview(data)
    parts = [_HEADER.pack(_MAGIC, 1, 1)]
    for at in range(0, len(view), _BLOCK_BYTES):
        block = bytes(blocks.compress_raw(view[at : at + _BLOCK_BYTES]))
        parts += _LENGTH.pack(len(block)), block
    return b"".join(parts)


def decompress_chunks(data: Buffer, _chunk_bytes: int) -> Iterator[bytes]:
    """
    As snappy-java's SnappyInputStream: fewer than 4 bytes behind the last block are passed over.
    """
    view = memoryview(data)
    if len(view) < _HEADER.size or bytes(view[: len(_MAGIC)]) != _MAGIC:
        yield from _block(view)
        return
    position = _HEADER.size
    while position + _LENGTH.size <= len(view):
        if view[position : position + _LENGTH.size] == _MAGIC[: _LENGTH.size]:
            if not _is_header(view[position : position + _HEADER.size]):
                return
            position += _HEADER.size
            continue
        (length,) = _LENGTH.unpack_from(view, position)
        position += _LENGTH.size
        if not 0 <= length <= len(view) - position:
            raise CorruptCompressedData(f"A snappy block cannot have {length} bytes.")
        yield from _block(view[position : position + length])
        position += length


def _is_header(header: memoryview) -> bool:
    if len(header) < _HEADER.size or bytes(header[: len(_MAGIC)]) != _MAGIC:
        return False
    _, version, _ = _HEADER.unpack(header)
    if version < _OLDEST_VERSION:
        raise CorruptCompressedData(f"A snappy stream has version {version}, which is too old.")
    return True


def _block(block: memoryview) -> Iterator[bytes]:
    try:
        size = blocks.decompress_raw_len(block)
        if size > _BEST_RATIO * len(block):
            raise CorruptCompressedData(
                f"A snappy block of {len(block)} bytes cannot become {size} bytes."
            )
        chunk = bytes(blocks.decompress_raw(block))
    except DecompressionError as error:
        raise CorruptCompressedData(f"A snappy block is corrupt: {error}.") from error
    if chunk:
        yield chunk
