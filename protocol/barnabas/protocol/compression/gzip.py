"""
gzip: members of RFC 1952, one behind the other.

Kafka writes one member, and Java's name for an unknown system (0xff) into its header.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from struct import Struct
from typing import Final

from barnabas.protocol.codec.primitives import Buffer
from barnabas.protocol.compression.types import CorruptCompressedData

_HEADER: Final = bytes.fromhex("1f8b08 00 00000000 00 ff")
_TRAILER: Final = Struct("<II")
_EXTRA_SIZE: Final = Struct("<H")
_RAW_DEFLATE: Final = -zlib.MAX_WBITS
_SMALLEST_MEMBER: Final = 19
_INPUT_BYTES: Final = 8 * 1024
"""zlib copies what input is left over at each step: it is given little at a time."""

_FLAGS_AT: Final = 3
_HEADER_CRC, _EXTRA, _NAME, _COMMENT = 0x02, 0x04, 0x08, 0x10


def compress(data: Buffer, level: int | None) -> bytes:
    deflate = zlib.compressobj(-1 if level is None else level, zlib.DEFLATED, _RAW_DEFLATE)
    body = deflate.compress(data) + deflate.flush()
    return _HEADER + body + _TRAILER.pack(zlib.crc32(data), len(data) & 0xFFFFFFFF)


def decompress_chunks(data: Buffer, chunk_bytes: int) -> Iterator[bytes]:
    """
    As Java's GZIPInputStream: a trailer is looked at only when what is before it was taken, and
    what follows a member and does not begin like one, or has not even the size of an empty one, is
    passed over.
    """
    view = memoryview(data)
    position = _end_of_header(view, 0)
    while True:
        inflater = zlib.decompressobj(_RAW_DEFLATE)
        checksum = size = 0
        while not inflater.eof:
            if position >= len(view):
                raise CorruptCompressedData("A gzip stream ends early.")
            piece: Buffer = view[position : position + _INPUT_BYTES]
            position += len(piece)
            # zlib names what follows a member both unused and unconsumed: only its end ends this.
            while piece and not inflater.eof:
                try:
                    chunk = inflater.decompress(piece, chunk_bytes)
                except zlib.error as error:
                    raise CorruptCompressedData(f"A gzip stream is corrupt: {error}.") from error
                checksum = zlib.crc32(chunk, checksum)
                size += len(chunk)
                if chunk:
                    yield chunk
                piece = inflater.unconsumed_tail
        position -= len(inflater.unused_data)
        if view[position : position + _TRAILER.size] != _TRAILER.pack(checksum, size & 0xFFFFFFFF):
            raise CorruptCompressedData("A gzip stream has another checksum or size than it says.")
        position += _TRAILER.size
        if len(view) - position < _SMALLEST_MEMBER:
            return
        try:
            position = _end_of_header(view, position)
        except CorruptCompressedData:
            return


def _end_of_header(view: memoryview, start: int) -> int:
    """
    Raises:
        CorruptCompressedData: there is no whole header. Flags without a meaning are passed over.
    """
    position = start + len(_HEADER)
    if view[start : start + _FLAGS_AT] != _HEADER[:_FLAGS_AT] or position > len(view):
        raise CorruptCompressedData("A gzip stream does not begin like one.")
    flags = view[start + _FLAGS_AT]
    if flags & _EXTRA and position + _EXTRA_SIZE.size <= len(view):
        position += _EXTRA_SIZE.size + _EXTRA_SIZE.unpack_from(view, position)[0]
    for flag in (_NAME, _COMMENT):
        if flags & flag:
            position = bytes(view).find(b"\0", position) + 1 or len(view) + 1
    if flags & _HEADER_CRC:
        checksum = zlib.crc32(view[start:position]) & 0xFFFF
        if view[position : position + 2] != checksum.to_bytes(2, "little"):
            raise CorruptCompressedData("A gzip header has another checksum than it says.")
        position += 2
    if position > len(view):
        raise CorruptCompressedData("A gzip header ends early.")
    return position
