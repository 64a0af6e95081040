"""
DescribeProducers (61): the producers that a partition knows (KIP-664).
"""

from __future__ import annotations

from typing import ClassVar

from barnabas.protocol.apis import DESCRIBE_PRODUCERS
from barnabas.protocol.codec.schema import Api, int16, int32, int64, message


@message
class TopicRequest:
    name: str
    partition_indexes: list[int32]


@message
class DescribeProducersRequest:
    api: ClassVar[Api] = DESCRIBE_PRODUCERS

    topics: list[TopicRequest]


@message
class ProducerState:
    producer_id: int64
    producer_epoch: int32
    last_sequence: int32 = -1
    last_timestamp: int64 = -1
    coordinator_epoch: int32
    current_txn_start_offset: int64 = -1


@message
class PartitionResponse:
    partition_index: int32
    error_code: int16
    error_message: str | None = None
    active_producers: list[ProducerState]


@message
class TopicResponse:
    name: str
    partitions: list[PartitionResponse]


@message
class DescribeProducersResponse:
    api: ClassVar[Api] = DESCRIBE_PRODUCERS

    throttle_time_ms: int32 = 0
    topics: list[TopicResponse]
