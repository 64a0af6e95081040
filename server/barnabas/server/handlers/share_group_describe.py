"""
ShareGroupDescribe: share groups, their assignments and their members.
"""

from __future__ import annotations

from collections.abc import Iterator

from barnabas.coordination.groups.group_type import GroupType
from barnabas.coordination.groups.share.describing import described_error
from barnabas.coordination.security.acl.permissions import DESCRIBE_GROUP, DESCRIBE_TOPIC
from barnabas.protocol.messages.share_group_describe import (
    DescribedGroup,
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
)
from barnabas.server.handlers.described_groups import Describing, described
from barnabas.server.requests.authorization import asks
from barnabas.server.requests.context import RequestContext
from barnabas.server.requests.registry import handles
from barnabas.server.requests.settled import groups, reads


@handles(ShareGroupDescribeRequest, needs=asks(DESCRIBE_GROUP, DESCRIBE_TOPIC))
@reads(groups, lambda request: request.group_ids)
async def share_group_describe(
    request: ShareGroupDescribeRequest, context: RequestContext
) -> ShareGroupDescribeResponse:
    """
    Describe each group that is named, see ``described``.
    """
    kind = Describing(
        type=GroupType.SHARE,
        describe=context.broker.groups.describe_share_group,
        refuse=described_error,
        topics_of=_topics,
    )
    groups = await described(request, context, kind)
    return ShareGroupDescribeResponse(groups=groups)


def _topics(group: DescribedGroup) -> Iterator[tuple[str, list[int]]]:
    for member in group.members:
        for topic in member.assignment.topic_partitions:
            yield topic.topic_name, topic.partitions
