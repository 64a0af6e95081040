"""
A version of a message as a tree of types: a struct has members, and an array a type of element.

The members of a struct are single fields, runs of fields of fixed size, and the section of tagged
fields. The tree is made from the declaration of the message, in a few microseconds for each field.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from functools import partial
from operator import attrgetter
from struct import Struct as Layout
from typing import Any, Final, cast

from barnabas.protocol.codec.primitives import (
    MAX_TAGGED_FIELDS,
    UVARINTS,
    Buffer,
    bad_tag_count,
    uvarint,
)
from barnabas.protocol.codec.schema import Array, Field, Fixed, Kind, Struct, Type, fields
from barnabas.protocol.codec.wire_types import (
    ArrayOf,
    FixedSize,
    NullableStruct,
    Reader,
    Sized,
    Uuid,
    WireType,
    Writer,
)
from barnabas.protocol.errors import DecodeError
from barnabas.protocol.structs import MISSING

_NO_TAGS: Final = b"\0"


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
        layout = Layout(">" + letters)
        self._size = layout.size
        self._pack: Callable[..., bytes] = layout.pack
        self._unpack: Callable[[memoryview, int], tuple[Any, ...]] = layout.unpack_from

    def read(self, reader: Reader, message: Any) -> None:
        values = self._unpack(reader.data, reader.position)
        reader.position += self._size
        for at, setter in enumerate(self._setters):
            setter(message, values[at])

    def write(self, writer: Writer, message: Any) -> None:
        writer.out.append(self._pack(*self._get(message)))


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
        Continue behind a tagged field. An unknown one is skipped.
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
    The setter of a field of *cls*: that of the slot, which passes by the ``__setattr__`` of frozen
    classes.
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
