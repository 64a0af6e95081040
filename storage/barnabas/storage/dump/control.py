"""
Control records: markers of transactions, and what Raft keeps in its own log.
"""

from __future__ import annotations

from struct import Struct
from typing import Any, Final

from barnabas.protocol.codec.schema import ZERO_UUID, Message
from barnabas.protocol.records.control import (
    ControlRecordType,
    KRaftVersionRecord,
    LeaderChangeMessage,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    VotersRecord,
)
from barnabas.protocol.structs import NamedTuple
from barnabas.storage.dump.decoders.message_reader import (
    BadMessage,
    MessageReader,
)
from barnabas.storage.dump.failure import INVALID_RECORD, DumpFailure
from barnabas.storage.dump.jackson import json_text

_KEY: Final = Struct(">hh")
_MARKER: Final = Struct(">hi")
_UNDERFLOW: Final = "java.nio.BufferUnderflowException"
_NULL_POINTER: Final = "java.lang.NullPointerException"

_MESSAGES: Final[dict[ControlRecordType, tuple[str, type[Message]]]] = {
    ControlRecordType.LEADER_CHANGE: ("LeaderChange:", LeaderChangeMessage),
    ControlRecordType.SNAPSHOT_HEADER: ("SnapshotHeader", SnapshotHeaderRecord),
    ControlRecordType.SNAPSHOT_FOOTER: ("SnapshotFooter", SnapshotFooterRecord),
    ControlRecordType.KRAFT_VERSION: ("KRaftVersion", KRaftVersionRecord),
    ControlRecordType.KRAFT_VOTERS: ("KRaftVoters", VotersRecord),
}


class ControlRecord(NamedTuple):
    """
    A control record that was understood, *message* being what it says beyond its type.
    """

    type: ControlRecordType
    number: int
    message: dict[str, Any]

    def text(self) -> str:
        """
        What a line has behind the metadata of the record.
        """
        if self.type in _MESSAGES:
            return f" {_MESSAGES[self.type][0]} {json_text(self.message)}"
        if self.type is ControlRecordType.UNKNOWN:
            return f" controlType: {self.type.name}({self.number})"
        epoch = self.message["coordinatorEpoch"]
        return f" endTxnMarker: {self.type.name} coordinatorEpoch: {epoch}"


def control_record(key: bytes | None, value: bytes | None) -> ControlRecord:
    """
    Raises:
        DumpFailure: key or value are none of a control record.
    """
    number = _number(key)
    known = 0 <= number <= ControlRecordType.KRAFT_VOTERS
    control_type = ControlRecordType(number) if known else ControlRecordType.UNKNOWN
    if not known:
        return ControlRecord(control_type, number, {})
    if value is None:
        raise DumpFailure(_NULL_POINTER)
    if control_type in _MESSAGES:
        return ControlRecord(control_type, number, _message(_MESSAGES[control_type][1], value))
    return ControlRecord(control_type, number, {"coordinatorEpoch": _coordinator_epoch(value)})


def _number(key: bytes | None) -> int:
    if key is None:
        raise DumpFailure(_NULL_POINTER)
    if len(key) < _KEY.size:
        raise DumpFailure(
            INVALID_RECORD,
            "Invalid value size found for control record key. Must have at least "
            f"{_KEY.size} bytes, but found only {len(key)}",
        )
    version, number = _KEY.unpack_from(key)
    if version < 0:
        raise DumpFailure(
            INVALID_RECORD,
            f"Invalid version found for control record: {version}. May indicate data corruption",
        )
    return int(number)


def _coordinator_epoch(value: bytes) -> int:
    if len(value) < _MARKER.size:
        raise DumpFailure(_UNDERFLOW)
    version, epoch = _MARKER.unpack_from(value)
    if version < 0:
        raise DumpFailure(
            INVALID_RECORD,
            f"Invalid version found for end transaction marker: {version}. "
            "May indicate data corruption",
        )
    return int(epoch)


def _message(cls: type[Message], value: bytes) -> dict[str, Any]:
    """
    The message, read as version 0 and shown as the version that it says to have.
    """
    try:
        message = MessageReader(value).read(cls, 0)
    except BadMessage as error:
        raise DumpFailure(error.kind, error.text) from error
    if cls is LeaderChangeMessage and message["version"] > 0:
        for voter in message["voters"] + message["grantingVoters"]:
            voter["voterDirectoryId"] = ZERO_UUID
    return message
