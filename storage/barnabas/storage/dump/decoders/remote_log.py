"""
The records of ``__remote_log_metadata``, the segments in tiered storage.

Kafka prints them by ``toString`` of its classes (RemoteLogMetadataSerde and its transforms), which
refuse some values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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

_SEGMENT_STATES: Final[Sequence[str]] = (
    "COPY_SEGMENT_STARTED",
    "COPY_SEGMENT_FINISHED",
    "DELETE_SEGMENT_STARTED",
    "DELETE_SEGMENT_FINISHED",
)
_PARTITION_STATES: Final[Sequence[str]] = (
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
            return Decoded(value=Raw(_text(found.cls, found.data)))
        except BadMessage as error:
            return Decoded(value=Raw(f"Error at offset {record.offset}, skipping. {error}"))


def _text(cls: type[Message], data: dict[str, Any]) -> str:
    if cls is RemoteLogSegmentMetadataRecord:
        _check_offsets(data)
    elif cls is RemoteLogSegmentMetadataSnapshotRecord:
        _state(data)  # Kafka's constructor looks at it before all else.
    name, fields = _CLASSES[cls]
    texts = (
        f"{field}={_TEXTS[field](data) if field in _TEXTS else data[field]}"
        for field in fields.split()
    )
    return f"{name}{{{', '.join(texts)}}}"


def _check_offsets(data: dict[str, Any]) -> None:
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


def _segment_id(data: dict[str, Any]) -> str:
    found = data["remoteLogSegmentId"]
    topic = _topic_id_partition(found)
    return f"RemoteLogSegmentId{{topicIdPartition={topic}, id={uuid_text(found['id'])}}}"


def _topic_id_partition(data: dict[str, Any]) -> str:
    found = data["topicIdPartition"]
    return f"{uuid_text(found['id'])}:{found['name']}-{found['partition']}"


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


def _state(data: dict[str, Any]) -> str:
    of_partition = "remotePartitionDeleteState" in data
    names = _PARTITION_STATES if of_partition else _SEGMENT_STATES
    number: int = data["remotePartitionDeleteState" if of_partition else "remoteLogSegmentState"]
    if not 0 <= number < len(names):
        raise BadMessage(None if of_partition else "state can not be null")
    return names[number]


_CLASSES: Final[Mapping[type[Message], tuple[str, str]]] = {
    RemoteLogSegmentMetadataRecord: (
        "RemoteLogSegmentMetadata",
        "remoteLogSegmentId startOffset endOffset brokerId maxTimestampMs eventTimestampMs"
        " segmentLeaderEpochs segmentSizeInBytes customMetadata state txnIdxEmpty",
    ),
    RemoteLogSegmentMetadataUpdateRecord: (
        "RemoteLogSegmentMetadataUpdate",
        "remoteLogSegmentId customMetadata state eventTimestampMs brokerId",
    ),
    RemotePartitionDeleteMetadataRecord: (
        "RemotePartitionDeleteMetadata",
        "topicPartition state eventTimestampMs brokerId",
    ),
    RemoteLogSegmentMetadataSnapshotRecord: (
        "RemoteLogSegmentMetadataSnapshot",
        "segmentId startOffset endOffset maxTimestampMs segmentLeaderEpochs segmentSizeInBytes"
        " customMetadata state txnIdxEmpty",
    ),
}
"""The class of Kafka for each record, and its fields in the order of ``toString``."""
_TEXTS: Final[Mapping[str, Callable[[dict[str, Any]], str]]] = {
    "remoteLogSegmentId": _segment_id,
    "segmentId": lambda data: uuid_text(data["segmentId"]),
    "topicPartition": _topic_id_partition,
    "segmentLeaderEpochs": _leader_epochs,
    "customMetadata": _custom_metadata,
    "state": _state,
    "txnIdxEmpty": lambda data: bool_text(data.get("txnIndexEmpty", False)),
}
"""The texts of the fields that are not numbers."""
