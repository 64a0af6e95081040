"""
The members of a struct on the wire: single fields, and runs of fields of fixed size.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from operator import attrgetter
from struct import Struct as Layout
from typing import Any

from barnabas.protocol.codec.schema import Field
from barnabas.protocol.codec.wire_types import Reader, WireType, Writer


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
        self.set = setter_of(cls, field.name)
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
        self._setters = [setter_of(cls, name) for name in names]
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


def setter_of(cls: type, name: str) -> Callable[[Any, Any], None]:
    """
    The setter of a field of *cls*: that of the slot, which passes by the ``__setattr__`` of frozen
    classes.
    """
    setter: Callable[[Any, Any], None] = getattr(cls, name).__set__
    return setter
