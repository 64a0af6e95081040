"""
ReadShareGroupStateSummary (87): the offsets in the state of partitions, without its batches.

* v1 adds how many records behind the start offset are done (KIP-1226).
"""

from __future__ import annotations

from typing import ClassVar
from uuid import UUID

from barnabas.protocol.apis import READ_SHARE_GROUP_STATE_SUMMARY
from barnabas.protocol.codec.schema import Api, int16, int32, int64, message, since


@message
class PartitionData:
    partition: int32
    leader_epoch: int32


@message
class ReadStateSummaryData:
    topic_id: UUID
    partitions: list[PartitionData]


@message
class ReadShareGroupStateSummaryRequest:
    api: ClassVar[Api] = READ_SHARE_GROUP_STATE_SUMMARY

    group_id: str
    topics: list[ReadStateSummaryData]


@message
class PartitionResult:
    partition: int32
    error_code: int16 = 0
    error_message: str | None = None
    state_epoch: int32 = 0
    leader_epoch: int32 = 0
    start_offset: int64 = 0
    delivery_complete_count: int32 = since(1, default=-1)


@message
class ReadStateSummaryResult:
    topic_id: UUID
    partitions: list[PartitionResult]


@message
class ReadShareGroupStateSummaryResponse:
    api: ClassVar[Api] = READ_SHARE_GROUP_STATE_SUMMARY

    results: list[ReadStateSummaryResult]
