"""
The records of ``__remote_log_metadata``, the segments in tiered storage.

Kafka prints them by ``toString`` of its classes (RemoteLogMetadataSerde and its transforms), which
refuse some values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from barnabas.protocol.codec.schema import Message
from barnabas.protocol.internal_topics.remote_log_records import (
    RECORDS,
    RemoteLogSegmentMetadataRecord,
    RemoteLogSegmentMetadataSnapshotRecord,
    RemoteLogSegmentMetadataUpdateRecord,
    RemotePartitionDeleteMetadataRecord,
)
from barnabas.storage.dump.decoders import Decoded, DumpedRecord, Raw
from barnabas.storage.dump.decoders.framed import read_framed
from barnabas.storage.dump.decoders.message_reader import BadMessage, MessageReader, contents_of
from barnabas.storage.dump.java_text import bool_text
from barnabas.storage.uuids import uuid_text

Shown = tuple[str, Mapping[str, str]]

_SEGMENT_STATES: Final = (
    "COPY_SEGMENT_STARTED",
    "COPY_SEGMENT_FINISHED",
    "DELETE_SEGMENT_STARTED",
    "DELETE_SEGMENT_FINISHED",
)
_PARTITION_STATES: Final = (
    "DELETE_PARTITION_MARKED",
    "DELETE_PARTITION_STARTED",
    "DELETE_PARTITION_FINISHED",
)
_NO_VALUE: Final = (
    'Cannot invoke "java.nio.ByteBuffer.remaining()" because the return value of '
    '"org.apache.kafka.common.record.internal.Record.value()" is null'
)


class RemoteLogDecoder:
    """
    Decodes the values; the records have no keys (Kafka's RemoteMetadataLogMessageParser).
    """

    def decode(self, record: DumpedRecord) -> Decoded:
        try:
            _key, value = contents_of(record)
            if value is None:
                raise BadMessage(_NO_VALUE)
            found = read_framed(MessageReader(value), RECORDS)
            name, shown = _SHOWN[found.cls](found.data)
        except BadMessage as error:
            return Decoded(value=Raw(f"Error at offset {record.offset}, skipping. {error}"))
        return Decoded(value=Raw(_object(name, shown)))


def _object(name: str, values: Mapping[str, str]) -> str:
    return f"{name}{{" + ", ".join(f"{key}={text}" for key, text in values.items()) + "}"


def _segment(data: dict[str, Any]) -> Shown:
    if data["startOffset"] < 0:
        raise BadMessage(
            f"Unexpected start offset = {data['startOffset']}. StartOffset for a remote segment "
            "cannot be negative"
        )
    if data["endOffset"] < data["startOffset"]:
        raise BadMessage(
            f"Unexpected end offset = {data['endOffset']}. EndOffset for a remote segment cannot "
            f"be less than startOffset = {data['startOffset']}"
        )
    return "RemoteLogSegmentMetadata", {
        "remoteLogSegmentId": _segment_id(data["remoteLogSegmentId"]),
        "startOffset": str(data["startOffset"]),
        "endOffset": str(data["endOffset"]),
        "brokerId": str(data["brokerId"]),
        "maxTimestampMs": str(data["maxTimestampMs"]),
        "eventTimestampMs": str(data["eventTimestampMs"]),
        "segmentLeaderEpochs": _leader_epochs(data),
        "segmentSizeInBytes": str(data["segmentSizeInBytes"]),
        "customMetadata": _custom_metadata(data),
        "state": _state(_SEGMENT_STATES, data["remoteLogSegmentState"], "state can not be null"),
        "txnIdxEmpty": bool_text(data.get("txnIndexEmpty", False)),
    }


def _update(data: dict[str, Any]) -> Shown:
    return "RemoteLogSegmentMetadataUpdate", {
        "remoteLogSegmentId": _segment_id(data["remoteLogSegmentId"]),
        "customMetadata": _custom_metadata(data),
        "state": _state(_SEGMENT_STATES, data["remoteLogSegmentState"], "state can not be null"),
        "eventTimestampMs": str(data["eventTimestampMs"]),
        "brokerId": str(data["brokerId"]),
    }


def _partition_delete(data: dict[str, Any]) -> Shown:
    return "RemotePartitionDeleteMetadata", {
        "topicPartition": _topic_id_partition(data["topicIdPartition"]),
        "state": _state(_PARTITION_STATES, data["remotePartitionDeleteState"], None),
        "eventTimestampMs": str(data["eventTimestampMs"]),
        "brokerId": str(data["brokerId"]),
    }


def _snapshot(data: dict[str, Any]) -> Shown:
    state = _state(_SEGMENT_STATES, data["remoteLogSegmentState"], "state can not be null")
    return "RemoteLogSegmentMetadataSnapshot", {
        "segmentId": uuid_text(data["segmentId"]),
        "startOffset": str(data["startOffset"]),
        "endOffset": str(data["endOffset"]),
        "maxTimestampMs": str(data["maxTimestampMs"]),
        "segmentLeaderEpochs": _leader_epochs(data),
        "segmentSizeInBytes": str(data["segmentSizeInBytes"]),
        "customMetadata": _custom_metadata(data),
        "state": state,
        "txnIdxEmpty": bool_text(data.get("txnIndexEmpty", False)),
    }


_SHOWN: Final[Mapping[type[Message], Callable[[dict[str, Any]], Shown]]] = {
    RemoteLogSegmentMetadataRecord: _segment,
    RemoteLogSegmentMetadataUpdateRecord: _update,
    RemotePartitionDeleteMetadataRecord: _partition_delete,
    RemoteLogSegmentMetadataSnapshotRecord: _snapshot,
}


def _segment_id(data: dict[str, Any]) -> str:
    return _object(
        "RemoteLogSegmentId",
        {
            "topicIdPartition": _topic_id_partition(data["topicIdPartition"]),
            "id": uuid_text(data["id"]),
        },
    )


def _topic_id_partition(data: dict[str, Any]) -> str:
    return f"{uuid_text(data['id'])}:{data['name']}-{data['partition']}"


def _leader_epochs(data: dict[str, Any]) -> str:
    epochs = {entry["leaderEpoch"]: entry["offset"] for entry in data["segmentLeaderEpochs"]}
    if not epochs:
        raise BadMessage("segmentLeaderEpochs can not be null or empty")
    return "{" + ", ".join(f"{epoch}={epochs[epoch]}" for epoch in sorted(epochs)) + "}"


def _custom_metadata(data: dict[str, Any]) -> str:
    custom = data["customMetadata"]
    if custom is None:
        return "Optional.empty"
    return f"Optional[CustomMetadata{{{len(custom)} bytes}}]"


def _state(names: tuple[str, ...], number: int, if_unknown: str | None) -> str:
    if not 0 <= number < len(names):
        raise BadMessage(if_unknown)
    return names[number]
