"""
ListOffsets (2): the offset at a timestamp, or at one end of the log.

* v1 is the oldest still understood.
* v2 adds the isolation level (KIP-98).
* v4 adds leader epochs (KIP-320).
* v5 may answer OFFSET_NOT_AVAILABLE.
* v6 is flexible.
* v7 can ask for the largest timestamp, -3 (KIP-734).
* v8 can ask for the start of the local log, -4 (KIP-405).
* v9 can ask for the last offset in tiered storage, -5 (KIP-1005).
* v10 adds a timeout for what lies in tiered storage (KIP-1075).
* v11 can ask for the first offset not in tiered storage yet, -6 (KIP-1023).
"""

from __future__ import annotations

from typing import ClassVar

from barnabas.protocol.apis import LIST_OFFSETS
from barnabas.protocol.codec.schema import Api, int8, int16, int32, int64, message, since


@message(frozen=False)
class ListOffsetsPartition:
    partition_index: int32
    current_leader_epoch: int32 = since(4, default=-1)
    timestamp: int64


@message(frozen=False)
class ListOffsetsTopic:
    name: str
    partitions: list[ListOffsetsPartition]


@message(frozen=False)
class ListOffsetsRequest:
    api: ClassVar[Api] = LIST_OFFSETS

    replica_id: int32
    isolation_level: int8 = since(2, default=0)
    topics: list[ListOffsetsTopic]
    timeout_ms: int32 = since(10, default=0)


@message(frozen=False)
class ListOffsetsPartitionResponse:
    partition_index: int32
    error_code: int16
    timestamp: int64 = -1
    offset: int64 = -1
    leader_epoch: int32 = since(4, default=-1)


@message(frozen=False)
class ListOffsetsTopicResponse:
    name: str
    partitions: list[ListOffsetsPartitionResponse]


@message(frozen=False)
class ListOffsetsResponse:
    api: ClassVar[Api] = LIST_OFFSETS

    throttle_time_ms: int32 = since(2, default=0)
    topics: list[ListOffsetsTopicResponse]
