"""
Messages to bytes and back.

The first few structs of each version are read and written field by field. Where there are more, a
function for just that is written, compiled and kept, which is many times as quick, and takes as
long to make as a hundred structs: most of what a process meets, at its start above all, it meets
once. The requests and responses of three APIs are read and written by hand-written, compiled code
from the first one on (``hot_messages``). The function also names what these two find wrong, so that
errors are in one place.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

import struct
import sys
from collections.abc import Generator
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, TypeVar

from barnabas.protocol.codec.first_structs import Allowance, Refused, read_struct, write_struct
from barnabas.protocol.codec.primitives import Buffer
from barnabas.protocol.codec.schema import Message
from barnabas.protocol.errors import DecodeError

if TYPE_CHECKING:
    from types import ModuleType

    from barnabas.protocol.codec.decoder import Decoder, StepDecoder
    from barnabas.protocol.codec.encoder import Encoder, StepEncoder

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

_DECODERS: Final[dict[tuple[type[Message], int], Decoder]] = {}
_ENCODERS: Final[dict[tuple[type[Message], int], Encoder]] = {}
_STEP_DECODERS: Final[dict[tuple[type[Message], int], StepDecoder]] = {}
_STEP_ENCODERS: Final[dict[tuple[type[Message], int], StepEncoder]] = {}

_MALFORMED: Final = (DecodeError, struct.error, IndexError)
_NOT_ENCODABLE: Final = (struct.error, TypeError, AttributeError, ValueError)


def decode(cls: type[M], version: int, data: Buffer) -> M:
    """
    The message at the start of *data*; bytes after it are ignored, as Kafka does.

    Fields of records are slices of *data*, writable if it is.

    Raises:
        DecodeError: the data is too short, or says something that cannot be.
        ValueError: there is no such version.
    """
    return decode_from(cls, version, data, 0)[0]


def decode_from(
    cls: type[M], version: int, data: Buffer, position: int, most_entries: int = ANY_NUMBER
) -> tuple[M, int]:
    """
    The message at *position* of *data*, and the position after it.

    Raises:
        DecodeError: the data is too short, or says something that cannot be.
        TooManyEntries: its arrays have more than *most_entries*, all together.
        ValueError: there is no such version.
    """
    decoder = _DECODERS.get((cls, version))
    if decoder is None:
        decoder = _DECODERS[cls, version] = _first_decoder(cls, version)
    try:
        return decoder(memoryview(data), position, most_entries)
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
    decoder = _STEP_DECODERS.get((cls, version))
    if decoder is None:
        from barnabas.protocol.codec.decoder import compile_step_decoder  # noqa: PLC0415  # seldom needed

        flexible = _check_version(cls, version)
        decoder = compile_step_decoder(cls, version, flexible=flexible)
        _STEP_DECODERS[cls, version] = decoder
    try:
        return (yield from decoder(memoryview(data), position, most_entries))
    except _MALFORMED as error:
        raise DecodeError(f"{cls.__name__} version {version}: {error}") from error


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
    encoder = _ENCODERS.get((cls, version))
    if encoder is None:
        encoder = _ENCODERS[cls, version] = _first_encoder(cls, version)
    try:
        return encoder(message, most_entries)
    except _NOT_ENCODABLE as error:
        raise ValueError(f"{cls.__name__} version {version}: {error}") from error


def encode_in_steps(message: Message, version: int) -> Generator[None, None, list[Buffer]]:
    """
    As ``encode_parts``; it yields with each entry of an array, so that others may come between.

    Raises:
        ValueError: as in ``encode``.
    """
    cls = type(message)
    encoder = _STEP_ENCODERS.get((cls, version))
    if encoder is None:
        from barnabas.protocol.codec.encoder import compile_step_encoder  # noqa: PLC0415  # seldom needed

        flexible = _check_version(cls, version)
        encoder = compile_step_encoder(cls, version, flexible=flexible)
        _STEP_ENCODERS[cls, version] = encoder
    try:
        return (yield from encoder(message, ANY_NUMBER))
    except _NOT_ENCODABLE as error:
        raise ValueError(f"{cls.__name__} version {version}: {error}") from error


def _first_decoder(cls: type[Message], version: int) -> Decoder:
    """
    What decodes *version* of *cls*: hot code, or until there were many structs, field by field.

    Both leave what they refuse to the function, which takes the place of the second.
    """
    flexible = _check_version(cls, version)
    general: Decoder | None = None

    def decode_in_general(data: memoryview, position: int, most_entries: int) -> tuple[Any, int]:
        nonlocal general
        if general is None:
            from barnabas.protocol.codec.decoder import compile_decoder  # noqa: PLC0415  # only for many

            general = compile_decoder(cls, version, flexible=flexible)
        return general(data, position, most_entries)

    hot = _hot_codec(cls, "Request")
    if hot is not None:
        read = hot.read_request

        def decode_hot(data: memoryview, position: int, most_entries: int) -> tuple[Any, int]:
            try:
                return read(data, position, version, most_entries)  # type: ignore[no-any-return]
            except (Refused, *_MALFORMED):
                return decode_in_general(data, position, most_entries)

        return decode_hot

    left = Allowance()

    def decode_first(data: memoryview, position: int, most_entries: int) -> tuple[Any, int]:
        try:
            return read_struct(cls, version, data, position, flexible=flexible, left=left)
        except (Refused, TypeError, *_MALFORMED):
            _DECODERS[cls, version] = decode_in_general
            return decode_in_general(data, position, most_entries)

    return decode_first


def _first_encoder(cls: type[Message], version: int) -> Encoder:
    """
    What encodes *version* of *cls*, as ``_first_decoder`` decodes.
    """
    flexible = _check_version(cls, version)
    general: Encoder | None = None

    def encode_in_general(message: Message, most_entries: int) -> list[Buffer]:
        nonlocal general
        if general is None:
            from barnabas.protocol.codec.encoder import compile_encoder  # noqa: PLC0415  # only for many

            general = compile_encoder(cls, version, flexible=flexible)
        return general(message, most_entries)

    hot = _hot_codec(cls, "Response")
    if hot is not None:
        write = hot.write_response

        def encode_hot(message: Message, most_entries: int) -> list[Buffer]:
            try:
                return write(message, version, most_entries)  # type: ignore[no-any-return]
            except (Refused, *_NOT_ENCODABLE):
                return encode_in_general(message, most_entries)

        return encode_hot

    left = Allowance()

    def encode_first(message: Message, most_entries: int) -> list[Buffer]:
        try:
            return write_struct(message, version, flexible=flexible, left=left)
        except (Refused, *_NOT_ENCODABLE):
            _ENCODERS[cls, version] = encode_in_general
            return encode_in_general(message, most_entries)

    return encode_first


def _hot_codec(cls: type[Message], kind: str) -> ModuleType | None:
    """
    The module of ``hot_messages`` for *cls*, if it is of that *kind* and has one.
    """
    package, _, name = cls.__module__.rpartition(".")
    if package != _MESSAGES or name not in HOT_MESSAGES or not cls.__name__.endswith(kind):
        return None
    return import_module(f"{_HOT_CODECS}.{name}")


def _check_version(cls: type[Message], version: int) -> bool:
    """
    Whether *version* of *cls* is flexible.
    """
    if version not in cls.api.versions:
        raise ValueError(f"{cls.__name__} has no version {version}")
    return cls.api.is_flexible(version)
