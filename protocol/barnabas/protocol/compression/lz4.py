"""
LZ4: a frame of the LZ4 frame format, as far as Kafka goes along with it.

::

    04 22 4d 18   FLG   BD   content size (if FLG says so)      HC = second byte of their XXH32
    then blocks, each        length (top bit: not compressed)   block   XXH32 (if FLG says so)
    then                     00 00 00 00                        XXH32 (if FLG says so, not checked)

    FLG: bits 6-7 version = 1, 5 independent blocks = 1, 4 block checksum, 3 content size,
         2 content checksum, 0-1 zero
    BD:  bits 4-6 largest block: 4 to 7 for 64 KiB, 256 KiB, 1 MiB, 4 MiB; all others zero

The numbers have their lowest byte first. Blocks that depend on the ones before them are refused,
and what follows the frame is not looked at (Kafka's Lz4BlockInputStream).

Two libraries, because each gives the very bytes of Kafka where the other does not: ``cramjam`` with
the fast compressor, ``lz4`` with the slow one, whose level ``cramjam`` ignores.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from io import BytesIO
from struct import Struct
from typing import TYPE_CHECKING, Final

from cramjam import DecompressionError
from cramjam import lz4 as blocks

from barnabas.protocol.codec.primitives import Buffer
from barnabas.protocol.compression.types import CorruptCompressedData
from barnabas.protocol.compression.xxhash32 import xxhash32

if TYPE_CHECKING:
    from mypy_extensions import i64

_FRAME_HEADER: Final = bytes.fromhex("04224d18 60 40 82")
_MAGIC: Final = _FRAME_HEADER[:4]
_BLOCK_BYTES: Final = 64 * 1024
_LENGTH: Final = Struct("<I")
_END_MARK: Final = bytes(4)
_NOT_COMPRESSED: Final = 1 << 31

_DEFAULT_LEVEL: Final = 9
"""Kafka's default is a level of the slow compressor, and means the fast one."""
_HIGHEST_LEVEL: Final = 12

_CONTENT_CHECKSUM: Final = 0x04
_CONTENT_SIZE: Final = 0x08
_BLOCK_CHECKSUM: Final = 0x10
_MUST_BE: Final = 0x60
_MUST_BE_MASK: Final = 0xE3


def compress(data: Buffer, level: int | None) -> bytes:
    view = memoryview(data)
    parts = [_FRAME_HEADER]
    for at in range(0, len(view), _BLOCK_BYTES):
        plain = bytes(view[at : at + _BLOCK_BYTES])
        block = _compress_block(plain, _DEFAULT_LEVEL if level is None else level)
        if len(block) < len(plain):
            parts += _LENGTH.pack(len(block)), block
        else:
            parts += _LENGTH.pack(len(plain) | _NOT_COMPRESSED), plain
    parts.append(_END_MARK)
    return b"".join(parts)


def _compress_block(plain: bytes, level: int) -> bytes:
    if level == _DEFAULT_LEVEL:
        return bytes(blocks.compress_block(plain, store_size=False))
    slow_blocks = import_module("lz4.block")
    block: bytes = slow_blocks.compress(
        plain, "high_compression", compression=min(level, _HIGHEST_LEVEL), store_size=False
    )
    return block


def decompress_chunks(data: Buffer, _chunk_bytes: int) -> Iterator[bytes]:
    view = memoryview(data)
    size: i64 = len(view)
    flags, block_bytes, position = _read_frame_header(view)
    behind: i64 = 4 if flags & _BLOCK_CHECKSUM else 0
    room = BytesIO(bytes(block_bytes))
    while True:
        _need(size, position, 4)
        (word,) = _LENGTH.unpack_from(view, position)
        length: i64 = word & ~_NOT_COMPRESSED
        begin = position + 4
        position = begin + length
        if length == 0:
            _need(size, begin, 4 if flags & _CONTENT_CHECKSUM else 0)
            return
        if length > block_bytes:
            raise CorruptCompressedData(f"An LZ4 block of {length} bytes exceeds {block_bytes}.")
        _need(size, begin, length + behind)
        block = view[begin:position]
        if behind > 0:
            if _LENGTH.unpack_from(view, position)[0] != xxhash32(bytes(block)):
                raise CorruptCompressedData("An LZ4 block does not fit its checksum.")
            position += behind
        chunk = bytes(block) if word & _NOT_COMPRESSED else _decompress_block(block, room)
        if chunk:
            yield chunk
        del chunk  # Who kept it alive would make ``room`` take new memory.


def _decompress_block(block: memoryview, room: BytesIO) -> bytes:
    """
    The content of *block*, decompressed into *room*.

    These are the very bytes of *room*, which takes others only if somebody still has them when the
    next block comes: who looks at one piece after the other does so without a copy.
    """
    # A ``with`` takes longer than the rest of this.
    memory = room.getbuffer()
    try:
        size: int = blocks.decompress_block_into(block, memory)
    except DecompressionError as error:
        raise CorruptCompressedData(f"An LZ4 block is corrupt: {error}") from error
    finally:
        memory.release()
    chunk = room.getvalue()
    return chunk if size == len(chunk) else chunk[:size]


def _read_frame_header(view: memoryview) -> tuple[int, i64, i64]:
    """
    The flags, the size of the largest block, and where the first one begins.
    """
    _need(len(view), 0, 7)
    if view[:4] != _MAGIC:
        raise CorruptCompressedData("There is no LZ4 frame.")
    flags, descriptor = view[4], view[5]
    if flags & _MUST_BE_MASK != _MUST_BE or descriptor & 0x8F or descriptor < 0x40:
        raise CorruptCompressedData(
            f"An LZ4 frame with descriptor {flags:#04x} {descriptor:#04x} is not supported."
        )
    end = 14 if flags & _CONTENT_SIZE else 6
    _need(len(view), end, 1)
    if xxhash32(bytes(view[4:end])) >> 8 & 0xFF != view[end]:
        raise CorruptCompressedData("The descriptor of an LZ4 frame is corrupt.")
    return flags, 1 << (2 * (descriptor >> 4) + 8), end + 1


def _need(size: i64, position: i64, needed: i64) -> None:
    if size - position < needed:
        raise CorruptCompressedData("An LZ4 frame ends early.")
