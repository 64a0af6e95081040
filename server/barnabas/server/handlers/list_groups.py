"""
ListGroups: which groups there are.
"""

from __future__ import annotations

from barnabas.coordination.security.acl.bindings import CLUSTER_NAME
from barnabas.coordination.security.acl.permissions import DESCRIBE_CLUSTER, DESCRIBE_GROUP
from barnabas.coordination.steps import checkpoint
from barnabas.coordination.text_memory import text_bytes
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


@handles(ListGroupsRequest, needs=asks(DESCRIBE_CLUSTER, DESCRIBE_GROUP))
@reads(groups, all_shards)
async def list_groups(request: ListGroupsRequest, context: RequestContext) -> ListGroupsResponse:
    """
    List the groups that pass the filters; a version without filters gets all. A client that may not
    describe the cluster sees the groups only that it may describe.
    """
    room = context.room()
    groups = await context.broker.groups.list_groups(
        request.states_filter,
        request.types_filter,
        found_one=lambda group: room.take(1, text_bytes(group.group_id)),
    )
    if not context.sees(DESCRIBE_CLUSTER, CLUSTER_NAME):
        groups = await _visible(groups, context)
    return ListGroupsResponse(error_code=ErrorCode.NONE, groups=groups)


async def _visible(groups: list[ListedGroup], context: RequestContext) -> list[ListedGroup]:
    visible = []
    for group in groups:
        await checkpoint()
        if context.sees(DESCRIBE_GROUP, group.group_id):
            visible.append(group)
    return visible
