"""
The records of a batch, read one by one and complained about as Apache Kafka does.

``protocol.records`` reads the same records, but says what is wrong in words of its own, and only
after that nothing of the batch is of use to it. A dump shows all that can be read, then exactly
what Kafka's DefaultRecord says about the rest.

No object is made of a record: its fields are attributes of the reader until the next one is read,
and key and value stay where they lie.

This module is compiled when there is a compiler. It keeps within 64 signed bits at every step.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.storage.dump.failure import ILLEGAL_ARGUMENT, INVALID_RECORD, DumpFailure
from barnabas.storage.dump.java_text import int32, int64

if TYPE_CHECKING:
    from mypy_extensions import i64

_CUT: Final = -1
_TOO_LONG: Final = -2
_NO_SEQUENCE: Final = -1
_NUMBERS_BYTES: Final = 16
"""What a quick look needs: room for the numbers in front of a key, at most three bytes each."""
_LARGEST_DELTA: Final = 1 << 62
"""Sums of a base and a delta that are both smaller need not be looked at."""

BAD_STRUCTURE: Final = "Found invalid record structure"
PREMATURE_END: Final = "Incorrect declared batch size, premature EOF reached"
RECORDS_LEFT: Final = "Incorrect declared batch size, records still remaining in file"


class RecordReader:
    """
    One walk over the records of a batch of version 2.

    Invariants:

    1. After ``advance`` returned True the attributes tell the record at hand.
    2. A size is -1, never less, where there is no key or value.

    Args:
        data: the records, decompressed, from *position* up to its end.
        record_count: as the batch has it, not negative.
        log_append_time: the timestamp of all records; None for those that they bring.
        streamed: whether the records came out of a decompressor. Then each one is a buffer of its
            own, which decides what Kafka says about a number that points beyond it.
    """

    def __init__(
        self,
        data: bytes,
        position: i64,
        record_count: i64,
        *,
        base_offset: int,
        base_timestamp: int,
        base_sequence: int,
        log_append_time: int | None,
        streamed: bool,
    ) -> None:
        self.data = data
        self.offset: int = 0
        self.timestamp: int = 0
        self.sequence: int = _NO_SEQUENCE
        self.key_size: i64 = -1
        self.value_size: i64 = -1
        self.header_count: i64 = 0
        self._key_at: i64 = 0
        self._value_at: i64 = 0
        self._headers_at: i64 = 0
        self._size: i64 = 0
        self._limit: i64 = 0
        self._position: i64 = position
        self._end: i64 = len(data)
        self._left: i64 = record_count
        self._base_offset = base_offset
        self._base_timestamp = base_timestamp
        self._base_sequence = base_sequence
        self._log_append_time = log_append_time
        self._streamed = streamed
        self._wraps = abs(base_offset) >= _LARGEST_DELTA or abs(base_timestamp) >= _LARGEST_DELTA

    def advance(self) -> bool:
        """
        Read the next record; False if there is none.

        Raises:
            DumpFailure: what there is, is no record; or bytes follow the last one.
        """
        if self._left <= 0:
            return False
        self._left -= 1
        if self._wraps or not self._advance_regular():
            self._advance_carefully()
        if self._left == 0 and self._position != self._end:
            raise DumpFailure(INVALID_RECORD, RECORDS_LEFT)
        return True

    def _advance_regular(  # noqa: C901, PLR0911, PLR0912, PLR0915 - calls cost more than numbers
        self,
    ) -> bool:
        """
        Read a record that is whole and has no headers; False, and nothing read, if it is another.
        """
        data = self.data
        end: i64 = self._end
        at: i64 = self._position
        if end - at < _NUMBERS_BYTES:
            return False
        size: i64 = data[at]
        at += 1
        if size > 0x7F:
            size += (data[at] << 7) - 0x80
            at += 1
            if size > 0x3FFF:
                size, at = _varint(data, at - 2, end)
                size <<= 1
        record_end: i64 = at + (size >> 1)
        if size & 1 or at < 0 or record_end > end:
            return False

        delta: i64 = data[at + 1]
        at += 2
        if delta > 0x7F:
            delta += (data[at] << 7) - 0x80
            at += 1
        if delta > 0x3FFF:
            delta, at = _varlong(data, at - 2, record_end)
            if at < 0 or delta >= _LARGEST_DELTA or delta <= -_LARGEST_DELTA:
                return False
        else:
            delta = (delta >> 1) ^ -(delta & 1)

        if at + 2 >= record_end:
            return False
        offset_delta: i64 = data[at]
        at += 1
        if offset_delta > 0x7F:
            offset_delta += (data[at] << 7) - 0x80
            at += 1
            if offset_delta > 0x3FFF:
                offset_delta, at = _varint(data, at - 2, record_end)
                offset_delta <<= 1
        if offset_delta & 1 or at < 0 or at + 2 >= record_end:
            return False

        key_size: i64 = data[at]
        at += 1
        if key_size > 0x7F:
            key_size += (data[at] << 7) - 0x80
            at += 1
            if key_size > 0x3FFF:
                return False
        key_at: i64 = at
        key_size = -1 if key_size & 1 else key_size >> 1
        if key_size > 0:
            at += key_size
        if at + 1 >= record_end:
            return False

        value_size: i64 = data[at]
        at += 1
        if value_size > 0x7F:
            value_size += (data[at] << 7) - 0x80
            at += 1
            if value_size > 0x3FFF:
                value_size, at = _varint(data, at - 2, record_end)
                value_size <<= 1
        value_at: i64 = at
        value_size = -1 if value_size & 1 or value_size < 0 else value_size >> 1
        if value_size > 0:
            at += value_size
        if at + 1 != record_end or data[at] != 0:
            return False

        self._key_at = key_at
        self.key_size = key_size
        self._value_at = value_at
        self.value_size = value_size
        self.header_count = 0
        self._position = record_end
        self.offset = self._base_offset + (offset_delta >> 1)
        if self._log_append_time is None:
            self.timestamp = self._base_timestamp + delta
        else:
            self.timestamp = self._log_append_time
        if self._base_sequence >= 0:
            self.sequence = increment_sequence(self._base_sequence, offset_delta >> 1)
        return True

    def _advance_carefully(self) -> None:
        """
        Read a record number by number, and complain of what is wrong.
        """
        data = self.data
        start = self._read_size()
        limit: i64 = self._limit
        if start >= limit:
            raise DumpFailure(INVALID_RECORD, BAD_STRUCTURE)
        delta, at = _varlong(data, start + 1, limit)
        if at < 0:
            raise DumpFailure(INVALID_RECORD, BAD_STRUCTURE)
        offset_delta, at = _varint(data, at, limit)
        if at < 0:
            raise DumpFailure(INVALID_RECORD, BAD_STRUCTURE)
        self._key_at, self.key_size = self._bytes_at(at)
        self._value_at, self.value_size = self._bytes_at(self._key_at + max(self.key_size, 0))
        at = self._pass_headers(self._value_at + max(self.value_size, 0))
        if at - start != self._size:
            raise DumpFailure(
                INVALID_RECORD,
                f"Invalid record size: expected to read {self._size} bytes in record payload, "
                f"but instead read {at - start}",
            )
        self._position = at
        self._place(offset_delta, delta)

    def _read_size(self) -> i64:
        """
        Read the size of the next record, and tell where what it counts begins.
        """
        position = self._position
        size, start = _varint(self.data, position, self._end)
        if start < 0:
            if start == _TOO_LONG and not self._streamed:
                raise DumpFailure(ILLEGAL_ARGUMENT, _too_long_text(self.data, position))
            raise DumpFailure(INVALID_RECORD, PREMATURE_END)
        self._size = size
        self._limit = self._end
        there = self._end - start
        if self._streamed:
            if size < 0:
                raise DumpFailure(INVALID_RECORD, PREMATURE_END)
            self._limit = start + size
        if size > there:
            raise DumpFailure(
                INVALID_RECORD,
                f"Invalid record size: expected {size} bytes in record payload, but "
                + (
                    "the record payload reached EOF."
                    if self._streamed
                    else f"instead the buffer has only {there} remaining bytes."
                ),
            )
        return start

    def _bytes_at(self, position: i64) -> tuple[i64, i64]:
        """
        Where the bytes lie whose size is at *position*, and that size; -1 for null.
        """
        limit: i64 = self._limit
        size, at = _varint(self.data, position, limit)
        if at < 0 or size > limit - at:
            raise DumpFailure(INVALID_RECORD, BAD_STRUCTURE)
        return at, max(size, -1)

    def _pass_headers(self, position: i64) -> i64:
        """
        Remember the headers that begin with their count at *position*, and tell where they end.
        """
        limit: i64 = self._limit
        count, at = _varint(self.data, position, limit)
        if at < 0:
            raise DumpFailure(INVALID_RECORD, BAD_STRUCTURE)
        if count < 0:
            raise DumpFailure(INVALID_RECORD, f"Found invalid number of record headers {count}")
        if count > limit - at:
            raise DumpFailure(
                INVALID_RECORD,
                f"Found invalid number of record headers. {count} is larger than the remaining "
                "size of the buffer",
            )
        self.header_count = count
        self._headers_at = at
        while count > 0:
            size, name_at = _varint(self.data, at, limit)
            if name_at >= 0 and size < 0:
                raise DumpFailure(INVALID_RECORD, f"Invalid negative header key size {size}")
            name_at, size = self._bytes_at(at)
            at, size = self._bytes_at(name_at + size)
            at += max(size, 0)
            count -= 1
        return at

    def _place(self, offset_delta: i64, timestamp_delta: i64) -> None:
        self.offset = self._base_offset + offset_delta
        if self._log_append_time is None:
            self.timestamp = self._base_timestamp + timestamp_delta
        else:
            self.timestamp = self._log_append_time
        if self._wraps or timestamp_delta >= _LARGEST_DELTA or timestamp_delta <= -_LARGEST_DELTA:
            self.offset = int64(self.offset)
            self.timestamp = int64(self.timestamp)
        if self._base_sequence >= 0:
            self.sequence = increment_sequence(self._base_sequence, offset_delta)

    def key(self) -> bytes | None:
        if self.key_size < 0:
            return None
        return self.data[self._key_at : self._key_at + self.key_size]

    def value(self) -> bytes | None:
        if self.value_size < 0:
            return None
        return self.data[self._value_at : self._value_at + self.value_size]

    def headers(self) -> list[tuple[bytes, bytes | None]]:
        """
        Names and values of the headers.
        """
        found: list[tuple[bytes, bytes | None]] = []
        at = self._headers_at
        for _ in range(self.header_count):
            at, size = self._bytes_at(at)
            name = self.data[at : at + size]
            at, size = self._bytes_at(at + size)
            found.append((name, self.data[at : at + size] if size >= 0 else None))
            at += max(size, 0)
        return found


def increment_sequence(sequence: int, increment: int) -> int:
    """
    The sequence *increment* records later: 0 follows the largest int32.

    As DefaultRecordBatch.incrementSequence, also where a corrupt batch makes its numbers overflow.
    """
    largest = 0x7FFFFFFF
    if sequence > int32(largest - increment):
        return int32(increment - (largest - sequence) - 1)
    return int32(sequence + increment)


def _varint(data: bytes, position: i64, end: i64) -> tuple[i64, i64]:
    raw: i64 = 0
    shift: i64 = 0
    while position < end:
        byte: i64 = data[position]
        position += 1
        if shift == 28:
            if byte >= 0x80:
                return 0, _TOO_LONG
            byte &= 0x0F
        raw |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (raw >> 1) ^ -(raw & 1), position
        shift += 7
    return 0, _CUT


def _varlong(data: bytes, position: i64, end: i64) -> tuple[i64, i64]:
    if position >= end:
        return 0, _CUT
    byte: i64 = data[position]
    position += 1
    sign: i64 = byte & 1
    magnitude: i64 = (byte & 0x7F) >> 1
    shift: i64 = 6
    while byte >= 0x80:
        if position >= end:
            return 0, _CUT
        byte = data[position]
        position += 1
        if shift == 62:
            if byte >= 0x80:
                return 0, _TOO_LONG
            byte &= 1
        magnitude |= (byte & 0x7F) << shift
        shift += 7
    return magnitude ^ -sign, position


def _too_long_text(data: bytes, position: i64) -> str:
    value = 0
    for place in range(4):
        value |= (data[position + place] & 0x7F) << 7 * place
    value |= (data[position + 4] & 0x0F) << 28
    return (
        "Varint is too long, the most significant bit in the 5th byte is set, converted value: "
        f"{value:x}"
    )
