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
from barnabas.server.context import Context
from barnabas.server.handlers import handles
from barnabas.server.purgatory import Delayed


def _error_response(
    request: DeleteGroupsRequest, _version: int, code: ErrorCode, _message: str | None
) -> DeleteGroupsResponse:
    return DeleteGroupsResponse(
        results=[
            DeletableGroupResult(group_id=group_id, error_code=code)
            for group_id in request.groups_names
        ]
    )


@handles(DeleteGroupsRequest, error_response=_error_response)
def delete_groups(request: DeleteGroupsRequest, context: Context) -> Delayed:
    """
    Delete each group that is named, once; the empty name is a name.
    """
    return context.groups.delete_groups(list(dict.fromkeys(request.groups_names)))
