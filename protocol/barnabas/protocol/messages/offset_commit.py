"""
OffsetCommit (8): stores how far a group has read.

* v2 is the oldest still understood.
* v3 adds the throttle time.
* v5 drops the retention time (KIP-211).
* v6 adds leader epochs (KIP-320).
* v7 adds static membership (KIP-345).
* v8 is flexible.
* v9 takes commits of consumer groups of the new protocol (KIP-848).
* v10 has topic ids in place of names (KIP-848).
"""

from __future__ import annotations

from typing import ClassVar
from uuid import UUID

from barnabas.protocol.apis import OFFSET_COMMIT
from barnabas.protocol.codec.schema import ZERO_UUID, Api, int16, int32, int64, message, since


@message
class OffsetCommitRequestPartition:
    partition_index: int32
    committed_offset: int64
    committed_leader_epoch: int32 = since(6, default=-1)
    committed_metadata: str | None


@message
class OffsetCommitRequestTopic:
    name: str = since(0, until=9, default="")
    topic_id: UUID = since(10, default=ZERO_UUID)
    partitions: list[OffsetCommitRequestPartition]


@message
class OffsetCommitRequest:
    api: ClassVar[Api] = OFFSET_COMMIT

    group_id: str
    generation_id_or_member_epoch: int32 = -1
    member_id: str
    group_instance_id: str | None = since(7, default=None)
    retention_time_ms: int64 = since(0, until=4, default=-1)
    topics: list[OffsetCommitRequestTopic]


@message
class OffsetCommitResponsePartition:
    partition_index: int32
    error_code: int16


@message
class OffsetCommitResponseTopic:
    name: str = since(0, until=9, default="")
    topic_id: UUID = since(10, default=ZERO_UUID)
    partitions: list[OffsetCommitResponsePartition]


@message
class OffsetCommitResponse:
    api: ClassVar[Api] = OFFSET_COMMIT

    throttle_time_ms: int32 = since(3, default=0)
    topics: list[OffsetCommitResponseTopic]
