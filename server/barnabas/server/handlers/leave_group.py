"""
LeaveGroup: members go, or are sent away.
"""

from __future__ import annotations

from typing import Final

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
)
from barnabas.server.handlers.shaping import shaped
from barnabas.server.purgatory import Delayed
from barnabas.server.requests.authorization import gate
from barnabas.server.requests.context import RequestContext
from barnabas.server.requests.registry import handles
from barnabas.server.scheduling.turns import Steps
from barnabas.server.security.acl.permissions import READ_GROUP

SEVERAL_MEMBERS_SINCE: Final = 3


@handles(LeaveGroupRequest, needs=gate(READ_GROUP))
def leave_group(
    request: LeaveGroupRequest, context: RequestContext
) -> Steps[LeaveGroupResponse | Delayed]:
    """
    Remove the members that are named; before v3 that is one, and its error is the only one.
    """
    if context.version >= SEVERAL_MEMBERS_SINCE:
        return (yield from context.broker.groups.leave(request.group_id, request.members))
    member = MemberIdentity(member_id=request.member_id)
    return shaped(
        (yield from context.broker.groups.leave(request.group_id, [member])), _of_one_member
    )


def _of_one_member(response: LeaveGroupResponse) -> LeaveGroupResponse:
    if response.error_code != ErrorCode.NONE:
        return response
    return LeaveGroupResponse(error_code=response.members[0].error_code)
