"""
Reading and writing the fields of hot messages.

Both raise ``LeftToGeneralCodec``, or an error of Python's, for a message that is malformed or has
too many entries or a long string. ``codec`` then takes the general way, which names the field that
is wrong and counts long values.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

from struct import Struct
from typing import Any, Final
from uuid import UUID

from barnabas.protocol.codec.primitives import (
    LONG_BYTES,
    MAX_TAGGED_FIELDS,
    UVARINTS,
    Buffer,
    LeftToGeneralCodec,
    read_uvarint,
    skip_tagged_fields,
    string_length,
    uvarint,
)
from barnabas.protocol.codec.uuids import uuid_from

_INT16: Final = Struct(">h")
_INT32: Final = Struct(">i")
_UUID_BYTES: Final = 16
_NO_TAGS: Final = bytes(1)


class FieldReader:
    """
    Reads one field after another.
    """

    __slots__ = ("_entries_left", "data", "end", "is_flexible", "position")

    def __init__(
        self, data: Buffer, position: int, most_entries: int, *, is_flexible: bool
    ) -> None:
        self.data = data
        self.position = position
        self.end = len(data)
        self.is_flexible = is_flexible
        self._entries_left = most_entries

    def take(self, size: int) -> int:
        """
        Step over *size* bytes, and return the position before them.

        Raises:
            LeftToGeneralCodec: there are fewer bytes.
        """
        start = self.position
        after = start + size
        if not start <= after <= self.end:
            raise LeftToGeneralCodec
        self.position = after
        return start

    def count(self) -> int:
        """
        The number of entries of an array.

        Raises:
            LeftToGeneralCodec: the array is null, or the message has more entries than it may have.
        """
        count = self._length(4)
        self._entries_left -= count
        if count < 0 or self._entries_left < 0:
            raise LeftToGeneralCodec
        return count

    def string(self) -> str:
        """
        A string that may not be null. Bytes that are no UTF-8 become U+FFFD, as in Java.
        """
        value = self.nullable_string()
        if value is None:
            raise LeftToGeneralCodec
        return value

    def nullable_string(self) -> str | None:
        size = self._length(2)
        if size < 0:
            return None
        if size == 0:
            return ""
        if size >= LONG_BYTES:
            raise LeftToGeneralCodec
        start = self.take(size)
        return str(self.data[start : self.position], "utf-8", "replace")

    def uuid(self) -> UUID:
        start = self.take(_UUID_BYTES)
        return uuid_from(bytes(self.data[start : self.position]))

    def records(self) -> Buffer | None:
        """
        The records, not copied.
        """
        size = self._length(4)
        if size < 0:
            return None
        start = self.take(size)
        return self.data[start : self.position]

    def skip_tags(self) -> None:
        """
        Step over tagged fields, none of which is known, where the version has any.
        """
        if not self.is_flexible:
            return
        position = self.position
        if self.data[position]:
            self.position = skip_tagged_fields(self.data, position)
        else:
            self.position = position + 1

    def tag_count(self) -> int:
        """
        The number of tagged fields.

        Raises:
            LeftToGeneralCodec: there are more than ``MAX_TAGGED_FIELDS``.
        """
        count = self._uvarint()
        if count > MAX_TAGGED_FIELDS:
            raise LeftToGeneralCodec
        return count

    def tag(self) -> tuple[int, int]:
        """
        The tag of a tagged field, and the position where the field ends.
        """
        tag = self._uvarint()
        size = self._uvarint()
        return tag, self.position + size

    def expect(self, end: int) -> None:
        """
        Raises:
            LeftToGeneralCodec: the field that ended here should have ended at *end*.
        """
        if self.position != end or end > self.end:
            raise LeftToGeneralCodec

    def _uvarint(self) -> int:
        value, self.position = read_uvarint(self.data, self.position)
        return value

    def _length(self, classic_bytes: int) -> int:
        if self.is_flexible:
            return self._uvarint() - 1
        start = self.take(classic_bytes)
        layout = _INT16 if classic_bytes == 2 else _INT32
        length: int
        (length,) = layout.unpack_from(self.data, start)
        return length


class FieldWriter:
    """
    Collects the buffers of a message; those of records stay what they are.
    """

    __slots__ = ("_entries_left", "_out", "_parts", "is_flexible")

    def __init__(self, most_entries: int, *, is_flexible: bool) -> None:
        self.is_flexible = is_flexible
        self._out: list[bytes] = []
        self._parts: list[Buffer] = []
        self._entries_left = most_entries

    def buffers(self) -> list[Buffer]:
        """
        All that was written.
        """
        last = b"".join(self._out)
        if not self._parts:
            return [last]
        self._parts.append(last)
        return self._parts

    def add(self, packed: bytes) -> None:
        self._out.append(packed)

    def count(self, count: int) -> None:
        """
        Write the number of entries of an array.

        Raises:
            LeftToGeneralCodec: the message has more entries than it may have.
        """
        self._entries_left -= count
        if self._entries_left < 0:
            raise LeftToGeneralCodec
        self._length(count)

    def string(self, value: str) -> None:
        data = value.encode()
        if len(data) >= LONG_BYTES:
            raise LeftToGeneralCodec
        if self.is_flexible:
            self._out.append(string_length(len(data)))
        else:
            self._out.append(_INT16.pack(len(data)))
        self._out.append(data)

    def nullable_string(self, value: str | None) -> None:
        if value is not None:
            self.string(value)
        elif self.is_flexible:
            self._out.append(UVARINTS[0])
        else:
            self._out.append(_INT16.pack(-1))

    def null_array(self) -> None:
        self._length(-1)

    def records(self, value: Any) -> None:
        """
        Write records, or null. They are a buffer of their own, unless they have no bytes.

        Args:
            value: anything with a length; it is passed on.
        """
        size = -1 if value is None else len(value)
        self._length(size)
        if value is not None and size:
            self._parts += (b"".join(self._out), value)
            self._out.clear()

    def no_tags(self) -> None:
        """
        Write that there are no tagged fields, where the version has any.
        """
        if self.is_flexible:
            self._out.append(_NO_TAGS)

    def tags(self, tags: list[tuple[int, bytes]]) -> None:
        """
        Write tagged fields, in ascending order of their tags.
        """
        self._out.append(uvarint(len(tags)))
        for tag, body in tags:
            self._out += (uvarint(tag), uvarint(len(body)), body)

    def _length(self, length: int) -> None:
        if self.is_flexible:
            self._out.append(uvarint(length + 1))
        else:
            self._out.append(_INT32.pack(length))


def node_endpoints(endpoints: list[Any], most_entries: int) -> bytes:
    """
    The tagged field ``node_endpoints`` of a response (KIP-951).
    """
    writer = FieldWriter(most_entries, is_flexible=True)
    writer.count(len(endpoints))
    for endpoint in endpoints:
        writer.add(_INT32.pack(endpoint.node_id))
        writer.string(endpoint.host)
        writer.add(_INT32.pack(endpoint.port))
        writer.nullable_string(endpoint.rack)
        writer.no_tags()
    return b"".join(writer.buffers())
