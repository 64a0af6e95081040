"""
Where the fields of records are, found by one walk over their bytes.

This module is compiled when there is a compiler, as those of ``barnabas.protocol`` are. As plain
Python it is slower than the array operations of ``record_arrays``, which then do without it.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

from typing import Final

from librt.strings import read_i32_le, read_i64_le
from librt.vecs import vec
from mypy_extensions import i64, u8

COMPILED: Final = not __file__.endswith(".py")

_GOES_ON: Final = 0x80
_VARINT_BYTES: Final = 5
_VARLONG_BYTES: Final = 10
_TOP_BIT: Final = -(1 << 63)
_63_BITS: Final = (1 << 63) - 1
_NOWHERE: Final = -(1 << 62)
"""Where a number ends that is none; no length leads back from there."""
_SHORT_BYTES: Final = 12
"""Of pieces whose bytes are in their views; see ``Spans``."""
_NUMBERS: Final = 5
"""Of each batch; see ``RecordFields.walk``."""


def _number(data: bytes, at: i64, most_bytes: i64) -> tuple[i64, i64]:
    """
    The raw number at *at*, and where it ends.
    """
    if at < 0 or at > len(data) - 8:
        return _longer(data, at, most_bytes)
    # Nearly all numbers have one byte or two: they are taken out of eight that are read at once.
    word: i64 = read_i64_le(data, at)
    if not word & 0x80:
        return word & 0x7F, at + 1
    if not word & 0x8000:
        return (word & 0x7F) | ((word >> 1) & 0x3F80), at + 2
    return _longer(data, at, most_bytes)


def _longer(data: bytes, at: i64, most_bytes: i64) -> tuple[i64, i64]:
    """
    The same for a number of any length, wherever it is.
    """
    size: i64 = len(data)
    raw: i64 = 0
    shift: i64 = 0
    while 0 <= at < size and shift < 7 * most_bytes:
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


def _view(data: bytes, start: i64, length: i64) -> tuple[i64, i64]:
    """
    A piece of *data*, as ``Spans.views`` has it.
    """
    if length > _SHORT_BYTES:
        return length, start << 32
    if start > len(data) - _SHORT_BYTES:
        return _view(data[start : start + length] + bytes(_SHORT_BYTES), 0, length)
    low: i64 = i64(read_i32_le(data, start))
    high: i64 = read_i64_le(data, start + 4)
    if length < 4:
        low &= _63_BITS >> (63 - 8 * length)
        high = 0
    elif length < _SHORT_BYTES:
        high &= _63_BITS >> (63 - 8 * (length - 4))
    return length | (low << 32), high


def _zeros(count: int) -> vec[i64]:
    return vec[i64]([0] * count)


class RecordFields:
    """
    The fields of up to *capacity* records, in arrays. Their buffers share the memory: the next walk
    changes what a caller sees in them.

    Of keys and values there is the view of each, as ``Spans`` has it, and 1 if it is not null.
    """

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.found: i64 = 0
        """How many records the last walk has noted."""
        self.record_ends = _zeros(capacity)
        self.timestamps = _zeros(capacity)
        self.offsets = _zeros(capacity)
        self.key_views = _zeros(2 * capacity)
        self.key_valid = vec[u8]([0] * capacity)
        self.value_views = _zeros(2 * capacity)
        self.value_valid = vec[u8]([0] * capacity)
        self.header_counts = _zeros(capacity)
        self.headers_at = _zeros(capacity)

    def walk(self, data: bytes, batches: vec[i64], *, headers: bool) -> bool:
        """
        Note the fields of all records of some batches, in place of those that were noted.

        Args:
            batches: five numbers of each batch: where its records begin and end, how many they are,
                its base offset, and its base timestamp in ms.
            headers: whether to note how many headers each record has, and where they begin.

        Returns:
            Whether each of them is a record, and the last one of each batch ends where that does.
        """
        self.found = 0
        slot: i64 = 0
        while slot < len(batches):
            if not self._add(data, batches, slot, headers):
                return False
            slot += _NUMBERS
        return True

    def _add(self, data: bytes, batches: vec[i64], slot: i64, with_headers: bool) -> bool:
        """
        Note the records of the batch whose numbers are in *batches* from *slot* on.
        """
        end: i64 = batches[slot + 1]
        base_offset, base_timestamp = batches[slot + 3], batches[slot + 4]
        timestamps, offsets, record_ends = self.timestamps, self.offsets, self.record_ends
        key_views, key_valid = self.key_views, self.key_valid
        value_views, value_valid = self.value_views, self.value_valid
        header_counts, headers_at = self.header_counts, self.headers_at
        at: i64 = batches[slot]
        index: i64 = self.found
        last: i64 = index + batches[slot + 2]
        while index < last:
            size, at = _number(data, at, _VARINT_BYTES)
            record_end: i64 = at + (size >> 1)
            # One byte of attributes, of which nothing is defined.
            raw, at = _number(data, at + 1, _VARLONG_BYTES)
            delta: i64 = (raw >> 1) ^ -(raw & 1)
            if raw < 0:
                # The shift has brought along the top bit, which is a digit here.
                delta ^= _TOP_BIT
            timestamps[index] = base_timestamp + delta
            raw, at = _number(data, at, _VARINT_BYTES)
            offsets[index] = base_offset + ((raw >> 1) ^ -(raw & 1))
            raw, at = _number(data, at, _VARINT_BYTES)
            key_start: i64 = at
            key_is_null: i64 = raw & 1
            if not key_is_null:
                at += raw >> 1
            key_length: i64 = at - key_start
            raw, at = _number(data, at, _VARINT_BYTES)
            value_start: i64 = at
            value_is_null: i64 = raw & 1
            if not value_is_null:
                at += raw >> 1
            if size & 1 or at < 0 or at > record_end or record_end > end:
                return False
            key_views[2 * index], key_views[2 * index + 1] = _view(data, key_start, key_length)
            key_valid[index] = u8(1 - key_is_null)
            view, where = _view(data, value_start, at - value_start)
            value_views[2 * index], value_views[2 * index + 1] = view, where
            value_valid[index] = u8(1 - value_is_null)
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
