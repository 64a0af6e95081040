"""
The types of one version of a message, which read and write their values (Kafka ``protocol.types``).

A message is a tree of them: a struct has members, which are single fields, runs of fields of fixed
size, and the section of tagged fields; an array has a type for its elements. The tree is made from
the declaration of the message, in a few microseconds for each field.

Reading beyond the end of the data is an error of ``struct`` or of indexing, which ``codec`` turns
into a ``DecodeError``; slices would be short without an error, so that each is compared with the
end.

A type that has arrays reads and writes in steps as well: a generator yields behind each element, so
that others may come between.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from functools import partial
from operator import attrgetter
from struct import Struct as Layout
from struct import pack, unpack_from
from typing import Any, Final, cast

from barnabas.protocol.codec.primitives import (
    MAX_STRING_BYTES,
    MAX_TAGGED_FIELDS,
    UVARINTS,
    Buffer,
    bad_count,
    bad_length,
    bad_tag_count,
    read_uvarint,
    string_length,
    too_many_entries,
    uuid_from,
    uvarint,
)
from barnabas.protocol.codec.schema import Array, Field, Fixed, Kind, Struct, Type, fields
from barnabas.protocol.errors import DecodeError
from barnabas.protocol.structs import MISSING

_PIECES_AT_ONCE: Final = 4096
"""
So many small pieces are joined in one step.
"""
_INT16: Final = Layout(">h")
_INT32: Final = Layout(">i")
_UUID: Final = Layout("16s")
_NO_TAGS: Final = b"\0"


class Allowance:
    """
    How many entries of arrays may still come.
    """

    left: int

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
        self.left = most_entries

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
    Collects what is small in ``out``, and all of it in ``parts``, where records stay buffers of
    their own: they are the caller's, and nothing copies them.
    """

    def __init__(self, most_entries: int) -> None:
        self.parts: list[Buffer] = []
        self.out: list[Buffer] = []
        self.left = most_entries

    def join(self) -> None:
        """
        Join what is small.
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
        value = reader.data[start:end]
        if self._is_string:
            # What is no UTF-8 becomes U+FFFD, as in Java.
            return str(value, "utf-8", "replace")
        return value if self._is_records else bytes(value)

    def write(self, writer: Writer, value: Any) -> None:
        if value is None and self.nullable:
            self.write_length(writer, -1)
            return
        data = value.encode() if self._is_string else value
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


class Member:
    """
    A part of a struct: a field, several, or the section of tagged fields.
    """

    has_arrays = False

    def read(self, reader: Reader, message: Any) -> None:
        """
        Read it into *message*.
        """
        raise NotImplementedError

    def write(self, writer: Writer, message: Any) -> None:
        """
        Write what *message* has of it.
        """
        raise NotImplementedError

    def read_in_steps(self, reader: Reader, message: Any) -> Generator[None, None, None]:
        """
        Read it into *message*, in steps.
        """
        self.read(reader, message)
        yield

    def write_in_steps(self, writer: Writer, message: Any) -> Generator[None, None, None]:
        """
        Write what *message* has of it, in steps.
        """
        self.write(writer, message)
        yield


class Single(Member):
    """
    One field.
    """

    def __init__(self, cls: type, field: Field, wire_type: WireType) -> None:
        self.type = wire_type
        self.name = field.name
        self.default: Any = field.default
        self.set = _setter(cls, field.name)
        self.has_arrays = wire_type.has_arrays

    def read(self, reader: Reader, message: Any) -> None:
        self.set(message, self.type.read(reader))

    def write(self, writer: Writer, message: Any) -> None:
        self.type.write(writer, getattr(message, self.name))

    def read_in_steps(self, reader: Reader, message: Any) -> Generator[None, None, None]:
        self.set(message, (yield from self.type.read_in_steps(reader)))

    def write_in_steps(self, writer: Writer, message: Any) -> Generator[None, None, None]:
        yield from self.type.write_in_steps(writer, getattr(message, self.name))


class Run(Member):
    """
    Several fields of fixed size that follow each other.
    """

    def __init__(self, cls: type, names: Sequence[str], letters: str) -> None:
        self._setters = [_setter(cls, name) for name in names]
        self._get: Callable[[Any], Any] = attrgetter(*names)
        self._layout = Layout(">" + letters)

    def read(self, reader: Reader, message: Any) -> None:
        values = self._layout.unpack_from(reader.data, reader.position)
        reader.position += self._layout.size
        for at, setter in enumerate(self._setters):
            setter(message, values[at])

    def write(self, writer: Writer, message: Any) -> None:
        writer.out.append(self._layout.pack(*self._get(message)))


class TaggedFields(Member):
    """
    The section of tagged fields (KIP-482). It has those that differ from their defaults.
    """

    def __init__(self, name: str, known: dict[int, Single]) -> None:
        self._name = name
        self._known = known
        self._tags = sorted(known)
        self.has_arrays = any(single.has_arrays for single in known.values())

    def read(self, reader: Reader, message: Any) -> None:
        for _ in range(self._count(reader)):
            tag, stop = reader.uvarint(), reader.uvarint() + reader.position
            if tag in self._known:
                self._known[tag].read(reader, message)
            self._end(reader, tag, stop)

    def read_in_steps(self, reader: Reader, message: Any) -> Generator[None, None, None]:
        for _ in range(self._count(reader)):
            tag, stop = reader.uvarint(), reader.uvarint() + reader.position
            if tag in self._known:
                yield from self._known[tag].read_in_steps(reader, message)
            self._end(reader, tag, stop)

    def _count(self, reader: Reader) -> int:
        count = reader.uvarint()
        if count > MAX_TAGGED_FIELDS:
            bad_tag_count(self._name, count)
        return count

    def _end(self, reader: Reader, tag: int, stop: int) -> None:
        """
        Go on behind a tagged field, which is skipped if nobody knows it.
        """
        if tag not in self._known:
            reader.position = stop
        if stop > reader.end:
            raise DecodeError(f"{self._name}: tagged field {tag} ends after the data")
        if reader.position != stop:
            over = reader.position - stop
            raise DecodeError(
                f"{self._name}: tagged field {tag} is {over} bytes longer than it says"
            )

    def write(self, writer: Writer, message: Any) -> None:
        if not self._tags:
            writer.out.append(_NO_TAGS)
            return
        out: list[Buffer] = []
        count = 0
        for tag in self._tags:
            single = self._known[tag]
            value = getattr(message, single.name)
            # Most are the default itself, and to compare structs takes time.
            if value is single.default or value == single.default:
                continue
            body = Writer(writer.left)
            single.type.write(body, value)
            writer.left = body.left
            data = b"".join(body.finished())
            out += (uvarint(tag), uvarint(len(data)), data)
            count += 1
        writer.out.append(UVARINTS[count])
        writer.out += out


class StructOf(WireType):
    """
    A message or a struct in it: its fields in the order of the wire, and in flexible versions the
    tagged ones behind them.

    Raises:
        TypeError: this version lacks a field that has no default.
    """

    def __init__(self, cls: type, version: int, *, flexible: bool) -> None:
        self._cls = cls
        self._new: Callable[[], Any] = partial(object.__new__, cls)
        self._defaults: list[tuple[Callable[[Any, Any], None], Any]] = []
        self._members: list[Member] = []
        run: list[Single] = []
        tagged: dict[int, Single] = {}
        for field in fields(cls):
            present = field.is_in(version)
            if not present or field.tag is not None:
                self._defaults.append((_setter(cls, field.name), _default(cls, field, version)))
            if not present:
                continue
            single = Single(cls, field, _type_of(cls, field, version, flexible=flexible))
            if field.tag is not None:
                tagged[field.tag] = single
                continue
            self.least += single.type.least
            if isinstance(single.type, FixedSize):
                run.append(single)
            else:
                self._end_run(run)
                self._members.append(single)
        self._end_run(run)
        if flexible:
            self.least += 1
            self._members.append(TaggedFields(cls.__name__, tagged))
        self.has_arrays = any(member.has_arrays for member in self._members)

    def _end_run(self, run: list[Single]) -> None:
        if len(run) > 1:
            letters = "".join([cast(FixedSize, single.type).letter for single in run])
            self._members.append(Run(self._cls, [single.name for single in run], letters))
        else:
            self._members += run
        run.clear()

    def read(self, reader: Reader) -> Any:
        message = self._begin()
        for member in self._members:
            member.read(reader, message)
        return message

    def read_in_steps(self, reader: Reader) -> Generator[None, None, Any]:
        message = self._begin()
        for member in self._members:
            if member.has_arrays:
                yield from member.read_in_steps(reader, message)
            else:
                member.read(reader, message)
        return message

    def _begin(self) -> Any:
        """
        A message that has the fields which need not come.
        """
        message = self._new()
        for setter, default in self._defaults:
            setter(message, [] if default == [] else default)
        return message

    def write(self, writer: Writer, value: Any) -> None:
        for member in self._members:
            member.write(writer, value)

    def write_in_steps(self, writer: Writer, value: Any) -> Generator[None, None, None]:
        for member in self._members:
            if member.has_arrays:
                yield from member.write_in_steps(writer, value)
            else:
                member.write(writer, value)


def _setter(cls: type, name: str) -> Callable[[Any, Any], None]:
    """
    What sets a field of *cls*; that of the slot goes past ``__setattr__``, which refuses to change
    what is frozen.
    """
    setter: Callable[[Any, Any], None] = getattr(cls, name).__set__
    return setter


def _default(cls: type, field: Field, version: int) -> Any:
    if field.default is MISSING:
        name = f"{cls.__name__}.{field.name}"
        raise TypeError(f"{name} needs a default: version {version} lacks it")
    return field.default


def _type_of(cls: type, field: Field, version: int, *, flexible: bool) -> WireType:
    name = f"{cls.__name__}.{field.name}"
    compact = flexible and field.compact

    def simple(kind: Type, *, nullable: bool) -> WireType:
        if isinstance(kind, Fixed):
            return FixedSize(kind.format)
        if isinstance(kind, Struct):
            struct = StructOf(kind.cls, version, flexible=flexible)
            return NullableStruct(struct, tagged=field.tag is not None) if nullable else struct
        assert isinstance(kind, Kind), f"{name}: an array in an array"
        if kind is Kind.UUID:
            return Uuid()
        return Sized(kind, name, compact=compact, nullable=nullable)

    nullable = field.is_nullable_in(version)
    if not isinstance(field.type, Array):
        return simple(field.type, nullable=nullable)
    element = simple(field.type.element, nullable=False)
    return ArrayOf(element, name, compact=flexible, nullable=nullable)
