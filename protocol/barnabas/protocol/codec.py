"""
Messages to bytes and back.

For each version of a message the first use writes, compiles and keeps a function for just that.
"""

from __future__ import annotations

import struct
from typing import Final, TypeVar

from barnabas.protocol.decoder import Decoder, compile_decoder
from barnabas.protocol.encoder import Encoder, compile_encoder
from barnabas.protocol.errors import DecodeError
from barnabas.protocol.primitives import Buffer
from barnabas.protocol.schema import Message

M = TypeVar("M", bound=Message)

_DECODERS: Final[dict[tuple[type[Message], int], Decoder]] = {}
_ENCODERS: Final[dict[tuple[type[Message], int], Encoder]] = {}


def decode(cls: type[M], version: int, data: Buffer) -> M:
    """
    The message at the start of *data*; bytes after it are ignored, as Kafka does.

    Fields of records are slices of *data*, writable if it is.

    Raises:
        DecodeError: the data is too short, or says something that cannot be.
        ValueError: there is no such version.
    """
    return decode_from(cls, version, data, 0)[0]


def decode_from(cls: type[M], version: int, data: Buffer, position: int) -> tuple[M, int]:
    """
    The message at *position* of *data*, and the position after it.

    Raises:
        DecodeError: the data is too short, or says something that cannot be.
        ValueError: there is no such version.
    """
    decoder = _DECODERS.get((cls, version))
    if decoder is None:
        decoder = _DECODERS[cls, version] = compile_decoder(
            cls, version, flexible=_check_version(cls, version)
        )
    try:
        return decoder(memoryview(data), position)
    except (DecodeError, struct.error, IndexError) as error:
        raise DecodeError(f"{cls.__name__} version {version}: {error}") from error


def encode(message: Message, version: int) -> bytes:
    """
    *message* as bytes. Fields that the version does not have are left out.

    Raises:
        ValueError: there is no such version, or a value does not fit its type: null where that is
            not allowed, a number or a string too large.
    """
    return b"".join(encode_parts(message, version))


def encode_parts(message: Message, version: int) -> list[Buffer]:
    """
    *message* as buffers that follow each other.

    Fields of records are among them as they are: nothing is copied.

    Raises:
        ValueError: as in ``encode``.
    """
    cls = type(message)
    encoder = _ENCODERS.get((cls, version))
    if encoder is None:
        encoder = _ENCODERS[cls, version] = compile_encoder(
            cls, version, flexible=_check_version(cls, version)
        )
    try:
        return encoder(message)
    except (struct.error, TypeError, AttributeError, ValueError) as error:
        raise ValueError(f"{cls.__name__} version {version}: {error}") from error


def _check_version(cls: type[Message], version: int) -> bool:
    """
    Whether *version* of *cls* is flexible.
    """
    if version not in cls.api.versions:
        raise ValueError(f"{cls.__name__} has no version {version}")
    return cls.api.is_flexible(version)
