"""
Reading and writing a message field by field, as its declaration says.

What ``decoder`` and ``encoder`` make functions for, without them: for the first structs of each
version of a message, all of which a process may ever meet. The way of the types on the wire is in
``primitives``.

Both directions keep to an ``Allowance`` of structs, and give up where it ends, in the middle of a
message if need be. They refuse all that the functions refuse, and leave it to these to say why.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import pack, unpack_from
from typing import Any, Final

from barnabas.protocol.codec.primitives import (
    MAX_STRING_BYTES,
    MAX_TAGGED_FIELDS,
    Buffer,
    read_uvarint,
    string_length,
    uvarint,
)
from barnabas.protocol.codec.schema import Array, Field, Fixed, Kind, Struct, Type, fields
from barnabas.protocol.codec.uuids import uuid_from

ALLOWED: Final = 100
"""
So many structs are read or written field by field in the time in which a function is made; it is 30
to 220, depending on the message.
"""

_SIZES: Final = {"b": 1, "h": 2, "H": 2, "i": 4, "I": 4, "q": 8, "d": 8, "?": 1}


class Refused(Exception):
    """
    More structs than were allowed, or bytes that make no sense.
    """


class Allowance:
    """
    How many structs, and elements of arrays, one version of a message has left.
    """

    __slots__ = ("left",)

    def __init__(self) -> None:
        self.left = ALLOWED

    def take(self, count: int = 1) -> None:
        """
        Raises:
            Refused: there are not as many left.
        """
        self.left -= count
        if self.left < 0:
            raise Refused


def read_struct(
    cls: type, version: int, data: memoryview, position: int, *, flexible: bool, left: Allowance
) -> tuple[Any, int]:
    """
    The struct at *position* of *data*, and the position after it.

    Raises:
        Refused, IndexError, TypeError, struct.error: it has to be read by its function.
    """
    reader = _Reader(data, position, version, flexible=flexible, left=left)
    return reader.struct(cls), reader.position


def write_struct(message: Any, version: int, *, flexible: bool, left: Allowance) -> list[Buffer]:
    """
    The buffers that together are *message*; those of records are what it has.

    Raises:
        Refused, AttributeError, TypeError, ValueError, struct.error: it has to be written by its
            function.
    """
    writer = _Writer(version, flexible=flexible, left=left)
    writer.struct(type(message), message)
    return writer.buffers()


class _Reader:
    """
    Advances over data.
    """

    __slots__ = ("_data", "_flexible", "_left", "_version", "position")

    def __init__(
        self, data: memoryview, position: int, version: int, *, flexible: bool, left: Allowance
    ) -> None:
        self._data = data
        self.position = position
        self._version = version
        self._flexible = flexible
        self._left = left

    def struct(self, cls: type) -> Any:
        self._left.take()
        present = [field for field in fields(cls) if field.is_in(self._version)]
        values = {
            field.name: self._value(field.type, field) for field in present if field.tag is None
        }
        if self._flexible:
            values |= self._tagged({field.tag: field for field in present if field.tag is not None})
        return cls(**values)

    def _tagged(self, known: dict[int, Field]) -> dict[str, Any]:
        values = {}
        count = self._uvarint()
        if count > MAX_TAGGED_FIELDS:
            raise Refused
        for _ in range(count):
            tag, size = self._uvarint(), self._uvarint()
            stop = self.position + size
            if tag in known:
                values[known[tag].name] = self._value(known[tag].type, known[tag])
            else:
                self.position = stop
            if self.position != stop or stop > len(self._data):
                raise Refused
        return values

    def _value(self, kind: Type, field: Field, *, in_array: bool = False) -> Any:
        """
        A value of type *kind*, which is that of *field* or of its elements.
        """
        nullable = not in_array and field.is_nullable_in(self._version)
        if isinstance(kind, Fixed):
            return self._numbers(kind.format, 1)[0]
        if kind is Kind.UUID:
            return uuid_from(bytes(self._bytes(16)))
        if isinstance(kind, Struct):
            return None if nullable and self._lacks_struct(field) else self.struct(kind.cls)
        compact = self._flexible and (field.compact or isinstance(kind, Array))
        length = self._length("h" if kind is Kind.STRING else "i", compact=compact)
        if nullable and length < 0:
            return None
        if isinstance(kind, Array):
            return self._elements(kind.element, length, field)
        return self._sized(kind, length)

    def _elements(self, kind: Type, count: int, field: Field) -> list[Any]:
        if not 0 <= count <= len(self._data) - self.position:
            raise Refused
        if isinstance(kind, Fixed):
            return list(self._numbers(kind.format, count))
        self._left.take(count)
        return [self._value(kind, field, in_array=True) for _ in range(count)]

    def _sized(self, kind: Kind, length: int) -> Any:
        value = self._bytes(length)
        if kind is Kind.RECORDS:
            return value
        if kind is Kind.BYTES:
            return bytes(value)
        if length > MAX_STRING_BYTES:
            raise Refused
        # What is no UTF-8 becomes U+FFFD, as in Java.
        return str(value, "utf-8", "replace")

    def _lacks_struct(self, field: Field) -> bool:
        # In a tagged field Kafka's generator writes the marker as an unsigned varint.
        return (self._numbers("b", 1)[0] if field.tag is None else self._uvarint() - 1) < 0

    def _length(self, classic: str, *, compact: bool) -> int:
        length: int = self._uvarint() - 1 if compact else self._numbers(classic, 1)[0]
        return length

    def _numbers(self, letter: str, count: int) -> tuple[Any, ...]:
        values = unpack_from(f">{count}{letter}", self._data, self.position)
        self.position += count * _SIZES[letter]
        return values

    def _uvarint(self) -> int:
        value, self.position = read_uvarint(self._data, self.position)
        return value

    def _bytes(self, size: int) -> memoryview:
        start, self.position = self.position, self.position + size
        if not start <= self.position <= len(self._data):
            raise Refused
        return self._data[start : self.position]


class _Writer:
    """
    Collects buffers.
    """

    __slots__ = ("_flexible", "_left", "_out", "_parts", "_version")

    def __init__(self, version: int, *, flexible: bool, left: Allowance) -> None:
        self._version = version
        self._flexible = flexible
        self._left = left
        self._parts: list[Buffer] = []
        self._out: list[bytes] = []

    def buffers(self) -> list[Buffer]:
        """
        What was written.
        """
        return [*self._parts, b"".join(self._out)]

    def struct(self, cls: type, message: Any) -> None:
        self._left.take()
        tagged = []
        for field in fields(cls):
            if not field.is_in(self._version):
                continue
            value = getattr(message, field.name)
            if field.tag is None:
                self.value(field.type, value, field)
            elif value != field.default:
                tagged.append((field.tag, value, field))
        if self._flexible:
            self._tagged(sorted(tagged))

    def value(self, kind: Type, value: Any, field: Field, *, in_array: bool = False) -> None:
        """
        Add a value of type *kind*, which is that of *field* or of its elements.
        """
        nullable = not in_array and field.is_nullable_in(self._version)
        compact = self._flexible and (field.compact or isinstance(kind, Array))
        if isinstance(kind, Fixed):
            self._out.append(pack(f">{kind.format}", value))
        elif kind is Kind.UUID:
            self._out.append(value.bytes)
        elif isinstance(kind, Struct):
            if nullable:
                there, null = (1, -1) if field.tag is None else (1, 0)
                self._out.append(pack("b", null if value is None else there))
            if value is not None or not nullable:
                self.struct(kind.cls, value)
        elif nullable and value is None:
            self._length(-1, kind, compact=compact)
        elif isinstance(kind, Array):
            self._length(len(value), kind, compact=compact)
            self._elements(kind.element, value, field)
        else:
            self._sized(kind, value, compact=compact)

    def _elements(self, kind: Type, values: Sequence[Any], field: Field) -> None:
        if isinstance(kind, Fixed):
            self._out.append(pack(f">{len(values)}{kind.format}", *values))
            return
        self._left.take(len(values))
        for value in values:
            self.value(kind, value, field, in_array=True)

    def _sized(self, kind: Kind, value: Any, *, compact: bool) -> None:
        data = value.encode() if kind is Kind.STRING else value
        self._length(len(data), kind, compact=compact)
        if kind is Kind.RECORDS:
            self._parts += (b"".join(self._out), data)
            self._out.clear()
        else:
            self._out.append(data)

    def _length(self, length: int, kind: Type, *, compact: bool) -> None:
        if not compact:
            self._out.append(pack(">h" if kind is Kind.STRING else ">i", length))
        elif kind is Kind.STRING:
            self._out.append(string_length(length))
        else:
            self._out.append(uvarint(length + 1))

    def _tagged(self, fields_by_tag: Sequence[tuple[int, Any, Field]]) -> None:
        self._out.append(uvarint(len(fields_by_tag)))
        for tag, value, field in fields_by_tag:
            body = _Writer(self._version, flexible=self._flexible, left=self._left)
            body.value(field.type, value, field)
            data = b"".join(body.buffers())
            self._out += (uvarint(tag), uvarint(len(data)), data)
