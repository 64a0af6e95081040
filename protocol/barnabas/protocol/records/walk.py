"""
A walk along the records of a batch that finds the positions of their fields.

::

    length | attributes | timestamp delta | offset delta | key length | key | value length | ...
    ^ record_at                           ^ tail_at                   ^ key_at

The cleaner reads the keys of a million records, and copies some of them, without objects for them.
A batch that is rebuilt keeps its records as one piece, if Kafka would write each as it is.
Errors are those of Kafka (DefaultRecord, DefaultRecordBatch): any negative length of a key or value
means that there is none.

Every step stays within 64 signed bits, so that machine integers and Python's give the same.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.protocol.errors import InvalidRecord
from barnabas.protocol.records.varints import CUT, next_varint, next_varlong

if TYPE_CHECKING:
    from mypy_extensions import i64

_LONGEST_VARINT: Final = 5
_LONGEST_VARLONG: Final = 10


class RecordWalk:
    """
    The records of one batch, which are not or no longer compressed, one after the other.

    Invariants:

    1. After ``advance`` the attributes describe one record that is whole.
    2. After the last record no byte is left.
    """

    def __init__(self, data: bytes, position: i64, end: i64, record_count: i64) -> None:
        """
        Args:
            data: has the records from *position* up to *end*, and anything around them.

        Raises:
            InvalidRecord: there cannot be *record_count* records.
        """
        if record_count < 0:
            raise InvalidRecord(f"A batch cannot have {record_count} records.")
        self.data = data
        self.record_count: i64 = record_count
        self.walked: i64 = 0
        """Records that ``advance`` has come to."""
        self.record_at: i64 = position
        self.record_end: i64 = position
        self.timestamp_delta: i64 = 0
        self.offset_delta: i64 = 0
        self.tail_at: i64 = 0
        """Where the offset delta is; from there on nothing depends on the timestamp."""
        self.key_at: i64 = 0
        self.key_length: i64 = -1
        """Negative if the record has no key."""
        self.has_value: bool = False
        self.is_regular: bool = True
        """Whether the bytes of the record are those that Kafka would write: the shortest varints,
        no attributes, -1 as the length of what is not there, and header names in ASCII."""
        self._end: i64 = end
        self._number: i64 = 0

    def advance(self) -> None:
        """
        Read the next record.

        Raises:
            InvalidRecord: it is not whole or not consistent, or something is left behind the last.
        """
        try:
            self._read_record()
        except IndexError:
            raise InvalidRecord("A record ends early.") from None
        self.walked += 1
        if self.walked == self.record_count and self.record_end != self._end:
            raise InvalidRecord(
                f"{self._end - self.record_end} bytes are left behind the last record."
            )

    def _read_record(self) -> None:
        self.is_regular = True
        self.record_at = self.record_end
        start: i64 = self._read_varint(self.record_at)
        length: i64 = self._number
        end: i64 = start + length
        if length < 0 or end > self._end:
            raise InvalidRecord(f"A record says it has {length} bytes, which are not there.")
        if self.data[start]:
            # They mean nothing, and are 0 when the record is rewritten.
            self.is_regular = False
        at: i64 = self._read_varlong(start + 1)
        self.timestamp_delta = self._number
        self.tail_at = at
        at = self._read_varint(at)
        self.offset_delta = self._number
        at = self._read_varint(at)
        self.key_length = self._number
        self.key_at = at
        at = self._pass_bytes(at)
        at = self._read_varint(at)
        self.has_value = self._number >= 0
        at = self._pass_bytes(at)
        at = self._read_varint(at)
        if self._number:
            at = self._pass_headers(at, end)
        if at != end:
            raise InvalidRecord(f"A record says it has {length} bytes, but has {at - start}.")
        self.record_end = end

    def _pass_headers(self, position: i64, end: i64) -> i64:
        """
        The position behind the headers, whose number was just read.
        """
        at: i64 = position
        count: i64 = self._number
        if count < 0 or count > end - at:
            raise InvalidRecord(f"A record cannot have {count} headers.")
        while count > 0 and at < end:
            at = self._read_varint(at)
            if self._number < 0:
                raise InvalidRecord("A header has no name.")
            name_at: i64 = at
            at += self._number
            if not self.data[name_at:at].isascii():
                # It may be no text, and Kafka replaces the bytes that are none.
                self.is_regular = False
            at = self._pass_bytes(self._read_varint(at))
            count -= 1
        return at

    def _pass_bytes(self, position: i64) -> i64:
        """
        The position behind the bytes at *position*, whose length was just read.
        """
        length: i64 = self._number
        if length >= 0:
            return position + length
        if length < -1:
            self.is_regular = False
        return position

    def _read_varint(self, position: i64) -> i64:
        """
        Read the 32-bit number at *position* into ``_number``; return its end.
        """
        byte: i64 = self.data[position]
        if byte < 0x80:
            self._number = (byte >> 1) ^ -(byte & 1)
            return position + 1
        second: i64 = self.data[position + 1]
        if second < 0x80:
            self._set_two_bytes(byte, second)
            return position + 2
        number, end = next_varint(self.data, position, self._end)
        return self._set_long(number, position, end, _LONGEST_VARINT, 0x0F)

    def _read_varlong(self, position: i64) -> i64:
        """
        Read the 64-bit number at *position* into ``_number``; return its end.
        """
        byte: i64 = self.data[position]
        if byte < 0x80:
            self._number = (byte >> 1) ^ -(byte & 1)
            return position + 1
        second: i64 = self.data[position + 1]
        if second < 0x80:
            self._set_two_bytes(byte, second)
            return position + 2
        number, end = next_varlong(self.data, position, self._end)
        return self._set_long(number, position, end, _LONGEST_VARLONG, 1)

    def _set_two_bytes(self, first: i64, second: i64) -> None:
        if second == 0:
            self.is_regular = False
        raw: i64 = first & 0x7F | second << 7
        self._number = (raw >> 1) ^ -(raw & 1)

    def _set_long(self, number: i64, start: i64, end: i64, longest: i64, most: i64) -> i64:
        """
        Args:
            longest: bytes that a number may have.
            most: the largest last byte of a number of that length that fits its type.
        """
        if end < 0:
            raise InvalidRecord("A record ends early." if end == CUT else "A number is too long.")
        last: i64 = self.data[end - 1]
        if last == 0 or (end - start == longest and last > most):
            self.is_regular = False
        self._number = number
        return end


class RegularityWalk(RecordWalk):
    """
    Finds out whether records that are kept would look the same if Kafka had written them.
    """

    def __init__(self, data: bytes, record_count: i64) -> None:
        """
        Args:
            data: begins with a record, and may end within one.
            record_count: records from there on, also those behind *data*.
        """
        super().__init__(data, 0, len(data), record_count)
        self.all_regular: bool = True
        self.least_timestamp_delta: i64 = 0
        self.next_size: i64 = 0
        """Bytes of the record that *data* cut, or 0 if its length is cut."""

    def step(self) -> None:
        """
        Walk along all records that are whole.

        Raises:
            InvalidRecord: a record is not one.
        """
        end: i64 = len(self.data)
        while self.walked < self.record_count:
            length, start = next_varint(self.data, self.record_end, end)
            if start < 0 or start + length > end:
                self.next_size = 0 if start < 0 else start + length - self.record_end
                return
            self.advance()
            if not self.is_regular:
                self.all_regular = False
            self.least_timestamp_delta = min(self.least_timestamp_delta, self.timestamp_delta)
