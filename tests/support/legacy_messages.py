"""
Messages of the versions 0 and 1, which no broker writes any more.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final, NamedTuple
from zlib import crc32

from barnabas.protocol.compression import CompressionType, compress

LOG_APPEND_TIME: Final = 0x08
_LZ4_CHECKSUM_AT: Final = 6


class Legacy(NamedTuple):
    """
    A message that is not compressed.
    """

    offset: int
    key: bytes | None
    value: bytes | None
    timestamp: int = -1


def legacy_message(
    magic: int,
    offset: int,
    key: bytes | None,
    value: bytes | None,
    *,
    timestamp: int = -1,
    attributes: int = 0,
) -> bytes:
    """
    A message with its offset and size in front of it.
    """
    body = struct.pack(">bb", magic, attributes)
    if magic > 0:
        body += struct.pack(">q", timestamp)
    for data in (key, value):
        body += struct.pack(">i", -1 if data is None else len(data)) + (data or b"")
    message = struct.pack(">I", crc32(body)) + body
    return struct.pack(">qi", offset, len(message)) + message


def legacy_wrapper(
    magic: int,
    codec: CompressionType,
    messages: Sequence[Legacy],
    *,
    offset: int | None = None,
    timestamp: int = -1,
    attributes: int = 0,
) -> bytes:
    """
    A compressed message that wraps *messages*, whose offsets are written as they are.

    Args:
        offset: that of the wrapper; None for that of its last message.
    """
    inner = b"".join(
        legacy_message(magic, m.offset, m.key, m.value, timestamp=m.timestamp) for m in messages
    )
    stream = bytes(compress(codec, inner))
    if magic == 0 and codec is CompressionType.LZ4:
        stream = with_old_lz4_checksum(stream)
    last = messages[-1].offset if offset is None else offset
    return legacy_message(
        magic, last, None, stream, timestamp=timestamp, attributes=attributes | codec
    )


def with_old_lz4_checksum(stream: bytes) -> bytes:
    """
    A frame with another checksum in its header, as old clients computed another one.
    """
    wrong = stream[_LZ4_CHECKSUM_AT] ^ 0xFF
    return stream[:_LZ4_CHECKSUM_AT] + bytes([wrong]) + stream[_LZ4_CHECKSUM_AT + 1 :]
