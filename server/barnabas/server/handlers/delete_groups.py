"""
DeleteGroups: groups without members, and their offsets.
"""

from __future__ import annotations

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)
from barnabas.server.purgatory import Delayed
from barnabas.server.requests.context import RequestContext
from barnabas.server.requests.registry import handles
from barnabas.server.turns import Steps, map_in_steps


def _error_response(
    request: DeleteGroupsRequest, _version: int, code: ErrorCode, _message: str | None
) -> Steps[DeleteGroupsResponse]:
    refused = yield from map_in_steps(
        lambda group_id: DeletableGroupResult(group_id=group_id, error_code=code),
        request.groups_names,
    )
    return DeleteGroupsResponse(results=refused)


@handles(DeleteGroupsRequest, error_response=_error_response)
def delete_groups(request: DeleteGroupsRequest, context: RequestContext) -> Steps[Delayed]:
    """
    Delete each group that is named, once; the empty name is a name.
    """
    return (
        yield from context.broker.groups.delete_groups(list(dict.fromkeys(request.groups_names)))
    )
