"""
Integers of variable size, many at once.

The numbers at many positions are read by array operations: the first byte of each, then the second
of those that go on, and so on. Nearly all numbers in records have one byte or two.

What is read is the raw number, before its sign is folded out: its lowest bit is the sign, and of a
length that says at once whether there is a null. The rules are those of ``barnabas.protocol``'s
``varints``.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int64]

_GOES_ON: Final = 0x80
_LOW_BITS: Final = 0x7F
VARINT_BYTES: Final = 5
VARLONG_BYTES: Final = 10


class MalformedRecords(Exception):
    """
    Some of the records are none. Which, has to be found out otherwise.
    """


def read_raw(data: Bytes, at: Ints, most_bytes: int = VARINT_BYTES) -> Ints:
    """
    The raw numbers at the positions *at*, which are moved behind them.

    Raises:
        MalformedRecords: a number is too long.
        IndexError: one is not inside *data*.
    """
    # To take is twice as fast as to index.
    raw = data.take(at).astype(np.int64)
    at += 1
    longer = np.flatnonzero(raw >= _GOES_ON)
    if not len(longer):
        return raw
    raw &= _LOW_BITS
    width = 1
    while len(longer):
        if width == most_bytes:
            raise MalformedRecords
        where = at[longer]
        byte = data.take(where).astype(np.int64)
        at[longer] = where + 1
        raw[longer] |= (byte & _LOW_BITS) << (7 * width)
        longer = longer[byte >= _GOES_ON]
        width += 1
    if most_bytes == VARINT_BYTES and width == VARINT_BYTES:
        # What a fifth byte has beyond 32 bits is lost.
        raw &= 0xFFFFFFFF
    return raw


def signed(raw: Ints) -> Ints:
    """
    The numbers themselves.
    """
    # The raw number of a varlong may fill all 64 bits: the shift must not bring its top bit along.
    return ((raw >> 1) & np.int64(0x7FFFFFFFFFFFFFFF)) ^ -(raw & 1)
