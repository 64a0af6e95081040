"""
Heartbeat: a member is alive.
"""

from __future__ import annotations

from barnabas.coordination.security.acl.permissions import READ_GROUP
from barnabas.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from barnabas.server.requests.authorization import gate
from barnabas.server.requests.context import RequestContext
from barnabas.server.requests.registry import handles
from barnabas.server.requests.settled import groups, reads


@handles(HeartbeatRequest, needs=gate(READ_GROUP))
@reads(groups, lambda request: [request.group_id])
async def heartbeat(request: HeartbeatRequest, context: RequestContext) -> HeartbeatResponse:
    """
    Prolong the session of the member, or tell it that it has to join again.
    """
    return HeartbeatResponse(error_code=context.broker.groups.heartbeat(request))
