"""
DescribeQuorum (55): leader and voters of the metadata log (KIP-595).

* v1 adds the times of the replicas' last fetches (KIP-836).
* v2 adds directories, nodes and error messages (KIP-853).
"""

from __future__ import annotations

from typing import ClassVar
from uuid import UUID

from barnabas.protocol.apis import DESCRIBE_QUORUM
from barnabas.protocol.codec.schema import (
    ZERO_UUID,
    Api,
    int16,
    int32,
    int64,
    message,
    since,
    uint16,
)


@message
class RequestPartitionData:
    partition_index: int32


@message
class RequestTopicData:
    topic_name: str
    partitions: list[RequestPartitionData]


@message
class DescribeQuorumRequest:
    api: ClassVar[Api] = DESCRIBE_QUORUM

    topics: list[RequestTopicData]


@message
class ReplicaState:
    replica_id: int32
    replica_directory_id: UUID = since(2, default=ZERO_UUID)
    log_end_offset: int64
    last_fetch_timestamp: int64 = since(1, default=-1)
    last_caught_up_timestamp: int64 = since(1, default=-1)


@message
class ResponsePartitionData:
    partition_index: int32
    error_code: int16
    error_message: str | None = since(2, default=None)
    leader_id: int32
    leader_epoch: int32
    high_watermark: int64
    current_voters: list[ReplicaState]
    observers: list[ReplicaState]


@message
class ResponseTopicData:
    topic_name: str
    partitions: list[ResponsePartitionData]


@message
class Listener:
    name: str
    host: str
    port: uint16


@message
class Node:
    node_id: int32
    listeners: list[Listener]


@message
class DescribeQuorumResponse:
    api: ClassVar[Api] = DESCRIBE_QUORUM

    error_code: int16
    error_message: str | None = since(2, default=None)
    topics: list[ResponseTopicData]
    nodes: list[Node] = since(2, default=[])
