"""
The headers of batches that lie one after the other, read by one walk over them.

This module is compiled when there is a compiler, as ``record_fields`` is. As plain Python it is
slower than the array operations of ``batch_headers``, which then do without it.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

from typing import Final

from librt.strings import read_i16_be, read_i32_be, read_i64_be
from librt.vecs import vec
from mypy_extensions import i64

COMPILED: Final = not __file__.endswith(".py")

_HEADER_SIZE: Final = 61
_LENGTH_AT: Final = 8
_LOG_OVERHEAD: Final = 12
_SMALLEST_BATCH: Final = _HEADER_SIZE - _LOG_OVERHEAD
_NUMBERS: Final = 14


def whole_batches(data: bytes, start: i64) -> tuple[i64, i64, i64]:
    """
    How many batches lie whole in *data* from *start* on, where the next one would begin, and what
    is known of its size: see ``Walk.next_size``.
    """
    size: i64 = len(data)
    at: i64 = start
    count: i64 = 0
    while at <= size - _HEADER_SIZE:
        length: i64 = i64(read_i32_be(data, at + _LENGTH_AT))
        if length < _SMALLEST_BATCH:
            return count, at, -1
        end: i64 = at + _LOG_OVERHEAD + length
        if end > size:
            return count, at, end - at
        count += 1
        at = end
    return count, at, 0


def header_numbers(data: bytes, start: i64, count: i64) -> vec[i64]:
    """
    What the headers of *count* whole batches say, from *start* on: the numbers of ``HEADERS``, of
    one batch after the other.
    """
    numbers = vec[i64]([0] * (_NUMBERS * count))
    at: i64 = start
    slot: i64 = 0
    while slot < _NUMBERS * count:
        length: i64 = i64(read_i32_be(data, at + _LENGTH_AT))
        magic: i64 = data[at + 16]
        numbers[slot] = at
        numbers[slot + 1] = read_i64_be(data, at)
        numbers[slot + 2] = length
        numbers[slot + 3] = i64(read_i32_be(data, at + 12))
        numbers[slot + 4] = (magic ^ 0x80) - 0x80
        numbers[slot + 5] = i64(read_i32_be(data, at + 17)) & 0xFFFFFFFF
        numbers[slot + 6] = i64(read_i16_be(data, at + 21))
        numbers[slot + 7] = i64(read_i32_be(data, at + 23))
        numbers[slot + 8] = read_i64_be(data, at + 27)
        numbers[slot + 9] = read_i64_be(data, at + 35)
        numbers[slot + 10] = read_i64_be(data, at + 43)
        numbers[slot + 11] = i64(read_i16_be(data, at + 51))
        numbers[slot + 12] = i64(read_i32_be(data, at + 53))
        numbers[slot + 13] = i64(read_i32_be(data, at + 57))
        at += _LOG_OVERHEAD + length
        slot += _NUMBERS
    return numbers
