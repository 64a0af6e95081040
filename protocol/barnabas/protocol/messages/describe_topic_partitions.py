"""
DescribeTopicPartitions (75): topics and their partitions, page by page (KIP-966).
"""

from __future__ import annotations

from typing import ClassVar
from uuid import UUID

from barnabas.protocol.apis import DESCRIBE_TOPIC_PARTITIONS
from barnabas.protocol.codec.primitives import INT32_MIN
from barnabas.protocol.codec.schema import Api, int16, int32, message


@message
class TopicRequest:
    name: str


@message
class Cursor:
    topic_name: str
    partition_index: int32


@message
class DescribeTopicPartitionsRequest:
    api: ClassVar[Api] = DESCRIBE_TOPIC_PARTITIONS

    topics: list[TopicRequest]
    response_partition_limit: int32 = 2000
    cursor: Cursor | None = None


@message
class DescribeTopicPartitionsResponsePartition:
    error_code: int16
    partition_index: int32
    leader_id: int32
    leader_epoch: int32 = -1
    replica_nodes: list[int32]
    isr_nodes: list[int32]
    eligible_leader_replicas: list[int32] | None = None
    last_known_elr: list[int32] | None = None
    offline_replicas: list[int32]


@message
class DescribeTopicPartitionsResponseTopic:
    error_code: int16
    name: str | None
    topic_id: UUID
    is_internal: bool = False
    partitions: list[DescribeTopicPartitionsResponsePartition]
    topic_authorized_operations: int32 = INT32_MIN


@message
class DescribeTopicPartitionsResponse:
    api: ClassVar[Api] = DESCRIBE_TOPIC_PARTITIONS

    throttle_time_ms: int32 = 0
    topics: list[DescribeTopicPartitionsResponseTopic]
    next_cursor: Cursor | None = None
