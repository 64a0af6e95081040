"""
ListGroups: which groups there are.
"""

from __future__ import annotations

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.list_groups import (
    ListedGroup,
    ListGroupsRequest,
    ListGroupsResponse,
)
from barnabas.server.requests.authorization import asks
from barnabas.server.requests.context import RequestContext
from barnabas.server.requests.registry import handles
from barnabas.server.requests.settled import all_shards, groups, reads
from barnabas.server.scheduling.turns import Steps
from barnabas.server.security.acl.bindings import CLUSTER_NAME
from barnabas.server.security.acl.permissions import DESCRIBE_CLUSTER, DESCRIBE_GROUP


@handles(ListGroupsRequest, needs=asks(DESCRIBE_CLUSTER, DESCRIBE_GROUP))
@reads(groups, all_shards)
def list_groups(request: ListGroupsRequest, context: RequestContext) -> Steps[ListGroupsResponse]:
    """
    List the groups that pass the filters; a version without filters gets all. A client that may not
    describe the cluster sees the groups only that it may describe.
    """
    groups = yield from context.broker.groups.list_groups(
        request.states_filter, request.types_filter
    )
    if not context.sees(DESCRIBE_CLUSTER, CLUSTER_NAME):
        groups = yield from _visible(groups, context)
    return ListGroupsResponse(error_code=ErrorCode.NONE, groups=groups)


def _visible(groups: list[ListedGroup], context: RequestContext) -> Steps[list[ListedGroup]]:
    visible = []
    for group in groups:
        yield
        if context.sees(DESCRIBE_GROUP, group.group_id):
            visible.append(group)
    return visible
