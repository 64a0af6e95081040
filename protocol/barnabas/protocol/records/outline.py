"""
Offsets, timestamps and sizes of the records of a batch, without keys, values and headers.

A lookup by time, ``barnabas verify`` and the JSON API without contents need no more. The records
come in pieces, as a decompressor gives them; contents are skipped by their lengths. The memory is
that of one piece, whatever the batch expands to and however many headers its records have.

Every step stays within 64 signed bits, so that machine integers and Python's give the same.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from barnabas.protocol.errors import InvalidRecord
from barnabas.protocol.records.varints import int64, next_varint, next_varlong

if TYPE_CHECKING:
    from mypy_extensions import i64

_LONGEST_VARINT: Final = 5
_LONGEST_VARLONG: Final = 10
_BAD_STRUCTURE: Final = "Found invalid record structure"
_PREMATURE_END: Final = "Incorrect declared batch size, premature EOF reached"
_RECORDS_LEFT: Final = "Incorrect declared batch size, records still remaining in file"


class RecordOutline(NamedTuple):
    """
    A record without its contents. A size is -1 where the record has no key or no value.
    """

    offset: int
    timestamp: int
    key_size: int
    value_size: int
    header_count: int


def outlines(
    pieces: Iterable[bytes],
    record_count: int,
    *,
    base_offset: int,
    base_timestamp: int,
    log_append_time: int | None,
) -> Iterator[RecordOutline]:
    """
    Yield the outlines of the records in *pieces*, none of which is empty.

    Headers are counted but not checked: their bytes are skipped.

    Raises:
        InvalidRecord: a record is malformed, bytes follow the last one, or the count is negative.
    """
    if record_count < 0:
        raise InvalidRecord(f"Found invalid record count {record_count} in magic v2 batch")
    walk = _Walk(iter(pieces))
    for _ in range(record_count):
        walk.advance()
        # As Python's integers: the sums may not fit into 64 bits.
        offset_delta: int = walk.offset_delta
        timestamp_delta: int = walk.timestamp_delta
        yield RecordOutline(
            int64(base_offset + offset_delta),
            int64(base_timestamp + timestamp_delta) if log_append_time is None else log_append_time,
            walk.key_size,
            walk.value_size,
            walk.header_count,
        )
    if record_count and not walk.at_end():
        raise InvalidRecord(_RECORDS_LEFT)


class _Walk:
    """
    A position in the pieces. After ``advance`` the attributes describe one record.
    """

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self.timestamp_delta: i64 = 0
        self.offset_delta: i64 = 0
        self.key_size: i64 = -1
        self.value_size: i64 = -1
        self.header_count: i64 = 0
        self._pieces = pieces
        self._data = b""
        self._at: i64 = 0
        self._size: i64 = 0
        """Bytes of the current piece."""
        self._left: i64 = 0
        """Bytes of the current record that were not read."""

    def advance(self) -> None:
        """
        Read the next record.

        Raises:
            InvalidRecord: it is malformed.
        """
        self._left = _LONGEST_VARINT
        size = self._varint()
        if size <= 0:
            raise InvalidRecord(_BAD_STRUCTURE)
        self._left = size
        self._skip(1)
        self.timestamp_delta = self._varlong()
        self.offset_delta = self._varint()
        self.key_size = max(self._varint(), -1)
        if self.key_size > 0:
            self._skip(self.key_size)
        self.value_size = max(self._varint(), -1)
        if self.value_size > 0:
            self._skip(self.value_size)
        self.header_count = self._varint()
        if self.header_count < 0:
            raise InvalidRecord(f"Found invalid number of record headers {self.header_count}")
        if self.header_count > self._left:
            raise InvalidRecord(
                f"Found invalid number of record headers. {self.header_count} is larger than the "
                "remaining size of the buffer"
            )
        if self._left > 0:
            if self.header_count == 0:
                raise InvalidRecord(_BAD_STRUCTURE)
            self._skip(self._left)

    def at_end(self) -> bool:
        """
        Return True if no byte is left; it may take the next piece.
        """
        return self._at >= self._size and next(self._pieces, None) is None

    def _varint(self) -> i64:
        self._gather(_LONGEST_VARINT)
        number, end = next_varint(self._data, self._at, self._limit())
        self._pass(end)
        return number

    def _varlong(self) -> i64:
        self._gather(_LONGEST_VARLONG)
        number, end = next_varlong(self._data, self._at, self._limit())
        self._pass(end)
        return number

    def _limit(self) -> i64:
        limit: i64 = self._at + self._left
        return min(limit, self._size)

    def _pass(self, end: i64) -> None:
        if end < 0:
            raise InvalidRecord(_BAD_STRUCTURE if self._at < self._size else _PREMATURE_END)
        self._left -= end - self._at
        self._at = end

    def _gather(self, wanted: i64) -> None:
        """
        Join pieces until *wanted* bytes are there, if there are so many.
        """
        while self._size - self._at < wanted:
            piece = next(self._pieces, None)
            if piece is None:
                return
            rest = self._data[self._at :]
            self._data = rest + piece if rest else piece
            self._at = 0
            self._size = len(self._data)

    def _skip(self, count: i64) -> None:
        if count > self._left:
            raise InvalidRecord(_BAD_STRUCTURE)
        self._left -= count
        while count > self._size - self._at:
            count -= self._size - self._at
            piece = next(self._pieces, None)
            if piece is None:
                raise InvalidRecord(_PREMATURE_END)
            self._data = piece
            self._at = 0
            self._size = len(piece)
        self._at += count
