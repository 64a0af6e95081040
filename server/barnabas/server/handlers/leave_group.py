"""
LeaveGroup: members go, or are sent away.
"""

from __future__ import annotations

from typing import Final

from barnabas.coordination.security.acl.permissions import READ_GROUP
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
)
from barnabas.server.requests.authorization import gate
from barnabas.server.requests.context import RequestContext
from barnabas.server.requests.registry import handles

SEVERAL_MEMBERS_SINCE: Final = 3


@handles(LeaveGroupRequest, needs=gate(READ_GROUP))
async def leave_group(request: LeaveGroupRequest, context: RequestContext) -> LeaveGroupResponse:
    """
    Remove the members that are named; before v3 that is one, and its error is the only one.
    """
    is_one = context.version < SEVERAL_MEMBERS_SINCE
    members = [MemberIdentity(member_id=request.member_id)] if is_one else request.members
    response = await context.committed(await context.broker.groups.leave(request.group_id, members))
    if is_one and response.error_code == ErrorCode.NONE:
        return LeaveGroupResponse(error_code=response.members[0].error_code)
    return response
