"""
InitializeShareGroupState (83): the share coordinator begins to keep the state of partitions.
"""

from __future__ import annotations

from typing import ClassVar
from uuid import UUID

from barnabas.protocol.apis import INITIALIZE_SHARE_GROUP_STATE
from barnabas.protocol.codec.schema import Api, int16, int32, int64, message


@message
class PartitionData:
    partition: int32
    state_epoch: int32
    start_offset: int64


@message
class InitializeStateData:
    topic_id: UUID
    partitions: list[PartitionData]


@message
class InitializeShareGroupStateRequest:
    api: ClassVar[Api] = INITIALIZE_SHARE_GROUP_STATE

    group_id: str
    topics: list[InitializeStateData]


@message
class PartitionResult:
    partition: int32
    error_code: int16 = 0
    error_message: str | None = None


@message
class InitializeStateResult:
    topic_id: UUID
    partitions: list[PartitionResult]


@message
class InitializeShareGroupStateResponse:
    api: ClassVar[Api] = INITIALIZE_SHARE_GROUP_STATE

    results: list[InitializeStateResult]
