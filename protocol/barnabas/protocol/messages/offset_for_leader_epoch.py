"""
OffsetForLeaderEpoch (23): where the records of a leader epoch end.

* v2 is the oldest still understood; it fences by leader epoch (KIP-320).
* v3 adds the id of the replica that asks (KIP-392).
* v4 is flexible.
"""

from __future__ import annotations

from typing import ClassVar

from barnabas.protocol.apis import OFFSET_FOR_LEADER_EPOCH
from barnabas.protocol.codec.schema import Api, int16, int32, int64, message, since


@message
class OffsetForLeaderPartition:
    partition: int32
    current_leader_epoch: int32 = -1
    leader_epoch: int32


@message
class OffsetForLeaderTopic:
    topic: str
    partitions: list[OffsetForLeaderPartition]


@message
class OffsetForLeaderEpochRequest:
    api: ClassVar[Api] = OFFSET_FOR_LEADER_EPOCH

    replica_id: int32 = since(3, default=-2)
    topics: list[OffsetForLeaderTopic]


@message
class EpochEndOffset:
    error_code: int16
    partition: int32
    leader_epoch: int32 = -1
    end_offset: int64 = -1


@message
class OffsetForLeaderTopicResult:
    topic: str
    partitions: list[EpochEndOffset]


@message
class OffsetForLeaderEpochResponse:
    api: ClassVar[Api] = OFFSET_FOR_LEADER_EPOCH

    throttle_time_ms: int32 = 0
    topics: list[OffsetForLeaderTopicResult]
