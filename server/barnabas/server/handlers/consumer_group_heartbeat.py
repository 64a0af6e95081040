"""
ConsumerGroupHeartbeat: a member of a consumer group joins, stays or leaves.
"""

from __future__ import annotations

from barnabas.coordination.groups.consumer.regexes import compiled
from barnabas.coordination.groups.group_type import GroupType
from barnabas.coordination.security.acl.permissions import DESCRIBE_TOPIC, READ_GROUP
from barnabas.coordination.steps import ENTRIES_PER_STEP, checkpoint
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from barnabas.server.handlers.group_protocols import caller_of, check_protocol
from barnabas.server.requests.authorization import asks
from barnabas.server.requests.context import RequestContext
from barnabas.server.requests.registry import handles


@handles(ConsumerGroupHeartbeatRequest, needs=asks(READ_GROUP, DESCRIBE_TOPIC))
async def consumer_group_heartbeat(
    request: ConsumerGroupHeartbeatRequest, context: RequestContext
) -> ConsumerGroupHeartbeatResponse:
    """
    Hand the heartbeat to the coordinator. A client may subscribe to topics only that it may
    describe; a regular expression matches no others.
    """
    check_protocol(context, GroupType.CONSUMER)
    context.require(READ_GROUP, request.group_id)
    for number, topic in enumerate(dict.fromkeys(request.subscribed_topic_names or ()), 1):
        if number % ENTRIES_PER_STEP == 0:
            await checkpoint()
        if not context.allows(DESCRIBE_TOPIC, topic):
            return ConsumerGroupHeartbeatResponse(error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    caller = caller_of(context)
    if request.subscribed_topic_regex:
        # As in Kafka, errors of the member are answered before errors of the pattern.
        caller = caller._replace(pattern=await compiled(request.subscribed_topic_regex))
    return await context.committed(context.broker.groups.consumer_heartbeat(request, caller))
