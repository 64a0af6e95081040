"""
Where the records of a batch begin.
"""

from __future__ import annotations


def note_records(data: bytes, start: int, end: int, count: int, found: list[int]) -> bool:
    """
    Append to *found* where the length of each of *count* records is, from *start* on.

    Returns:
        Whether the last one ends at *end*, and each has a length.
    """
    size: int = len(data)
    at: int = start
    while count > 0:
        if at >= size:
            return False
        found.append(at)
        count -= 1
        length: int = data[at]
        at += 1
        shift: int = 7
        while length >> shift:
            if at >= size or shift > 28:
                return False
            byte: int = data[at]
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
