"""
AlterPartitionReassignments (45): moves replicas of partitions to other brokers (KIP-455).

* v1 can forbid a change of the replication factor (KIP-860).
"""

from __future__ import annotations

from typing import ClassVar

from barnabas.protocol.apis import ALTER_PARTITION_REASSIGNMENTS
from barnabas.protocol.codec.schema import Api, int16, int32, message, since


@message
class ReassignablePartition:
    partition_index: int32
    replicas: list[int32] | None = None


@message
class ReassignableTopic:
    name: str
    partitions: list[ReassignablePartition]


@message
class AlterPartitionReassignmentsRequest:
    api: ClassVar[Api] = ALTER_PARTITION_REASSIGNMENTS

    timeout_ms: int32 = 60000
    allow_replication_factor_change: bool = since(1, default=True)
    topics: list[ReassignableTopic]


@message
class ReassignablePartitionResponse:
    partition_index: int32
    error_code: int16
    error_message: str | None = None


@message
class ReassignableTopicResponse:
    name: str
    partitions: list[ReassignablePartitionResponse]


@message
class AlterPartitionReassignmentsResponse:
    api: ClassVar[Api] = ALTER_PARTITION_REASSIGNMENTS

    throttle_time_ms: int32 = 0
    allow_replication_factor_change: bool = since(1, default=True)
    error_code: int16
    error_message: str | None = None
    responses: list[ReassignableTopicResponse]
