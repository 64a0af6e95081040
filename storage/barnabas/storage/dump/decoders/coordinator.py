"""
The topics of coordinators. The key of a record begins with its type, the value with its version.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from barnabas.protocol import consumer_protocol
from barnabas.protocol.codec.schema import Message
from barnabas.protocol.internal_topics import group_records, share_state_records
from barnabas.protocol.internal_topics.transaction_records import (
    TransactionLogKey,
    TransactionLogValue,
)
from barnabas.storage.dump.decoders import Decoded, DumpedRecord, Raw
from barnabas.storage.dump.decoders.message_reader import BadMessage, MessageReader, contents_of
from barnabas.storage.dump.failure import DumpFailure

Schemas = Mapping[int, tuple[type[Message], type[Message]]]

DELETED = Raw("<DELETE>")


class CoordinatorDecoder:
    """
    The records of one coordinator (Kafka's CoordinatorRecordMessageParser).
    """

    schemas: ClassVar[Schemas]
    """The classes of key and value by the type of the record."""

    def decode(self, record: DumpedRecord) -> Decoded:
        if record.key_size < 0:
            raise DumpFailure(
                "java.lang.RuntimeException",
                f"Failed to decode message at offset {record.offset} using the specified decoder "
                "(message had a missing key)",
            )
        try:
            key, value = contents_of(record)
            return self._decoded(key or b"", value, record.offset)
        except BadMessage as error:
            return Decoded(Raw(f"Error at offset {record.offset}, skipping. {error}"))

    def _decoded(self, key: bytes, value: bytes | None, offset: int) -> Decoded:
        keys = MessageReader(key)
        number = _version(keys, "key")
        schemas = self.schemas.get(number)
        if schemas is None:
            return Decoded(Raw(f"Unknown record type {number} at offset {offset}, skipping."))
        shown = {"type": str(number), "data": _read(keys, schemas[0], number, "key")}
        if value is None:
            return Decoded(shown, DELETED)
        values = MessageReader(value)
        version = _version(values, "value")
        if version not in schemas[1].api.versions:
            raise BadMessage(f"Found an unknown record version {version} for {number} type")
        data = _read(values, schemas[1], version, "value")
        return Decoded(shown, {"version": str(version), "data": self.shown(number, data)})

    def shown(self, number: int, data: dict[str, Any]) -> dict[str, Any]:
        """
        The fields of the value of a record of type *number* that are printed.
        """
        return data


class OffsetsDecoder(CoordinatorDecoder):
    """
    ``__consumer_offsets``: also decodes the subscriptions and assignments of consumers.
    """

    schemas = group_records.RECORDS

    def shown(self, number: int, data: dict[str, Any]) -> dict[str, Any]:
        is_group = number == group_records.GroupMetadataKey.api.key
        if is_group and data["protocolType"] == "consumer":
            for member in data["members"]:
                _replace(member, "subscription", consumer_protocol.ConsumerProtocolSubscription)
                _replace(member, "assignment", consumer_protocol.ConsumerProtocolAssignment)
        return data


class TransactionLogDecoder(CoordinatorDecoder):
    """
    ``__transaction_state``.
    """

    schemas: ClassVar[Schemas] = {
        TransactionLogKey.api.key: (TransactionLogKey, TransactionLogValue)
    }


class ShareStateDecoder(CoordinatorDecoder):
    """
    ``__share_group_state``.
    """

    schemas = share_state_records.RECORDS


def _replace(member: dict[str, Any], name: str, cls: type[Message]) -> None:
    """
    Replace bytes by the message in them, if they are one.
    """
    reader = MessageReader(member[name])
    try:
        member[name] = reader.read(cls, reader.read_int16())
    except BadMessage:
        return


def _version(reader: MessageReader, name: str) -> int:
    try:
        return reader.read_int16()
    except BadMessage as error:
        raise BadMessage(f"Could not read version from {name}'s buffer.") from error


def _read(reader: MessageReader, cls: type[Message], version: int, name: str) -> dict[str, Any]:
    """
    Read a key, whose version is always 0, or a value.
    """
    try:
        return reader.read(cls, 0 if name == "key" else version)
    except BadMessage as error:
        raise BadMessage(
            f"Could not read record with version {version} from {name}'s buffer due to: {error}."
        ) from error
