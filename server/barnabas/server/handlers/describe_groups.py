"""
DescribeGroups: the members of classic groups.
"""

from __future__ import annotations

from barnabas.coordination.groups.describing import described_error
from barnabas.coordination.security.acl.bindings import ResourceType
from barnabas.coordination.security.acl.permissions import DESCRIBE_GROUP
from barnabas.coordination.steps import checkpoint
from barnabas.protocol.codec.schema import replace
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages.describe_groups import (
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from barnabas.server.requests.authorization import asks
from barnabas.server.requests.authorized import authorized_operations
from barnabas.server.requests.context import RequestContext
from barnabas.server.requests.registry import handles
from barnabas.server.requests.settled import groups, reads


@handles(DescribeGroupsRequest, needs=asks(DESCRIBE_GROUP))
@reads(groups, lambda request: request.groups)
async def describe_groups(
    request: DescribeGroupsRequest, context: RequestContext
) -> DescribeGroupsResponse:
    """
    Describe each group that is named, the empty name included. Those that the client may not
    describe come first in the answer.
    """
    room = context.room()
    refused = []
    groups = room.list()
    for group_id in request.groups:
        await checkpoint()
        if not context.allows(DESCRIBE_GROUP, group_id):
            room.take(1)
            refused.append(described_error(group_id, ErrorCode.GROUP_AUTHORIZATION_FAILED))
            continue
        described = _describe(group_id, request, context)
        members = described.members
        size = sum(len(each.member_metadata) + len(each.member_assignment) for each in members)
        room.take(1 + len(members), size)
        groups.append(described)
    return DescribeGroupsResponse(groups=refused + groups)


def _describe(
    group_id: str, request: DescribeGroupsRequest, context: RequestContext
) -> DescribedGroup:
    try:
        group = context.broker.groups.describe_group(group_id, context.version)
    except KafkaError as error:
        return described_error(group_id, error.code)
    if request.include_authorized_operations and group.error_code == ErrorCode.NONE:
        operations = authorized_operations(context, ResourceType.GROUP, group_id)
        return replace(group, authorized_operations=operations)
    return group
