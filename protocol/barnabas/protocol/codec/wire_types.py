"""
The types of the wire, which read and write their values (Kafka ``protocol.types``).

Reading beyond the end of the data is an error of ``struct`` or of indexing, which ``codec`` turns
into a ``DecodeError``; slices would be short without an error, so that each is compared with the
end.

A type that has arrays reads and writes in steps as well: a generator yields behind each element, so
that others may come between.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

import sys
from collections.abc import Generator
from struct import Struct as Layout
from struct import pack, unpack_from
from typing import Any, Final

from barnabas.protocol.codec.primitives import (
    BYTES_AT_ONCE,
    ENTRIES_AT_ONCE,
    LONG_BYTES,
    MAX_STRING_BYTES,
    UVARINTS,
    Buffer,
    bad_count,
    bad_length,
    read_uvarint,
    string_length,
    too_many_entries,
    uvarint,
)
from barnabas.protocol.codec.schema import Kind
from barnabas.protocol.codec.uuids import uuid_from

_PIECES_AT_ONCE: Final = 4096
"""
So many small pieces are joined in one step.
"""
_INT16: Final = Layout(">h")
_INT32: Final = Layout(">i")
_UUID: Final = Layout("16s")


class Allowance:
    """
    How many entries of arrays, and how many bytes of long values, may still come.
    """

    left: int
    left_bytes: int

    def allow(self, most_entries: int) -> None:
        """
        Allow *most_entries*, and ``BYTES_AT_ONCE`` if these are no more than come at once.
        """
        self.left = most_entries
        self.left_bytes = BYTES_AT_ONCE if most_entries <= ENTRIES_AT_ONCE else sys.maxsize

    def take_bytes(self, size: int, name: str) -> None:
        """
        Count the *size* bytes of the long value *name*.

        Raises:
            TooManyEntries: there are more than may come.
        """
        self.left_bytes -= size
        if self.left_bytes < 0:
            too_many_entries(name)

    def take(self, count: int, name: str) -> None:
        """
        Count the entries of the array *name*.

        Raises:
            TooManyEntries: there are more than may come.
        """
        self.left -= count
        if self.left < 0:
            too_many_entries(name)


class Reader(Allowance):
    """
    Data and a position in it.
    """

    def __init__(self, data: memoryview, position: int, most_entries: int) -> None:
        self.data = data
        self.position = position
        self.end = len(data)
        self.allow(most_entries)

    def uvarint(self) -> int:
        """
        Read an unsigned varint.
        """
        value: int = self.data[self.position]
        if value < 128:
            self.position += 1
            return value
        value, self.position = read_uvarint(self.data, self.position)
        return value

    def fixed(self, layout: Layout) -> Any:
        """
        Read the one value of *layout*.
        """
        values = layout.unpack_from(self.data, self.position)
        self.position += layout.size
        return values[0]


class Writer(Allowance):
    """
    Collects small pieces in ``out``, and joins them in ``parts``, in which records stay buffers of
    their own: they are the caller's, and nothing copies them.
    """

    def __init__(self, most_entries: int) -> None:
        self.parts: list[Buffer] = []
        self.out: list[Buffer] = []
        self.allow(most_entries)

    def join(self) -> None:
        """
        Join the small pieces.
        """
        self.parts.append(b"".join(self.out))
        self.out.clear()

    def finished(self) -> list[Buffer]:
        """
        All that was written.
        """
        self.join()
        return self.parts


class WireType:
    """
    A type of the wire, in one version.

    Attributes:
        least: the size in bytes that a value has at least.
        has_arrays: whether values can be read and written in steps.
    """

    least = 0
    has_arrays = False

    def read(self, reader: Reader) -> Any:
        """
        Read a value.
        """
        raise NotImplementedError

    def write(self, writer: Writer, value: Any) -> None:
        """
        Write a value.
        """
        raise NotImplementedError

    def read_in_steps(self, reader: Reader) -> Generator[None, None, Any]:
        """
        Read a value, in steps.
        """
        yield
        return self.read(reader)

    def write_in_steps(self, writer: Writer, value: Any) -> Generator[None, None, None]:
        """
        Write a value, in steps.
        """
        yield
        self.write(writer, value)


class FixedSize(WireType):
    """
    A number or a boolean.
    """

    def __init__(self, letter: str) -> None:
        self.letter = letter
        self._layout = Layout(">" + letter)
        self.least = self._layout.size

    def read(self, reader: Reader) -> Any:
        return reader.fixed(self._layout)

    def write(self, writer: Writer, value: Any) -> None:
        writer.out.append(self._layout.pack(value))


class Uuid(WireType):
    """
    Sixteen bytes.
    """

    least = 16

    def read(self, reader: Reader) -> Any:
        return uuid_from(reader.fixed(_UUID))

    def write(self, writer: Writer, value: Any) -> None:
        writer.out.append(value.bytes)


class Prefixed(WireType):
    """
    A value with a length or a count before it, which is -1 for null.
    """

    def __init__(self, name: str, *, compact: bool, nullable: bool, small: bool = False) -> None:
        self.name = name
        self.compact = compact
        self.nullable = nullable
        self._layout = _INT16 if small else _INT32
        self.least = 1 if compact else self._layout.size

    def read_length(self, reader: Reader) -> int:
        """
        Read the length.
        """
        if self.compact:
            return reader.uvarint() - 1
        length: int = reader.fixed(self._layout)
        return length

    def write_length(self, writer: Writer, length: int) -> None:
        """
        Write the length.
        """
        if not self.compact:
            writer.out.append(self._layout.pack(length))
        elif length < 127:
            writer.out.append(UVARINTS[length + 1])
        elif self._layout is _INT16:
            writer.out.append(string_length(length))
        else:
            writer.out.append(uvarint(length + 1))


class Sized(Prefixed):
    """
    A string, bytes or records.
    """

    def __init__(self, kind: Kind, name: str, *, compact: bool, nullable: bool) -> None:
        super().__init__(name, compact=compact, nullable=nullable, small=kind is Kind.STRING)
        self._is_string = kind is Kind.STRING
        self._is_records = kind is Kind.RECORDS

    def read(self, reader: Reader) -> Any:
        length = self.read_length(reader)
        if length < 0 and self.nullable:
            return None
        start = reader.position
        end = start + length
        if self._is_string and length > MAX_STRING_BYTES:
            bad_length(self.name, length, length)
        if not start <= end <= reader.end:
            bad_length(self.name, length, reader.end - start)
        reader.position = end
        if length >= LONG_BYTES and not self._is_records:
            reader.take_bytes(length, self.name)
        value = reader.data[start:end]
        if self._is_string:
            # Bytes that are not UTF-8 become U+FFFD, as in Java.
            return str(value, "utf-8", "replace")
        return value if self._is_records else bytes(value)

    def write(self, writer: Writer, value: Any) -> None:
        if value is None and self.nullable:
            self.write_length(writer, -1)
            return
        data = value.encode() if self._is_string else value
        if len(data) >= LONG_BYTES and not self._is_records:
            writer.take_bytes(len(data), self.name)
        self.write_length(writer, len(data))
        if self._is_records:
            writer.join()
            writer.parts.append(data)
        else:
            writer.out.append(data)


class ArrayOf(Prefixed):
    """
    Elements of one type.
    """

    def __init__(self, element: WireType, name: str, *, compact: bool, nullable: bool) -> None:
        super().__init__(name, compact=compact, nullable=nullable)
        self._element = element
        self._least = max(1, element.least)
        self._letter = element.letter if isinstance(element, FixedSize) else ""
        self.has_arrays = True

    def read(self, reader: Reader) -> Any:
        count = self._read_count(reader)
        if count < 0:
            return None
        if self._letter:
            return self._read_numbers(reader, count)
        element = self._element
        return [element.read(reader) for _ in range(count)]

    def read_in_steps(self, reader: Reader) -> Generator[None, None, Any]:
        count = self._read_count(reader)
        if count < 0:
            return None
        if self._letter:
            return self._read_numbers(reader, count)
        element = self._element
        values = []
        for _ in range(count):
            if element.has_arrays:
                values.append((yield from element.read_in_steps(reader)))
            else:
                values.append(element.read(reader))
            yield
        return values

    def _read_count(self, reader: Reader) -> int:
        """
        The number of elements; -1 for null.
        """
        count = self.read_length(reader)
        if count < 0 and self.nullable:
            return -1
        left = reader.end - reader.position
        # Nothing is allocated for elements that cannot be there.
        if not 0 <= count * self._least <= left:
            bad_count(self.name, count, left)
        reader.take(count, self.name)
        return count

    def _read_numbers(self, reader: Reader, count: int) -> list[Any]:
        values = unpack_from(f">{count}{self._letter}", reader.data, reader.position)
        reader.position += count * self._least
        return list(values)

    def write(self, writer: Writer, value: Any) -> None:
        if self._write_count(writer, value):
            element = self._element
            for each in value:
                element.write(writer, each)

    def write_in_steps(self, writer: Writer, value: Any) -> Generator[None, None, None]:
        if not self._write_count(writer, value):
            return
        element = self._element
        for each in value:
            if element.has_arrays:
                yield from element.write_in_steps(writer, each)
            else:
                element.write(writer, each)
            if len(writer.out) > _PIECES_AT_ONCE:
                writer.join()
            yield

    def _write_count(self, writer: Writer, value: Any) -> bool:
        """
        Write the number of elements; returns whether these are to be written one by one.
        """
        if value is None and self.nullable:
            self.write_length(writer, -1)
            return False
        count = len(value)
        self.write_length(writer, count)
        writer.take(count, self.name)
        if self._letter:
            writer.out.append(pack(f">{count}{self._letter}", *value))
            return False
        return True


class NullableStruct(WireType):
    """
    A struct with a marker before it, which is negative for null.

    In a tagged field Kafka's generator writes the marker as an unsigned varint.
    """

    least = 1

    def __init__(self, struct: WireType, *, tagged: bool) -> None:
        self._struct = struct
        self._tagged = tagged
        self.has_arrays = struct.has_arrays

    def read(self, reader: Reader) -> Any:
        return self._struct.read(reader) if self._is_there(reader) else None

    def read_in_steps(self, reader: Reader) -> Generator[None, None, Any]:
        if not self._is_there(reader):
            return None
        return (yield from self._struct.read_in_steps(reader))

    def _is_there(self, reader: Reader) -> bool:
        if self._tagged:
            return reader.uvarint() > 0
        marker = reader.data[reader.position]
        reader.position += 1
        return marker < 128

    def write(self, writer: Writer, value: Any) -> None:
        self._write_marker(writer, value)
        if value is not None:
            self._struct.write(writer, value)

    def write_in_steps(self, writer: Writer, value: Any) -> Generator[None, None, None]:
        self._write_marker(writer, value)
        if value is not None:
            yield from self._struct.write_in_steps(writer, value)

    def _write_marker(self, writer: Writer, value: Any) -> None:
        if value is not None:
            writer.out.append(b"\1")
        else:
            writer.out.append(b"\0" if self._tagged else b"\xff")
