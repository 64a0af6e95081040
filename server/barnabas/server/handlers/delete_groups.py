"""
DeleteGroups: groups without members, and their offsets.
"""

from __future__ import annotations

from barnabas.coordination.security.acl.permissions import DELETE_GROUP
from barnabas.coordination.steps import checkpoint
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)
from barnabas.server.requests.authorization import asks
from barnabas.server.requests.context import RequestContext
from barnabas.server.requests.registry import handles


@handles(DeleteGroupsRequest, needs=asks(DELETE_GROUP))
async def delete_groups(
    request: DeleteGroupsRequest, context: RequestContext
) -> DeleteGroupsResponse:
    """
    Delete each group that is named, once; the empty name is a name. Those that the client may not
    delete come last in the answer.
    """
    allowed = []
    refused = []
    error = ErrorCode.GROUP_AUTHORIZATION_FAILED
    for group_id in dict.fromkeys(request.groups_names):
        await checkpoint()
        if context.allows(DELETE_GROUP, group_id):
            allowed.append(group_id)
        else:
            refused.append(DeletableGroupResult(group_id=group_id, error_code=error))
    answer = await context.committed(await context.broker.groups.delete_groups(allowed))
    return DeleteGroupsResponse(results=answer.results + refused) if refused else answer
