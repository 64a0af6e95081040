"""
WriteShareGroupState (85): the leader of partitions stores what was done with their records.

* v1 adds how many records behind the start offset are done (KIP-1226).
"""

from __future__ import annotations

from typing import ClassVar
from uuid import UUID

from barnabas.protocol.apis import WRITE_SHARE_GROUP_STATE
from barnabas.protocol.codec.schema import Api, int8, int16, int32, int64, message, since


@message
class StateBatch:
    first_offset: int64
    last_offset: int64
    delivery_state: int8
    delivery_count: int16


@message
class PartitionData:
    partition: int32
    state_epoch: int32
    leader_epoch: int32
    start_offset: int64
    delivery_complete_count: int32 = since(1, default=-1)
    state_batches: list[StateBatch]


@message
class WriteStateData:
    topic_id: UUID
    partitions: list[PartitionData]


@message
class WriteShareGroupStateRequest:
    api: ClassVar[Api] = WRITE_SHARE_GROUP_STATE

    group_id: str
    topics: list[WriteStateData]


@message
class PartitionResult:
    partition: int32
    error_code: int16 = 0
    error_message: str | None = None


@message
class WriteStateResult:
    topic_id: UUID
    partitions: list[PartitionResult]


@message
class WriteShareGroupStateResponse:
    api: ClassVar[Api] = WRITE_SHARE_GROUP_STATE

    results: list[WriteStateResult]
