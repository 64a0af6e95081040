"""
ListGroups: which groups there are.
"""

from __future__ import annotations

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from barnabas.server.requests.authorization import asks
from barnabas.server.requests.context import RequestContext
from barnabas.server.requests.registry import handles
from barnabas.server.scheduling.turns import Steps
from barnabas.server.security.acl.permissions import DESCRIBE_CLUSTER, DESCRIBE_GROUP


@handles(ListGroupsRequest, needs=asks(DESCRIBE_CLUSTER, DESCRIBE_GROUP))
def list_groups(request: ListGroupsRequest, context: RequestContext) -> Steps[ListGroupsResponse]:
    """
    List the groups that pass the filters; a version without filters gets all.
    """
    groups = yield from context.broker.groups.list_groups(
        request.states_filter, request.types_filter
    )
    return ListGroupsResponse(error_code=ErrorCode.NONE, groups=groups)
