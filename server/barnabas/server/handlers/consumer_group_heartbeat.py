"""
ConsumerGroupHeartbeat: a member of a consumer group joins, stays or leaves.
"""

from __future__ import annotations

from functools import partial

from barnabas.protocol.errors import ErrorCode, UnsupportedVersion
from barnabas.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from barnabas.server.cluster.features import GROUP_VERSION
from barnabas.server.groups.caller import Caller
from barnabas.server.groups.group_type import GroupType
from barnabas.server.purgatory import Delayed
from barnabas.server.requests.authorization import asks
from barnabas.server.requests.context import RequestContext
from barnabas.server.requests.registry import handles
from barnabas.server.scheduling.turns import Steps
from barnabas.server.security.acl.permissions import DESCRIBE_TOPIC, READ_GROUP
from barnabas.server.security.host_address import host_address


@handles(ConsumerGroupHeartbeatRequest, needs=asks(READ_GROUP, DESCRIBE_TOPIC))
def consumer_group_heartbeat(
    request: ConsumerGroupHeartbeatRequest, context: RequestContext
) -> Steps[ConsumerGroupHeartbeatResponse | Delayed]:
    """
    Hand the heartbeat to the coordinator. A client may subscribe to topics only that it may
    describe; a regular expression matches no others.
    """
    check_protocol(context, GroupType.CONSUMER, GROUP_VERSION)
    context.require(READ_GROUP, request.group_id)
    for topic in dict.fromkeys(request.subscribed_topic_names or ()):
        yield
        if not context.allows(DESCRIBE_TOPIC, topic):
            return ConsumerGroupHeartbeatResponse(error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    return context.broker.groups.consumer_heartbeat(request, caller_of(context))


def caller_of(context: RequestContext) -> Caller:
    """
    The sender, as groups know it.
    """
    return Caller(
        context.version,
        context.client_id or "",
        f"/{host_address(context.client.address)}",
        partial(context.sees, DESCRIBE_TOPIC),
    )


def check_protocol(context: RequestContext, protocol: GroupType, feature: str) -> None:
    """
    See whether members of groups may use a protocol.

    Raises:
        UnsupportedVersion: the feature is off, or the broker's configuration leaves it out.
    """
    broker = context.broker
    if not broker.image.feature_levels.get(feature, 0):
        raise UnsupportedVersion(f"{feature} is 0: `kafka-features upgrade` sets it to 1.")
    if protocol.value not in broker.config.group_coordinator_rebalance_protocols:
        raise UnsupportedVersion(
            f"group.coordinator.rebalance.protocols of this broker leaves out {protocol.value}."
        )
