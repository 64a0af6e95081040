"""
Messages to bytes and back.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Generator
from typing import Any, Final, TypeVar

from barnabas.protocol.codec.primitives import Buffer
from barnabas.protocol.codec.schema import Message
from barnabas.protocol.codec.struct_of import StructOf
from barnabas.protocol.codec.wire_types import Reader, Writer
from barnabas.protocol.errors import DecodeError

M = TypeVar("M", bound=Message)

ANY_NUMBER: Final = sys.maxsize
"""
As many entries as there are.
"""

_TYPES: Final[dict[tuple[type[Message], int], StructOf]] = {}

_MALFORMED: Final = (DecodeError, struct.error, IndexError)
_NOT_ENCODABLE: Final = (struct.error, TypeError, AttributeError, ValueError)


def decode(cls: type[M], version: int, data: Buffer) -> M:
    """
    The message at the start of *data*; bytes after it are ignored, as Kafka does.

    Fields of records are slices of *data*, writable if it is.

    Raises:
        DecodeError: the data is too short, or is not a valid message.
        ValueError: there is no such version.
    """
    return decode_from(cls, version, data, 0)[0]


def decode_from(
    cls: type[M], version: int, data: Buffer, position: int, most_entries: int = ANY_NUMBER
) -> tuple[M, int]:
    """
    The message at *position* of *data*, and the position after it.

    Raises:
        DecodeError: the data is too short, or is not a valid message.
        TooManyEntries: its arrays have more than *most_entries*, all together.
        ValueError: there is no such version.
    """
    wire_type = _TYPES.get((cls, version)) or _make_type(cls, version)
    reader = Reader(memoryview(data), position, most_entries)
    try:
        return wire_type.read(reader), reader.position
    except _MALFORMED as error:
        raise DecodeError(f"{cls.__name__} version {version}: {error}") from error


def decode_in_steps(
    cls: type[M], version: int, data: Buffer, position: int, most_entries: int = ANY_NUMBER
) -> Generator[None, None, tuple[M, int]]:
    """
    As ``decode_from``; it yields with each entry of an array, so that others may come between.

    Raises:
        DecodeError, TooManyEntries, ValueError: as in ``decode_from``.
    """
    wire_type = _TYPES.get((cls, version)) or _make_type(cls, version)
    reader = Reader(memoryview(data), position, most_entries)
    try:
        message: Any = yield from wire_type.read_in_steps(reader)
    except _MALFORMED as error:
        raise DecodeError(f"{cls.__name__} version {version}: {error}") from error
    return message, reader.position


def encode(message: Message, version: int) -> bytes:
    """
    *message* as bytes. Fields that the version does not have are left out.

    Raises:
        ValueError: there is no such version, or a value does not fit its type: null where that is
            not allowed, a number or a string too large.
    """
    return b"".join(encode_parts(message, version))


def encode_parts(message: Message, version: int, most_entries: int = ANY_NUMBER) -> list[Buffer]:
    """
    *message* as buffers that follow each other.

    Fields of records are among them as they are: nothing is copied.

    Raises:
        TooManyEntries: its arrays have more than *most_entries*, all together.
        ValueError: as in ``encode``.
    """
    cls = type(message)
    wire_type = _TYPES.get((cls, version)) or _make_type(cls, version)
    writer = Writer(most_entries)
    try:
        wire_type.write(writer, message)
    except _NOT_ENCODABLE as error:
        raise ValueError(f"{cls.__name__} version {version}: {error}") from error
    return writer.finished()


def encode_in_steps(message: Message, version: int) -> Generator[None, None, list[Buffer]]:
    """
    As ``encode_parts``; it yields with each entry of an array, so that others may come between.

    Raises:
        ValueError: as in ``encode``.
    """
    cls = type(message)
    wire_type = _TYPES.get((cls, version)) or _make_type(cls, version)
    writer = Writer(ANY_NUMBER)
    try:
        yield from wire_type.write_in_steps(writer, message)
    except _NOT_ENCODABLE as error:
        raise ValueError(f"{cls.__name__} version {version}: {error}") from error
    return writer.finished()


def _make_type(cls: type[Message], version: int) -> StructOf:
    """
    The type of *version* of *cls*, from now on.

    Raises:
        TypeError: the declaration of the message makes no sense in this version.
        ValueError: there is no such version.
    """
    if version not in cls.api.versions:
        raise ValueError(f"{cls.__name__} has no version {version}")
    made = StructOf(cls, version, flexible=cls.api.is_flexible(version))
    return _TYPES.setdefault((cls, version), made)
