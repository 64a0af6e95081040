"""
Where the records of a batch begin.

This module is compiled when there is a compiler, as those of ``barnabas.protocol`` are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from mypy_extensions import i64

COMPILED: Final = not __file__.endswith(".py")


def note_records(data: bytes, start: i64, end: i64, count: i64, found: list[int]) -> bool:
    """
    Append to *found* where the length of each of *count* records is, from *start* on.

    Returns:
        Whether the last one ends at *end*, and each has a length.
    """
    size: i64 = len(data)
    at: i64 = start
    while count > 0:
        if at >= size:
            return False
        found.append(at)
        count -= 1
        length: i64 = data[at]
        at += 1
        shift: i64 = 7
        while length >> shift:
            if at >= size or shift > 28:
                return False
            byte: i64 = data[at]
            at += 1
            # The top bit of what was there said only that it goes on.
            length += (byte << shift) - (1 << shift)
            shift += 7
        # What a fifth byte has beyond 32 bits is lost.
        length &= 0xFFFFFFFF
        if length & 1:
            return False
        at += length >> 1
    return at == end
