"""
Control records: markers of transactions, and the records of Raft in the metadata log.
"""

from __future__ import annotations

from typing import Any, Final

from barnabas.protocol.codec.schema import ZERO_UUID, Message
from barnabas.protocol.errors import NullValue
from barnabas.protocol.records.control import (
    ControlRecordType,
    KRaftVersionRecord,
    LeaderChangeMessage,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    VotersRecord,
    control_type_number,
    coordinator_epoch,
)
from barnabas.protocol.structs import NamedTuple
from barnabas.storage.dump.decoders.message_reader import (
    BadMessage,
    MessageReader,
)
from barnabas.storage.dump.failure import DumpFailure
from barnabas.storage.dump.java_text import json_text

_MESSAGES: Final[dict[ControlRecordType, tuple[str, type[Message]]]] = {
    ControlRecordType.LEADER_CHANGE: ("LeaderChange:", LeaderChangeMessage),
    ControlRecordType.SNAPSHOT_HEADER: ("SnapshotHeader", SnapshotHeaderRecord),
    ControlRecordType.SNAPSHOT_FOOTER: ("SnapshotFooter", SnapshotFooterRecord),
    ControlRecordType.KRAFT_VERSION: ("KRaftVersion", KRaftVersionRecord),
    ControlRecordType.KRAFT_VOTERS: ("KRaftVoters", VotersRecord),
}


class ControlRecord(NamedTuple):
    """
    A control record: its type, the number of the type, and the fields of its value.
    """

    type: ControlRecordType
    number: int
    message: dict[str, Any]

    def text(self) -> str:
        """
        The end of its line, behind the metadata of the record.
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
        InvalidRecord, DumpFailure: the key or the value is not that of a control record.
    """
    number = control_type_number(key)
    control_type = ControlRecordType.of(key)
    if control_type is ControlRecordType.UNKNOWN:
        return ControlRecord(control_type, number, {})
    if value is None:
        raise NullValue
    if control_type in _MESSAGES:
        return ControlRecord(control_type, number, _message(_MESSAGES[control_type][1], value))
    return ControlRecord(control_type, number, {"coordinatorEpoch": coordinator_epoch(value)})


def _message(cls: type[Message], value: bytes) -> dict[str, Any]:
    """
    The message, read as version 0 and printed as the version in its ``version`` field.
    """
    try:
        message = MessageReader(value).read(cls, 0)
    except BadMessage as error:
        raise DumpFailure(error.kind, error.text) from error
    if cls is LeaderChangeMessage and message["version"] > 0:
        for voter in message["voters"] + message["grantingVoters"]:
            voter["voterDirectoryId"] = ZERO_UUID
    return message
