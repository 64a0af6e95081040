"""
ReadShareGroupState (84): the state of partitions, for a leader that begins to serve them.
"""

from __future__ import annotations

from typing import ClassVar
from uuid import UUID

from barnabas.protocol.apis import READ_SHARE_GROUP_STATE
from barnabas.protocol.codec.schema import Api, int8, int16, int32, int64, message


@message
class PartitionData:
    partition: int32
    leader_epoch: int32


@message
class ReadStateData:
    topic_id: UUID
    partitions: list[PartitionData]


@message
class ReadShareGroupStateRequest:
    api: ClassVar[Api] = READ_SHARE_GROUP_STATE

    group_id: str
    topics: list[ReadStateData]


@message
class StateBatch:
    first_offset: int64
    last_offset: int64
    delivery_state: int8
    delivery_count: int16


@message
class PartitionResult:
    partition: int32
    error_code: int16 = 0
    error_message: str | None = None
    state_epoch: int32 = 0
    start_offset: int64 = 0
    state_batches: list[StateBatch]


@message
class ReadStateResult:
    topic_id: UUID
    partitions: list[PartitionResult]


@message
class ReadShareGroupStateResponse:
    api: ClassVar[Api] = READ_SHARE_GROUP_STATE

    results: list[ReadStateResult]
