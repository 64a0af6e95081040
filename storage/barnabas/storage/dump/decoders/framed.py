"""
Values in a frame: the version of the frame, the type and the version of the value, as unsigned
varints. ``__cluster_metadata`` and ``__remote_log_metadata`` have them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from barnabas.protocol.codec.schema import Message
from barnabas.protocol.structs import NamedTuple
from barnabas.storage.dump.decoders.message_reader import BadMessage, MessageReader

_FRAME_VERSION: Final = 1
_LARGEST: Final = 2**15 - 1


class FramedMessage(NamedTuple):
    """
    The message in a frame.
    """

    cls: type[Message]
    version: int
    data: dict[str, Any]


def read_framed(reader: MessageReader, schemas: Mapping[int, type[Message]]) -> FramedMessage:
    """
    Raises:
        BadMessage: with the text of Kafka's MetadataParseException (AbstractApiMessageSerde).
    """
    frame = _number(reader, "frame version")
    if frame == 0:
        raise BadMessage(
            "Could not deserialize metadata record with frame version 0. Note that upgrades from "
            "the preview release of KRaft in 2.8 to newer versions are not supported."
        )
    if frame != _FRAME_VERSION:
        raise BadMessage(
            f"Could not deserialize metadata record due to unknown frame version {frame}(only "
            f"frame version {_FRAME_VERSION} is supported)"
        )
    number = _number(reader, "type")
    version = _number(reader, "version")
    cls = schemas.get(number)
    if cls is None:
        raise BadMessage(
            "org.apache.kafka.common.errors.UnsupportedVersionException: "
            f"Unknown metadata id {number}"
        )
    try:
        data = reader.read(cls, version)
    except BadMessage as error:
        raise BadMessage(f"Failed to deserialize record with type {number}") from error
    if reader.remaining:
        raise BadMessage(f"Found {reader.remaining} byte(s) of garbage after {number}")
    return FramedMessage(cls, version, data)


def _number(reader: MessageReader, entity: str) -> int:
    try:
        number = reader.read_uvarint()
    except BadMessage as error:
        raise BadMessage(f"Error while reading {entity}") from error
    if number > _LARGEST:
        raise BadMessage(f"Value for {entity} was too large.")
    # Kafka casts to a short what its int has not refused: a negative number keeps 16 bits.
    return (number & 0xFFFF ^ 0x8000) - 0x8000
