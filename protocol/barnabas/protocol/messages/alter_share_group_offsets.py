"""
AlterShareGroupOffsets (91): moves the start offsets of a share group without members (KIP-932).
"""

from __future__ import annotations

from typing import ClassVar
from uuid import UUID

from barnabas.protocol.apis import ALTER_SHARE_GROUP_OFFSETS
from barnabas.protocol.codec.schema import ZERO_UUID, Api, int16, int32, int64, message


@message
class AlterShareGroupOffsetsRequestPartition:
    partition_index: int32
    start_offset: int64


@message
class AlterShareGroupOffsetsRequestTopic:
    topic_name: str
    partitions: list[AlterShareGroupOffsetsRequestPartition]


@message
class AlterShareGroupOffsetsRequest:
    api: ClassVar[Api] = ALTER_SHARE_GROUP_OFFSETS

    group_id: str
    topics: list[AlterShareGroupOffsetsRequestTopic]


@message
class AlterShareGroupOffsetsResponsePartition:
    partition_index: int32
    error_code: int16 = 0
    error_message: str | None = None


@message
class AlterShareGroupOffsetsResponseTopic:
    topic_name: str
    topic_id: UUID = ZERO_UUID
    partitions: list[AlterShareGroupOffsetsResponsePartition]


@message
class AlterShareGroupOffsetsResponse:
    api: ClassVar[Api] = ALTER_SHARE_GROUP_OFFSETS

    throttle_time_ms: int32 = 0
    error_code: int16 = 0
    error_message: str | None = None
    responses: list[AlterShareGroupOffsetsResponseTopic]
