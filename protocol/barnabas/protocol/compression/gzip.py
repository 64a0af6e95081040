"""
gzip: members of RFC 1952, one behind the other.

Kafka writes one member, and Java's name for an unknown system (0xff) into its header.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from struct import Struct
from typing import Final

from barnabas.protocol.compression.types import Buffer, CorruptCompressedData

_HEADER: Final = bytes.fromhex("1f8b08 00 00000000 00 ff")
_TRAILER: Final = Struct("<II")
_RAW_DEFLATE: Final = -zlib.MAX_WBITS
_MEMBER: Final = zlib.MAX_WBITS + 16
_SMALLEST_MEMBER: Final = 19
_INPUT_BYTES: Final = 16 * 1024
"""zlib copies what input is left over at each step: it is given little at a time."""


def compress(data: Buffer, level: int | None) -> bytes:
    deflate = zlib.compressobj(-1 if level is None else level, zlib.DEFLATED, _RAW_DEFLATE)
    body = deflate.compress(data) + deflate.flush()
    return _HEADER + body + _TRAILER.pack(zlib.crc32(data), len(data) & 0xFFFFFFFF)


def decompress_chunks(data: Buffer, chunk_bytes: int) -> Iterator[bytes]:
    """
    As Java's GZIPInputStream: what follows a member and does not begin like one, or has not even
    the size of an empty one, is passed over.
    """
    view = memoryview(data)
    position = 0
    while True:
        member = zlib.decompressobj(_MEMBER)
        while not member.eof:
            if position >= len(view):
                raise CorruptCompressedData("A gzip stream ends early.")
            piece: Buffer = view[position : position + _INPUT_BYTES]
            position += len(piece)
            # zlib names what follows a member both unused and unconsumed: only its end ends this.
            while piece and not member.eof:
                try:
                    chunk = member.decompress(piece, chunk_bytes)
                except zlib.error as error:
                    raise CorruptCompressedData(f"A gzip stream is corrupt: {error}.") from error
                if chunk:
                    yield chunk
                piece = member.unconsumed_tail
        position -= len(member.unused_data)
        if len(view) - position < _SMALLEST_MEMBER or view[position : position + 3] != _HEADER[:3]:
            return
