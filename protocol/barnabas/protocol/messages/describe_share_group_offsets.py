"""
DescribeShareGroupOffsets (90): how far share groups are (KIP-932).

* v1 adds the lag (KIP-1226).
"""

from __future__ import annotations

from typing import ClassVar
from uuid import UUID

from barnabas.protocol.apis import DESCRIBE_SHARE_GROUP_OFFSETS
from barnabas.protocol.codec.schema import ZERO_UUID, Api, int16, int32, int64, message, since


@message
class DescribeShareGroupOffsetsRequestTopic:
    topic_name: str
    partitions: list[int32]


@message
class DescribeShareGroupOffsetsRequestGroup:
    group_id: str
    topics: list[DescribeShareGroupOffsetsRequestTopic] | None


@message
class DescribeShareGroupOffsetsRequest:
    api: ClassVar[Api] = DESCRIBE_SHARE_GROUP_OFFSETS

    groups: list[DescribeShareGroupOffsetsRequestGroup]


@message
class DescribeShareGroupOffsetsResponsePartition:
    partition_index: int32
    start_offset: int64 = 0
    leader_epoch: int32 = 0
    lag: int64 = since(1, default=-1)
    error_code: int16 = 0
    error_message: str | None = None


@message
class DescribeShareGroupOffsetsResponseTopic:
    topic_name: str
    topic_id: UUID = ZERO_UUID
    partitions: list[DescribeShareGroupOffsetsResponsePartition]


@message
class DescribeShareGroupOffsetsResponseGroup:
    group_id: str
    topics: list[DescribeShareGroupOffsetsResponseTopic]
    error_code: int16 = 0
    error_message: str | None = None


@message
class DescribeShareGroupOffsetsResponse:
    api: ClassVar[Api] = DESCRIBE_SHARE_GROUP_OFFSETS

    throttle_time_ms: int32 = 0
    groups: list[DescribeShareGroupOffsetsResponseGroup]
