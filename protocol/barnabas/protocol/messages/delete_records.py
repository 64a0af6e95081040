"""
DeleteRecords (21): deletes the records before an offset.

* v2 is flexible.
"""

from __future__ import annotations

from typing import ClassVar

from barnabas.protocol.apis import DELETE_RECORDS
from barnabas.protocol.codec.schema import Api, int16, int32, int64, message


@message
class DeleteRecordsPartition:
    partition_index: int32
    offset: int64


@message
class DeleteRecordsTopic:
    name: str
    partitions: list[DeleteRecordsPartition]


@message
class DeleteRecordsRequest:
    api: ClassVar[Api] = DELETE_RECORDS

    topics: list[DeleteRecordsTopic]
    timeout_ms: int32


@message
class DeleteRecordsPartitionResult:
    partition_index: int32
    low_watermark: int64
    error_code: int16


@message
class DeleteRecordsTopicResult:
    name: str
    partitions: list[DeleteRecordsPartitionResult]


@message
class DeleteRecordsResponse:
    api: ClassVar[Api] = DELETE_RECORDS

    throttle_time_ms: int32 = 0
    topics: list[DeleteRecordsTopicResult]
