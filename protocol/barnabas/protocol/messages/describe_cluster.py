"""
DescribeCluster (60): the brokers or the controllers of the cluster.

* v1 adds the type of endpoint (KIP-919).
* v2 adds brokers that are fenced (KIP-1073).
"""

from __future__ import annotations

from typing import ClassVar

from barnabas.protocol.apis import DESCRIBE_CLUSTER
from barnabas.protocol.codec.primitives import INT32_MIN
from barnabas.protocol.codec.schema import Api, int8, int16, int32, message, since


@message
class DescribeClusterRequest:
    api: ClassVar[Api] = DESCRIBE_CLUSTER

    include_cluster_authorized_operations: bool
    endpoint_type: int8 = since(1, default=1)
    include_fenced_brokers: bool = since(2, default=False)


@message
class DescribeClusterBroker:
    broker_id: int32
    host: str
    port: int32
    rack: str | None = None
    is_fenced: bool = since(2, default=False)


@message
class DescribeClusterResponse:
    api: ClassVar[Api] = DESCRIBE_CLUSTER

    throttle_time_ms: int32 = 0
    error_code: int16
    error_message: str | None = None
    endpoint_type: int8 = since(1, default=1)
    cluster_id: str
    controller_id: int32 = -1
    brokers: list[DescribeClusterBroker]
    cluster_authorized_operations: int32 = INT32_MIN
