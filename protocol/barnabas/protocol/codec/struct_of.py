"""
A version of a message as a tree of types: a struct has members, and an array a type of element.

The members of a struct are single fields, runs of fields of fixed size, and the section of tagged
fields. The tree is made from the declaration of the message, in a few microseconds for each field.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

from collections.abc import Callable, Generator
from functools import partial
from typing import Any, cast

from barnabas.protocol.codec.members import Member, Run, Single, setter_of
from barnabas.protocol.codec.schema import Array, Field, Fixed, Kind, Struct, Type, fields
from barnabas.protocol.codec.tagged_fields import TaggedFields
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
from barnabas.protocol.structs import MISSING


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
                self._defaults.append((setter_of(cls, field.name), _default(cls, field, version)))
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
