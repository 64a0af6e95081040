"""
DescribeGroups: the members of classic groups.
"""

from __future__ import annotations

from barnabas.protocol.codec.schema import replace
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages.describe_groups import (
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from barnabas.server.coordinator_runtime.errors import coordinator_error
from barnabas.server.groups.describing import described_error
from barnabas.server.handlers.authorized_operations import GROUP_OPERATIONS
from barnabas.server.requests.context import RequestContext
from barnabas.server.requests.registry import handles
from barnabas.server.scheduling.turns import Steps, map_in_steps


@handles(DescribeGroupsRequest)
def describe_groups(
    request: DescribeGroupsRequest, context: RequestContext
) -> Steps[DescribeGroupsResponse]:
    """
    Describe each group that is named, the empty name included.
    """
    groups = yield from map_in_steps(lambda each: _describe(each, request, context), request.groups)
    return DescribeGroupsResponse(groups=groups)


def _describe(
    group_id: str, request: DescribeGroupsRequest, context: RequestContext
) -> DescribedGroup:
    try:
        group = context.broker.groups.describe_group(group_id, context.version)
    except KafkaError as error:
        return described_error(group_id, coordinator_error(error.code))
    if request.include_authorized_operations and group.error_code == ErrorCode.NONE:
        return replace(group, authorized_operations=GROUP_OPERATIONS)
    return group
