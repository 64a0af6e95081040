"""
The records inside a batch.

::

    length           varint    bytes that follow
    attributes       int8      unused
    timestamp delta  varlong   from the batch's base timestamp
    offset delta     varint    from the batch's base offset
    key length       varint    -1: no key          key
    value length     varint    -1: no value        value
    header count     varint
    of each header   varint    name length         name, in UTF-8
                     varint    -1: no value        value

``RecordReader`` reads them one by one and raises Kafka's errors, in the words of Kafka's
DefaultRecord and DefaultRecordBatch, so that ``barnabas dump-log`` can repeat them. Coordinators,
compaction and ``barnabas verify`` read with ``iter_records``, which makes an object of each record.
The path of a produced batch makes none: see ``scan``.

This module is compiled when there is a compiler. It keeps within 64 signed bits at every step.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from barnabas.protocol.codec.primitives import Buffer
from barnabas.protocol.errors import IllegalArgument, InvalidRecord
from barnabas.protocol.records.record_headers import Header as Header  # noqa: PLC0414 - part of this module
from barnabas.protocol.records.record_headers import StoredHeaders
from barnabas.protocol.records.varints import (
    TOO_LONG,
    append_varint,
    int32,
    int64,
    next_varint,
    next_varlong,
)

if TYPE_CHECKING:
    from mypy_extensions import i64

NO_SEQUENCE: Final = -1
LAST_SEQUENCE: Final = 2**31 - 1

_NUMBERS_BYTES: Final = 16
"""The fast path needs so many bytes: the numbers in front of a key, of at most three bytes each."""
_LARGEST_DELTA: Final = 1 << 62
"""The sum of a base and a delta that are both smaller fits into 64 bits."""

_SMALL_BYTES: Final = (1 << 13) + 2
"""A size of one or two bytes is below this; the size itself and the byte behind are counted."""
_GATHERED_BYTES: Final = 1 << 17
"""So many bytes of pieces are joined at a time, if they are there."""

_BAD_STRUCTURE: Final = "Found invalid record structure"
_PREMATURE_END: Final = "Incorrect declared batch size, premature EOF reached"
_RECORDS_LEFT: Final = "Incorrect declared batch size, records still remaining in file"


class SimpleRecord(NamedTuple):
    """
    A record that has no place in a log yet. The timestamp is in ms, -1 for none.
    """

    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[Header] = ()


class Record(NamedTuple):
    """
    A record with its place in the log. The headers of a stored record are decoded at each read.
    """

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[Header] = ()


def encode_records(records: Iterable[Record], base_offset: int, base_timestamp: int) -> bytearray:
    """
    The records one after the other, as they lie in a batch before it is compressed.
    """
    out = bytearray()
    body = bytearray()
    for offset, timestamp, key, value, headers in records:
        body.clear()
        body.append(0)
        append_varint(body, timestamp - base_timestamp)
        append_varint(body, offset - base_offset)
        _append_nullable(body, key)
        _append_nullable(body, value)
        append_varint(body, len(headers))
        if isinstance(headers, StoredHeaders) and are_regular(headers.data, len(headers)):
            body += headers.data
        else:
            for name, content in headers:
                _append_nullable(body, name.encode())
                _append_nullable(body, content)
        append_varint(out, len(body))
        out += body
    return out


def are_regular(headers: bytes, count: i64) -> bool:
    """
    Return True if the bytes of *count* headers are those that ``encode_records`` would write of
    them; False also for names and values above 8 KiB. No object is made of a header.
    """
    at: i64 = 0
    end: i64 = len(headers)
    left: i64 = count
    while left > 0 and at < end:
        size, at = _regular_size(headers, at, end)
        if size < 0:
            return False
        if size > 0 and not headers[at : at + size].isascii():
            return False  # It may be no text, and Kafka replaces the bytes that are none.
        size, at = _regular_size(headers, at + size, end)
        if size < -1:
            return False
        at += max(size, 0)
        left -= 1
    return left == 0 and at == end


def _regular_size(data: bytes, position: i64, end: i64) -> tuple[i64, i64]:
    """
    Return the size at *position* and the position behind it; -2 if it is not in its shortest form
    or longer than two bytes.
    """
    at: i64 = position
    if at >= end:
        return -2, at
    raw: i64 = data[at]
    at += 1
    if raw > 0x7F:
        second: i64 = data[at] if at < end else 0
        at += 1
        if second == 0 or second > 0x7F:
            return -2, at
        raw = raw & 0x7F | second << 7
    if raw & 1:
        return (-1 if raw == 1 else -2), at
    return raw >> 1, at


def _append_nullable(out: bytearray, data: bytes | None) -> None:
    if data is None:
        append_varint(out, -1)
    else:
        append_varint(out, len(data))
        out += data


class RecordReader:
    """
    One walk over the records of a batch of version 2, which makes no object of a record.

    Invariants:

    1. After ``advance`` has returned True, the attributes are those of the current record.
    2. A size is -1, never less, where the record has no key or no value.

    Args:
        data: the records, decompressed.
        record_count: as the batch has it, not negative.
        log_append_time: the timestamp of all records; None if each record has its own.
        streamed: whether the records were compressed. Kafka reads each of those into a buffer of
            its own, which decides about the error of a number that points behind the record.
    """

    def __init__(
        self,
        data: bytes,
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
        self.sequence: int = NO_SEQUENCE
        self.key_size: i64 = -1
        self.value_size: i64 = -1
        self.header_count: i64 = 0
        self._key_at: i64 = 0
        self._value_at: i64 = 0
        self._headers_at: i64 = 0
        self._size: i64 = 0
        self._limit: i64 = 0
        self._position: i64 = 0
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
        Read the next record; return False behind the last one.

        Raises:
            InvalidRecord: the next record is malformed, or bytes follow the last one.
        """
        if self._left <= 0:
            return False
        self._left -= 1
        if self._wraps or not self._advance_regular():
            self._advance_carefully()
        if self._left == 0 and self._position != self._end:
            raise InvalidRecord(_RECORDS_LEFT)
        return True

    def has_small(self) -> bool:
        """
        Return True if the data surely have the next record, which is small, and a byte behind it.
        """
        at: i64 = self._position
        return self._end - at > _SMALL_BYTES and (self.data[at] < 0x80 or self.data[at + 1] < 0x80)

    def missing(self) -> i64:
        """
        Return how many bytes the data lack of the next record and the byte behind it; 0 also where
        the record has no size.
        """
        size, start = next_varint(self.data, self._position, self._end)
        if start == TOO_LONG or size < 0:
            return 0
        if start < 0:
            return 1
        lacking: i64 = start + size + 1 - self._end
        return max(lacking, 0)

    def extend(self, data: bytes) -> None:
        """
        Put *data* behind those of the next record, and forget what is before it.
        """
        self.data = self.data[self._position :] + data
        self._position = 0
        self._end = len(self.data)

    def _advance_regular(  # noqa: C901, PLR0911, PLR0912, PLR0915 - calls cost more than numbers
        self,
    ) -> bool:
        """
        Read a record that is whole and has no headers; return False and read nothing otherwise.
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
                size, at = next_varint(data, at - 2, end)
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
            delta, at = next_varlong(data, at - 2, record_end)
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
                offset_delta, at = next_varint(data, at - 2, record_end)
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
                value_size, at = next_varint(data, at - 2, record_end)
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
        Read a record number by number, and raise Kafka's error for the first flaw.
        """
        data = self.data
        start = self._read_size()
        limit: i64 = self._limit
        if start >= limit:
            raise InvalidRecord(_BAD_STRUCTURE)
        delta, at = next_varlong(data, start + 1, limit)
        if at < 0:
            raise InvalidRecord(_BAD_STRUCTURE)
        offset_delta, at = next_varint(data, at, limit)
        if at < 0:
            raise InvalidRecord(_BAD_STRUCTURE)
        self._key_at, self.key_size = self._bytes_at(at)
        self._value_at, self.value_size = self._bytes_at(self._key_at + max(self.key_size, 0))
        at = self._pass_headers(self._value_at + max(self.value_size, 0))
        if at - start != self._size:
            raise InvalidRecord(
                f"Invalid record size: expected to read {self._size} bytes in record payload, "
                f"but instead read {at - start}",
            )
        self._position = at
        self._place(offset_delta, delta)

    def _read_size(self) -> i64:
        """
        Read the size of the next record, and return the position behind that number.
        """
        position = self._position
        size, start = next_varint(self.data, position, self._end)
        if start < 0:
            if start == TOO_LONG and not self._streamed:
                raise IllegalArgument(_too_long_text(self.data, position))
            raise InvalidRecord(_PREMATURE_END)
        self._size = size
        self._limit = self._end
        there = self._end - start
        if self._streamed:
            if size < 0:
                raise InvalidRecord(_PREMATURE_END)
            self._limit = start + size
        if size > there:
            raise InvalidRecord(
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
        Return the position and the size of the bytes whose size is at *position*; -1 for null.
        """
        limit: i64 = self._limit
        size, at = next_varint(self.data, position, limit)
        if at < 0 or size > limit - at:
            raise InvalidRecord(_BAD_STRUCTURE)
        return at, max(size, -1)

    def _pass_headers(self, position: i64) -> i64:
        """
        Remember the headers, whose count is at *position*, and return the position behind them.
        """
        limit: i64 = self._limit
        count, at = next_varint(self.data, position, limit)
        if at < 0:
            raise InvalidRecord(_BAD_STRUCTURE)
        if count < 0:
            raise InvalidRecord(f"Found invalid number of record headers {count}")
        if count > limit - at:
            raise InvalidRecord(
                f"Found invalid number of record headers. {count} is larger than the remaining "
                "size of the buffer",
            )
        self.header_count = count
        self._headers_at = at
        while count > 0:
            size, name_at = next_varint(self.data, at, limit)
            if name_at >= 0 and size < 0:
                raise InvalidRecord(f"Invalid negative header key size {size}")
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
        The names and values of the headers.
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

    def numbers(self) -> tuple[int, int, int, int, int, int]:
        """
        Offset, timestamp, sizes of key and value, sequence and number of headers of the current
        record. One call costs less than six attributes for a caller that is compiled apart.
        """
        return (
            self.offset,
            self.timestamp,
            self.key_size,
            self.value_size,
            self.sequence,
            self.header_count,
        )

    def contents(self) -> tuple[bytes | None, bytes | None]:
        """
        Key and value of the current record, in one call.
        """
        return self.key(), self.value()

    def record(self) -> Record:
        """
        The current record as an object, which makes none of its headers.
        """
        headers: Sequence[Header] = ()
        if self.header_count:
            stored = self.data[self._headers_at : self._position]
            headers = StoredHeaders(stored, self.header_count)
        return Record(self.offset, self.timestamp, self.key(), self.value(), headers)


def iter_records(
    payload: Buffer,
    record_count: int,
    *,
    base_offset: int = 0,
    base_timestamp: int = 0,
    log_append_time: int | None = None,
    streamed: bool = False,
) -> Iterator[Record]:
    """
    Yield the records of a batch as objects; the arguments are those of ``RecordReader``.

    Raises:
        InvalidRecord: a record is malformed, bytes follow the last one, or the count is negative.
    """
    if record_count < 0:
        raise InvalidRecord(f"Found invalid record count {record_count} in magic v2 batch")
    reader = RecordReader(
        payload if isinstance(payload, bytes) else bytes(payload),
        record_count,
        base_offset=base_offset,
        base_timestamp=base_timestamp,
        base_sequence=NO_SEQUENCE,
        log_append_time=log_append_time,
        streamed=streamed,
    )
    if record_count == 0:
        return
    while reader.advance():
        yield reader.record()


def iter_records_in_pieces(
    pieces: Iterator[bytes],
    record_count: int,
    *,
    base_offset: int,
    base_timestamp: int,
    log_append_time: int | None,
) -> Iterator[Record]:
    """
    Yield the records that a decompressor gives in *pieces*, in the memory of one piece and the
    largest record.

    Raises:
        InvalidRecord: as in ``iter_records``.
    """
    if record_count < 0:
        raise InvalidRecord(f"Found invalid record count {record_count} in magic v2 batch")
    first = next(pieces, b"")
    following = next(pieces, None)
    reader = RecordReader(
        first,
        record_count,
        base_offset=base_offset,
        base_timestamp=base_timestamp,
        base_sequence=NO_SEQUENCE,
        log_append_time=log_append_time,
        streamed=True,
    )
    if record_count == 0:
        return
    first = b""
    while True:
        while following is not None and not reader.has_small():
            missing: i64 = reader.missing()
            if missing == 0:
                break
            missing = max(missing, _GATHERED_BYTES)
            more = []
            while missing > 0 and following is not None:
                more.append(following)
                missing -= len(following)
                following = next(pieces, None)
            reader.extend(b"".join(more))
            del more[:]
        if not reader.advance():
            return
        yield reader.record()


def increment_sequence(sequence: int, increment: int) -> int:
    """
    The sequence *increment* records later: 0 follows the largest int32.

    Sums of a corrupt batch wrap as in Kafka (DefaultRecordBatch.incrementSequence).
    """
    total = sequence + increment
    if increment >= 0 and total <= LAST_SEQUENCE:
        return total
    return int32(total if total < -LAST_SEQUENCE - 1 else total - LAST_SEQUENCE - 1)


def decrement_sequence(sequence: int, decrement: int) -> int:
    """
    The sequence *decrement* records earlier; sums wrap as in ``increment_sequence``.
    """
    total = sequence - decrement
    if 0 <= total <= LAST_SEQUENCE:
        return total
    return int32(total if total > LAST_SEQUENCE else total + LAST_SEQUENCE + 1)


def _too_long_text(data: bytes, position: i64) -> str:
    value = 0
    for place in range(4):
        value |= (data[position + place] & 0x7F) << 7 * place
    value |= (data[position + 4] & 0x0F) << 28
    return (
        "Varint is too long, the most significant bit in the 5th byte is set, converted value: "
        f"{value:x}"
    )
