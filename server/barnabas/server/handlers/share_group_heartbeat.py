"""
ShareGroupHeartbeat: a member of a share group joins, stays or leaves.
"""

from __future__ import annotations

from barnabas.coordination.groups.group_type import GroupType
from barnabas.coordination.groups.share.member import is_member_id
from barnabas.coordination.security.acl.permissions import DESCRIBE_TOPIC, READ_GROUP
from barnabas.protocol.errors import ErrorCode, InvalidRequest
from barnabas.protocol.messages.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)
from barnabas.server.handlers.group_protocols import caller_of, check_protocol
from barnabas.server.requests.authorization import asks
from barnabas.server.requests.context import RequestContext
from barnabas.server.requests.registry import handles


@handles(ShareGroupHeartbeatRequest, needs=asks(READ_GROUP, DESCRIBE_TOPIC))
async def share_group_heartbeat(
    request: ShareGroupHeartbeatRequest, context: RequestContext
) -> ShareGroupHeartbeatResponse:
    """
    Hand the heartbeat to the coordinator. A client may subscribe to topics only that it may
    describe.
    """
    check_protocol(context, GroupType.SHARE)
    context.require(READ_GROUP, request.group_id)
    if not is_member_id(request.member_id):
        raise InvalidRequest
    for topic in dict.fromkeys(request.subscribed_topic_names or ()):
        if not context.allows(DESCRIBE_TOPIC, topic):
            return ShareGroupHeartbeatResponse(error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    answer = context.broker.groups.share_heartbeat(request, caller_of(context))
    return await context.committed(answer)
