"""
SyncGroup: the leader brings the assignment, the others come for theirs.
"""

from __future__ import annotations

from typing import Final

from barnabas.coordination.groups.answers import sync_error
from barnabas.coordination.security.acl.permissions import READ_GROUP
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from barnabas.server.requests.authorization import asks
from barnabas.server.requests.context import RequestContext
from barnabas.server.requests.registry import handles

PROTOCOL_REQUIRED_SINCE: Final = 5


@handles(SyncGroupRequest, needs=asks(READ_GROUP))
async def sync_group(request: SyncGroupRequest, context: RequestContext) -> SyncGroupResponse:
    """
    Answer when the assignment is there. A protocol that is missing is answered before the client is
    asked what it may do.
    """
    names_protocol = request.protocol_type is not None and request.protocol_name is not None
    if context.version >= PROTOCOL_REQUIRED_SINCE and not names_protocol:
        return sync_error(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    context.require(READ_GROUP, request.group_id)
    return await context.broker.groups.sync(request)
