"""
Records of ``__remote_log_metadata``: which segments tiered storage keeps (KIP-405).

The key of a record is null. Its value begins with three unsigned varints, as in
``metadata_records``: the version of this frame (1), the type and the version of what follows.

The state of a segment is 0 COPY_SEGMENT_STARTED, 1 COPY_SEGMENT_FINISHED, 2 DELETE_SEGMENT_STARTED
or 3 DELETE_SEGMENT_FINISHED; that of a partition 0 DELETE_PARTITION_MARKED, 1
DELETE_PARTITION_STARTED or 2 DELETE_PARTITION_FINISHED.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final
from uuid import UUID

from barnabas.protocol.codec.schema import Api, Message, int8, int32, int64, message, since


@message
class TopicIdPartitionEntry:
    name: str
    id: UUID
    partition: int32


@message
class RemoteLogSegmentIdEntry:
    topic_id_partition: TopicIdPartitionEntry
    id: UUID


@message
class SegmentLeaderEpochEntry:
    leader_epoch: int32
    offset: int64


@message
class RemoteLogSegmentMetadataRecord:
    api: ClassVar[Api] = Api(0, versions=range(1), flexible=0)

    remote_log_segment_id: RemoteLogSegmentIdEntry
    start_offset: int64
    end_offset: int64
    broker_id: int32
    max_timestamp_ms: int64
    event_timestamp_ms: int64
    segment_leader_epochs: list[SegmentLeaderEpochEntry]
    segment_size_in_bytes: int32
    custom_metadata: bytes | None
    remote_log_segment_state: int8
    txn_index_empty: bool = since(0, default=False, tag=0)


@message
class RemoteLogSegmentMetadataUpdateRecord:
    api: ClassVar[Api] = Api(1, versions=range(1), flexible=0)

    remote_log_segment_id: RemoteLogSegmentIdEntry
    broker_id: int32
    event_timestamp_ms: int64
    custom_metadata: bytes | None
    remote_log_segment_state: int8


@message
class RemotePartitionDeleteMetadataRecord:
    api: ClassVar[Api] = Api(2, versions=range(1), flexible=0)

    topic_id_partition: TopicIdPartitionEntry
    broker_id: int32
    event_timestamp_ms: int64
    remote_partition_delete_state: int8


@message
class RemoteLogSegmentMetadataSnapshotRecord:
    api: ClassVar[Api] = Api(3, versions=range(1), flexible=0)

    segment_id: UUID
    start_offset: int64
    end_offset: int64
    broker_id: int32
    max_timestamp_ms: int64
    event_timestamp_ms: int64
    segment_leader_epochs: list[SegmentLeaderEpochEntry]
    segment_size_in_bytes: int32
    custom_metadata: bytes | None
    remote_log_segment_state: int8
    txn_index_empty: bool = since(0, default=False, tag=0)


RECORDS: Final[Mapping[int, type[Message]]] = {
    record.api.key: record
    for record in (
        RemoteLogSegmentMetadataRecord,
        RemoteLogSegmentMetadataUpdateRecord,
        RemotePartitionDeleteMetadataRecord,
        RemoteLogSegmentMetadataSnapshotRecord,
    )
}
"""
By the type of the record.
"""
