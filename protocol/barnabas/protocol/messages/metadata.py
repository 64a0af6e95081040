"""
Metadata (3): brokers, topics and who leads their partitions.

* v0 asks for all topics by an empty list; later versions by null.
* v1 adds racks, the controller and which topics are internal.
* v2 adds the cluster id.
* v3 adds the throttle time.
* v4 can forbid that topics are created on the way.
* v5 adds offline replicas.
* v7 adds leader epochs (KIP-320).
* v8 adds authorized operations (KIP-430).
* v9 is flexible.
* v10 adds topic ids (KIP-516).
* v11 leaves the cluster's authorized operations to DescribeCluster (KIP-700).
* v12 can ask by topic id.
* v13 adds an error code for the whole answer (KIP-1102).
"""

from __future__ import annotations

from typing import ClassVar
from uuid import UUID

from barnabas.protocol.apis import METADATA
from barnabas.protocol.codec.primitives import INT32_MIN
from barnabas.protocol.codec.schema import ZERO_UUID, Api, int16, int32, message, since


@message
class MetadataRequestTopic:
    topic_id: UUID = since(10, default=ZERO_UUID)
    name: str | None = since(0, nullable=10)


@message
class MetadataRequest:
    api: ClassVar[Api] = METADATA

    topics: list[MetadataRequestTopic] | None = since(0, nullable=1)
    allow_auto_topic_creation: bool = since(4, default=True)
    include_cluster_authorized_operations: bool = since(8, until=10, default=False)
    include_topic_authorized_operations: bool = since(8, default=False)


@message
class MetadataResponseBroker:
    node_id: int32
    host: str
    port: int32
    rack: str | None = since(1, default=None)


@message(frozen=False)
class MetadataResponsePartition:
    error_code: int16
    partition_index: int32
    leader_id: int32
    leader_epoch: int32 = since(7, default=-1)
    replica_nodes: list[int32]
    isr_nodes: list[int32]
    offline_replicas: list[int32] = since(5, default=[])


@message(frozen=False)
class MetadataResponseTopic:
    error_code: int16
    name: str | None = since(0, nullable=12)
    topic_id: UUID = since(10, default=ZERO_UUID)
    is_internal: bool = since(1, default=False)
    partitions: list[MetadataResponsePartition]
    topic_authorized_operations: int32 = since(8, default=INT32_MIN)


@message
class MetadataResponse:
    api: ClassVar[Api] = METADATA

    throttle_time_ms: int32 = since(3, default=0)
    brokers: list[MetadataResponseBroker]
    cluster_id: str | None = since(2, default=None)
    controller_id: int32 = since(1, default=-1)
    topics: list[MetadataResponseTopic]
    cluster_authorized_operations: int32 = since(8, until=10, default=INT32_MIN)
    error_code: int16 = since(13, default=0)
