"""
Messages to bytes and back.

The schema of a message is its codec (``struct_of``). The requests and responses of three APIs have
a second one, written by hand, for speed (``hot_messages``). It reads and writes the same; what it
refuses is left to the general codec, which names the field that is wrong.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

import struct
import sys
from collections.abc import Callable, Generator
from importlib import import_module
from typing import Any, Final, TypeVar

from barnabas.protocol.codec.primitives import Buffer, LeftToGeneralCodec
from barnabas.protocol.codec.schema import Message
from barnabas.protocol.codec.struct_of import StructOf
from barnabas.protocol.codec.wire_types import Reader, Writer
from barnabas.protocol.errors import DecodeError

M = TypeVar("M", bound=Message)

ANY_NUMBER: Final = sys.maxsize
"""
As many entries as there are.
"""

HOT_MESSAGES: Final = frozenset({"produce", "fetch", "list_offsets"})
"""
The modules of ``messages`` whose requests and responses have a codec in ``hot_messages``, in the
module of the same name.
"""
_MESSAGES: Final = "barnabas.protocol.messages"
_HOT_CODECS: Final = "barnabas.protocol.hot_messages"

_MALFORMED: Final = (DecodeError, struct.error, IndexError)
_NOT_ENCODABLE: Final = (struct.error, TypeError, AttributeError, ValueError)
_NOT_READ: Final = (LeftToGeneralCodec, *_MALFORMED)
_NOT_WRITTEN: Final = (LeftToGeneralCodec, *_NOT_ENCODABLE)


class Codec:
    """
    Reads and writes one version of a message.
    """

    __slots__ = ("_hot_read", "_hot_write", "_struct", "cls", "version")

    def __init__(self, cls: type[Message], version: int) -> None:
        """
        Raises:
            TypeError: the declaration of the message makes no sense in this version.
            ValueError: there is no such version.
        """
        if version not in cls.api.versions:
            raise ValueError(f"{cls.__name__} has no version {version}")
        self.cls = cls
        self.version = version
        self._struct = StructOf(cls, version, flexible=cls.api.is_flexible(version))
        self._hot_read: Callable[[Buffer, int, int, int], tuple[Any, int]] | None = None
        self._hot_write: Callable[[Any, int, int], list[Buffer]] | None = None
        package, _, name = cls.__module__.rpartition(".")
        if package == _MESSAGES and name in HOT_MESSAGES:
            hot = import_module(f"{_HOT_CODECS}.{name}")
            if cls.__name__.endswith("Request"):
                self._hot_read = hot.read_request
            elif cls.__name__.endswith("Response"):
                self._hot_write = hot.write_response

    def read(self, data: Buffer, position: int, most_entries: int) -> tuple[Any, int]:
        """
        As ``decode_from``.
        """
        if self._hot_read is not None:
            try:
                return self._hot_read(data, position, self.version, most_entries)
            except _NOT_READ:
                pass
        reader = Reader(memoryview(data), position, most_entries)
        try:
            return self._struct.read(reader), reader.position
        except _MALFORMED as error:
            raise DecodeError(f"{self.cls.__name__} version {self.version}: {error}") from error

    def read_in_steps(
        self, data: Buffer, position: int, most_entries: int
    ) -> Generator[None, None, tuple[Any, int]]:
        """
        As ``decode_in_steps``.
        """
        reader = Reader(memoryview(data), position, most_entries)
        try:
            message: Any = yield from self._struct.read_in_steps(reader)
        except _MALFORMED as error:
            raise DecodeError(f"{self.cls.__name__} version {self.version}: {error}") from error
        return message, reader.position

    def write(self, message: Message, most_entries: int) -> list[Buffer]:
        """
        As ``encode_parts``.
        """
        if self._hot_write is not None:
            try:
                return self._hot_write(message, self.version, most_entries)
            except _NOT_WRITTEN:
                pass
        writer = Writer(most_entries)
        try:
            self._struct.write(writer, message)
        except _NOT_ENCODABLE as error:
            raise ValueError(f"{self.cls.__name__} version {self.version}: {error}") from error
        return writer.finished()

    def write_in_steps(self, message: Message) -> Generator[None, None, list[Buffer]]:
        """
        As ``encode_in_steps``.
        """
        writer = Writer(ANY_NUMBER)
        try:
            yield from self._struct.write_in_steps(writer, message)
        except _NOT_ENCODABLE as error:
            raise ValueError(f"{self.cls.__name__} version {self.version}: {error}") from error
        return writer.finished()


_CODECS: Final[dict[tuple[type[Message], int], Codec]] = {}


def codec_of(cls: type[Message], version: int) -> Codec:
    """
    What reads and writes *version* of *cls*.

    Raises:
        TypeError, ValueError: as in ``Codec``.
    """
    codec = _CODECS.get((cls, version))
    return _CODECS.setdefault((cls, version), Codec(cls, version)) if codec is None else codec


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
    return codec_of(cls, version).read(memoryview(data), position, most_entries)


def decode_in_steps(
    cls: type[M], version: int, data: Buffer, position: int, most_entries: int = ANY_NUMBER
) -> Generator[None, None, tuple[M, int]]:
    """
    As ``decode_from``; it yields with each entry of an array, so that others may come between.

    Raises:
        DecodeError, TooManyEntries, ValueError: as in ``decode_from``.
    """
    return (yield from codec_of(cls, version).read_in_steps(data, position, most_entries))


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
    return codec_of(type(message), version).write(message, most_entries)


def encode_in_steps(message: Message, version: int) -> Generator[None, None, list[Buffer]]:
    """
    As ``encode_parts``; it yields with each entry of an array, so that others may come between.

    Raises:
        ValueError: as in ``encode``.
    """
    return (yield from codec_of(type(message), version).write_in_steps(message))
