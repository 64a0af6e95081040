"""
Integers of variable size, as records hold them.

Numbers are zig-zag encoded (0, -1, 1, -2 become 0, 1, 2, 3), then cut into groups of 7 bits, lowest
first, each but the last with its top bit set: at most 5 bytes for 32 bits (a varint) and 10 for 64
(a varlong). As in Kafka's ByteUtils, a longer one is an error, and bits beyond the width are lost.

This module is compiled when there is a compiler. It keeps within 64 signed bits at every step, so
that it gives the same as machine integers and as Python's.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from mypy_extensions import i64

CUT: Final = -1
"""In the place of a position: the data end before the number does."""
TOO_LONG: Final = -2
"""In the place of a position: the number does not end where it must."""


def int32(value: int) -> int:
    """
    *value* modulo 2**32, as a signed number: Java's ``(int) value``.
    """
    return (value + 0x80000000 & 0xFFFFFFFF) - 0x80000000


def int64(value: int) -> int:
    """
    *value* modulo 2**64, as a signed number: Java's ``(long) value``.
    """
    return (value + (1 << 63) & 0xFFFFFFFFFFFFFFFF) - (1 << 63)


def next_varint(data: bytes, position: i64, end: i64) -> tuple[i64, i64]:
    """
    The 32-bit number at *position*, and the position behind it or ``CUT`` or ``TOO_LONG``.
    """
    raw: i64 = 0
    shift: i64 = 0
    while position < end:
        byte: i64 = data[position]
        position += 1
        if shift == 28:
            if byte >= 0x80:
                return 0, TOO_LONG
            byte &= 0x0F
        raw |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (raw >> 1) ^ -(raw & 1), position
        shift += 7
    return 0, CUT


def next_varlong(data: bytes, position: i64, end: i64) -> tuple[i64, i64]:
    """
    The 64-bit number at *position*, and the position behind it or ``CUT`` or ``TOO_LONG``.
    """
    if position >= end:
        return 0, CUT
    byte: i64 = data[position]
    position += 1
    sign: i64 = byte & 1
    magnitude: i64 = (byte & 0x7F) >> 1
    shift: i64 = 6
    while byte >= 0x80:
        if position >= end:
            return 0, CUT
        byte = data[position]
        position += 1
        if shift == 62:
            if byte >= 0x80:
                return 0, TOO_LONG
            byte &= 1
        magnitude |= (byte & 0x7F) << shift
        shift += 7
    return magnitude ^ -sign, position


def append_varint(out: bytearray, value: i64) -> None:
    """
    Append *value*, of 32 or 64 bits.
    """
    sign: i64 = 1 if value < 0 else 0
    rest: i64 = value ^ -sign
    byte: i64 = (rest & 0x3F) << 1 | sign
    rest >>= 6
    while rest:
        out.append(byte | 0x80)
        byte = rest & 0x7F
        rest >>= 7
    out.append(byte)
