"""
DeleteShareGroupState (86): the share coordinator forgets partitions.
"""

from __future__ import annotations

from typing import ClassVar
from uuid import UUID

from barnabas.protocol.apis import DELETE_SHARE_GROUP_STATE
from barnabas.protocol.codec.schema import Api, int16, int32, message


@message
class PartitionData:
    partition: int32


@message
class DeleteStateData:
    topic_id: UUID
    partitions: list[PartitionData]


@message
class DeleteShareGroupStateRequest:
    api: ClassVar[Api] = DELETE_SHARE_GROUP_STATE

    group_id: str
    topics: list[DeleteStateData]


@message
class PartitionResult:
    partition: int32
    error_code: int16 = 0
    error_message: str | None = None


@message
class DeleteStateResult:
    topic_id: UUID
    partitions: list[PartitionResult]


@message
class DeleteShareGroupStateResponse:
    api: ClassVar[Api] = DELETE_SHARE_GROUP_STATE

    results: list[DeleteStateResult]
