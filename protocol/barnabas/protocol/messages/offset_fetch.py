"""
OffsetFetch (9): how far a group has read.

* v1 is the oldest still understood.
* v2 can ask for all topics by null, and adds an error code for the whole answer.
* v3 adds the throttle time.
* v5 adds leader epochs (KIP-320).
* v6 is flexible.
* v7 can ask for offsets that no transaction may still change (KIP-447).
* v8 asks for several groups at once (KIP-709).
* v9 adds member id and epoch of the new group protocol (KIP-848).
* v10 has topic ids in place of names (KIP-848).
"""

from __future__ import annotations

from typing import ClassVar
from uuid import UUID

from barnabas.protocol.apis import OFFSET_FETCH
from barnabas.protocol.codec.schema import ZERO_UUID, Api, int16, int32, int64, message, since


@message
class OffsetFetchRequestTopic:
    name: str
    partition_indexes: list[int32]


@message
class OffsetFetchRequestTopics:
    name: str = since(0, until=9, default="")
    topic_id: UUID = since(10, default=ZERO_UUID)
    partition_indexes: list[int32]


@message
class OffsetFetchRequestGroup:
    group_id: str
    member_id: str | None = since(9, default=None)
    member_epoch: int32 = since(9, default=-1)
    topics: list[OffsetFetchRequestTopics] | None


@message
class OffsetFetchRequest:
    api: ClassVar[Api] = OFFSET_FETCH

    group_id: str = since(0, until=7, default="")
    topics: list[OffsetFetchRequestTopic] | None = since(0, until=7, default=None, nullable=2)
    groups: list[OffsetFetchRequestGroup] = since(8, default=[])
    require_stable: bool = since(7, default=False)


@message
class OffsetFetchResponsePartition:
    partition_index: int32
    committed_offset: int64
    committed_leader_epoch: int32 = since(5, default=-1)
    metadata: str | None
    error_code: int16


@message
class OffsetFetchResponseTopic:
    name: str
    partitions: list[OffsetFetchResponsePartition]


@message
class OffsetFetchResponsePartitions:
    partition_index: int32
    committed_offset: int64
    committed_leader_epoch: int32 = -1
    metadata: str | None
    error_code: int16


@message
class OffsetFetchResponseTopics:
    name: str = since(0, until=9, default="")
    topic_id: UUID = since(10, default=ZERO_UUID)
    partitions: list[OffsetFetchResponsePartitions]


@message
class OffsetFetchResponseGroup:
    group_id: str
    topics: list[OffsetFetchResponseTopics]
    error_code: int16 = 0


@message
class OffsetFetchResponse:
    api: ClassVar[Api] = OFFSET_FETCH

    throttle_time_ms: int32 = since(3, default=0)
    topics: list[OffsetFetchResponseTopic] = since(0, until=7, default=[])
    error_code: int16 = since(2, until=7, default=0)
    groups: list[OffsetFetchResponseGroup] = since(8, default=[])
