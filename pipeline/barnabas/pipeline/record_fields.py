"""
Where the fields of records are, found by one walk over their bytes.

This module is compiled when there is a compiler, as those of ``barnabas.protocol`` are. As plain
Python it is slower than the array operations of ``record_spans``, which then do without it.
"""

from __future__ import annotations

from typing import Final

from librt.vecs import vec
from mypy_extensions import i32, i64, u8

COMPILED: Final = not __file__.endswith(".py")

_GOES_ON: Final = 0x80
_VARINT_BYTES: Final = 5
_VARLONG_BYTES: Final = 10
_NOWHERE: Final = -(1 << 62)
"""Where a number ends that is none; no length leads back from there."""


def _number(data: bytes, at: i64, most_bytes: i64) -> tuple[i64, i64]:
    """
    The raw number at *at*, and where it ends.
    """
    if at < 0 or at >= len(data):
        return 0, _NOWHERE
    raw: i64 = data[at]
    return (raw, at + 1) if raw < _GOES_ON else _longer(data, at, most_bytes)


def _longer(data: bytes, at: i64, most_bytes: i64) -> tuple[i64, i64]:
    size: i64 = len(data)
    raw: i64 = 0
    shift: i64 = 0
    while at < size and shift < 7 * most_bytes:
        byte: i64 = data[at]
        at += 1
        raw |= (byte & 0x7F) << shift
        if byte < _GOES_ON:
            if shift == 28 and most_bytes == _VARINT_BYTES:
                # What a fifth byte has beyond 32 bits is lost.
                raw &= 0xFFFFFFFF
            return raw, at
        shift += 7
    return 0, _NOWHERE


def _zeros(count: int) -> vec[i64]:
    return vec[i64]([0] * count)


class RecordFields:
    """
    The fields of *records* records, in arrays that share their memory with whoever asks for their
    buffer.

    Of keys and values there is where each begins and ends, in turn, and whether it is not null.
    Where *headers* are wanted, also how many each record has, and where the first of them begins.
    """

    def __init__(self, records: int, *, headers: bool) -> None:
        self.headers = headers
        self.found: i64 = 0
        self.record_ends = _zeros(records)
        self.timestamp_deltas = _zeros(records)
        self.offset_deltas = _zeros(records)
        self.key_edges = vec[i32]([0] * (2 * records))
        self.key_valid = vec[u8]([0] * records)
        self.value_edges = vec[i32]([0] * (2 * records))
        self.value_valid = vec[u8]([0] * records)
        self.header_counts = _zeros(records if headers else 0)
        self.headers_at = _zeros(records if headers else 0)

    def add(self, data: bytes, start: i64, end: i64, count: i64) -> bool:
        """
        Note the fields of *count* records more, which begin at *start*.

        Returns:
            Whether each of them is a record, and the last one ends at *end*.
        """
        timestamp_deltas, offset_deltas = self.timestamp_deltas, self.offset_deltas
        key_edges, key_valid = self.key_edges, self.key_valid
        value_edges, value_valid = self.value_edges, self.value_valid
        record_ends, header_counts = self.record_ends, self.header_counts
        headers_at, with_headers = self.headers_at, self.headers
        at: i64 = start
        index: i64 = self.found
        last: i64 = index + count
        while index < last:
            size, at = _number(data, at, _VARINT_BYTES)
            record_end: i64 = at + (size >> 1)
            # One byte of attributes, of which nothing is defined.
            raw, at = _number(data, at + 1, _VARLONG_BYTES)
            # The shift must not bring along the top bit, which is a digit here.
            timestamp_deltas[index] = ((raw >> 1) & 0x7FFFFFFFFFFFFFFF) ^ -(raw & 1)
            raw, at = _number(data, at, _VARINT_BYTES)
            offset_deltas[index] = (raw >> 1) ^ -(raw & 1)
            raw, at = _number(data, at, _VARINT_BYTES)
            key_start: i64 = at
            has_key = not raw & 1
            if has_key:
                at += raw >> 1
            key_end: i64 = at
            raw, at = _number(data, at, _VARINT_BYTES)
            value_start: i64 = at
            has_value = not raw & 1
            if has_value:
                at += raw >> 1
            if size & 1 or at < 0 or at > record_end or record_end > end:
                return False
            key_edges[2 * index] = i32(key_start)
            key_edges[2 * index + 1] = i32(key_end)
            key_valid[index] = has_key
            value_edges[2 * index] = i32(value_start)
            value_edges[2 * index + 1] = i32(at)
            value_valid[index] = has_value
            if with_headers:
                raw, at = _number(data, at, _VARINT_BYTES)
                header_counts[index] = raw >> 1
                headers_at[index] = at
                has_headers = raw != 0
                if raw & 1 or raw >> 1 > record_end - at or has_headers == (at == record_end):
                    return False
            record_ends[index] = at = record_end
            index += 1
        self.found = index
        return at == end
