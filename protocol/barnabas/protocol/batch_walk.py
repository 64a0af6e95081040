"""
The way along the headers of batches that lie one after the other in a piece of a log.

An index leads near an offset, and from there on the headers have to be looked at: of batches of one
small record each, dozens for every fetch. Only the numbers that are needed are read, and nothing is
made of them.

This module is compiled when there is a compiler; see ``varints``. Reading byte by byte is what is
quick then, and slow else, so that there are two ways to do the same.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from mypy_extensions import i64

COMPILED: Final = not __file__.endswith(".py")

_PLACE: Final = Struct(">qi4xb6xi")
NEEDED_BYTES: Final = _PLACE.size
"""Of a header, so that it can be judged."""

_LENGTH_AT: Final = 8
_LOG_OVERHEAD: Final = 12
_MAGIC_AT: Final = 16
_LAST_OFFSET_DELTA_AT: Final = 23
_SMALLEST_LENGTH: Final = 14
_MAGIC: Final = 2


def find_batch(data: bytes, position: i64, target_offset: i64) -> tuple[i64, i64]:
    """
    The first batch from *position* on that ends at *target_offset* or behind it.

    Only its header need be in *data*.

    Returns:
        Its position and its size. If it is not among the headers in *data*, the position of the
        first header that is not, which may lie far behind the end, and 0; if there is something
        that is no batch of format 2, its position and -1.
    """
    if COMPILED:
        return find_by_bytes(data, position, target_offset)
    return find_by_struct(data, position, target_offset)


def find_by_bytes(data: bytes, position: i64, target_offset: i64) -> tuple[i64, i64]:
    end: i64 = len(data) - NEEDED_BYTES
    while position <= end:
        length: i64 = _int32(data, position + _LENGTH_AT)
        if length < _SMALLEST_LENGTH or data[position + _MAGIC_AT] != _MAGIC:
            return position, -1
        last_offset: i64 = _int32(data, position) << 32
        last_offset += _int32(data, position + 4) & 0xFFFFFFFF
        last_offset += _int32(data, position + _LAST_OFFSET_DELTA_AT)
        if last_offset >= target_offset:
            return position, length + _LOG_OVERHEAD
        position += length + _LOG_OVERHEAD
    return position, 0


def find_by_struct(data: bytes, position: int, target_offset: int) -> tuple[int, int]:
    unpack_from = _PLACE.unpack_from
    end = len(data) - NEEDED_BYTES
    while position <= end:
        base_offset, length, magic, last_offset_delta = unpack_from(data, position)
        if length < _SMALLEST_LENGTH or magic != _MAGIC:
            return position, -1
        if base_offset + last_offset_delta >= target_offset:
            return position, length + _LOG_OVERHEAD
        position += length + _LOG_OVERHEAD
    return position, 0


def _int32(data: bytes, position: i64) -> i64:
    high: i64 = data[position] << 8 | data[position + 1]
    low: i64 = data[position + 2] << 8 | data[position + 3]
    return (high ^ 0x8000) - 0x8000 << 16 | low
