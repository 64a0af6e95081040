"""
A set of offsets that lie close together: a bit for each.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

import mmap
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mypy_extensions import i64


class OffsetSet:
    """
    Some of the offsets that were added; all others are not in it.

    Invariants:

    1. It has no offsets but those of its range.
    2. It takes a byte for eight offsets of the range, and touches memory only where there are some.
    """

    def __init__(self, first: i64, count: i64) -> None:
        """
        Args:
            first, count: the range.
        """
        self._first: i64 = first
        self._count: i64 = count
        self._bits = zeros((count + 7) // 8)

    def add(self, offset: i64) -> None:
        """
        Add *offset*, if it is of the range.
        """
        at: i64 = offset - self._first
        if 0 <= at < self._count:
            bits: i64 = self._bits[at >> 3]
            self._bits[at >> 3] = bits | 1 << (at & 7)

    def has(self, offset: i64) -> bool:
        at: i64 = offset - self._first
        if at < 0 or at >= self._count:
            return False
        bits: i64 = self._bits[at >> 3]
        return (bits >> (at & 7)) & 1 == 1


def zeros(size: int) -> memoryview[int]:
    """
    Memory that the system provides page by page when it is written to, and gets back with the last
    reference to it; a bytearray is written to from end to end when it is made.
    """
    return memoryview(mmap.mmap(-1, size, access=mmap.ACCESS_COPY))
