"""
DescribeCluster (Kafka ``AuthHelper.computeDescribeClusterResponse``).
"""

from __future__ import annotations

from enum import IntEnum

from barnabas.coordination.security.acl.permissions import DESCRIBE_CLUSTER
from barnabas.protocol.errors import (
    ErrorCode,
    InvalidRequest,
    KafkaError,
    MismatchedEndpointType,
    UnsupportedEndpointType,
)
from barnabas.protocol.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from barnabas.server.requests.authorization import asks
from barnabas.server.requests.authorized import NOT_REQUESTED, authorized_cluster_operations
from barnabas.server.requests.context import RequestContext
from barnabas.server.requests.registry import handles


class EndpointType(IntEnum):
    """
    Whose addresses a client asks for (KIP-919).
    """

    BROKER = 1
    CONTROLLER = 2


@handles(DescribeClusterRequest, needs=asks(DESCRIBE_CLUSTER))
async def describe_cluster(
    request: DescribeClusterRequest, context: RequestContext
) -> DescribeClusterResponse:
    """
    This broker, which is the whole cluster, as it can be reached over this listener.
    """
    _check_endpoint_type(request.endpoint_type, context.version)
    listener = context.client.listener
    broker = DescribeClusterBroker(
        broker_id=context.broker.node_id,
        host=listener.advertised_host,
        port=listener.advertised_port,
        rack=context.broker.config.broker_rack,
    )
    with_operations = request.include_cluster_authorized_operations
    return DescribeClusterResponse(
        error_code=ErrorCode.NONE,
        endpoint_type=EndpointType.BROKER,
        cluster_id=context.broker.cluster_id,
        controller_id=context.broker.node_id,
        brokers=[broker],
        cluster_authorized_operations=(
            authorized_cluster_operations(context) if with_operations else NOT_REQUESTED
        ),
    )


def _check_endpoint_type(wanted: int, version: int) -> None:
    """
    Raises:
        InvalidRequest, UnsupportedEndpointType, MismatchedEndpointType: *wanted* is not brokers.
    """
    if wanted == EndpointType.BROKER:
        return
    error: type[KafkaError]
    if wanted == EndpointType.CONTROLLER:
        error = MismatchedEndpointType
        message = (
            "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of"
            " type CONTROLLER"
        )
    else:
        error = UnsupportedEndpointType
        message = f"Unsupported endpoint type {wanted}"
    raise (InvalidRequest if version == 0 else error)(message)
