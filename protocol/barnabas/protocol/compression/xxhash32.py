"""
XXH32, the checksum of LZ4 frames.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from mypy_extensions import i64

_MASK: Final = 0xFFFFFFFF
_PRIME_1: Final = 2654435761
_PRIME_2: Final = 2246822519
_PRIME_3: Final = 3266489917
_PRIME_4: Final = 668265263
_PRIME_5: Final = 374761393


def xxhash32(data: bytes) -> int:
    """
    The hash of *data* with seed 0.
    """
    size: i64 = len(data)
    position: i64 = 0
    total: i64 = _PRIME_5
    if size >= 16:
        a: i64 = (_PRIME_1 + _PRIME_2) & _MASK
        b: i64 = _PRIME_2
        c: i64 = 0
        d: i64 = -_PRIME_1 & _MASK
        while position <= size - 16:
            a = _round(a, _word(data, position))
            b = _round(b, _word(data, position + 4))
            c = _round(c, _word(data, position + 8))
            d = _round(d, _word(data, position + 12))
            position += 16
        total = _rotate(a, 1) + _rotate(b, 7) + _rotate(c, 12) + _rotate(d, 18)
    total += size
    while position <= size - 4:
        total = _product(_rotate(total + _product(_word(data, position), _PRIME_3), 17), _PRIME_4)
        position += 4
    while position < size:
        total = _product(_rotate(total + data[position] * _PRIME_5, 11), _PRIME_1)
        position += 1
    total &= _MASK
    total = _product(total ^ total >> 15, _PRIME_2)
    total = _product(total ^ total >> 13, _PRIME_3)
    return total ^ total >> 16


def _word(data: bytes, position: i64) -> i64:
    low: i64 = data[position] | data[position + 1] << 8
    high: i64 = data[position + 2] | data[position + 3] << 8
    return low | high << 16


def _round(lane: i64, word: i64) -> i64:
    return _product(_rotate(lane + _product(word, _PRIME_2), 13), _PRIME_1)


def _rotate(value: i64, bits: i64) -> i64:
    value &= _MASK
    return (value << bits | value >> (32 - bits)) & _MASK


def _product(a: i64, b: i64) -> i64:
    """
    The low 32 bits of *a* times *b*, both of 32 bits, without leaving 63 bits on the way.
    """
    return (a * (b & 0xFFFF) + ((a * (b >> 16) & 0xFFFF) << 16)) & _MASK
