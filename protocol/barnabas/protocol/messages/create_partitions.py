"""
CreatePartitions (37): adds partitions to topics.

* v2 is flexible.
* v3 may answer THROTTLING_QUOTA_EXCEEDED (KIP-599).
"""

from __future__ import annotations

from typing import ClassVar

from barnabas.protocol.apis import CREATE_PARTITIONS
from barnabas.protocol.codec.schema import Api, int16, int32, message


@message
class CreatePartitionsAssignment:
    broker_ids: list[int32]


@message
class CreatePartitionsTopic:
    name: str
    count: int32
    assignments: list[CreatePartitionsAssignment] | None


@message
class CreatePartitionsRequest:
    api: ClassVar[Api] = CREATE_PARTITIONS

    topics: list[CreatePartitionsTopic]
    timeout_ms: int32
    validate_only: bool


@message
class CreatePartitionsTopicResult:
    name: str
    error_code: int16
    error_message: str | None = None


@message
class CreatePartitionsResponse:
    api: ClassVar[Api] = CREATE_PARTITIONS

    throttle_time_ms: int32 = 0
    results: list[CreatePartitionsTopicResult]
