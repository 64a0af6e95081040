"""
ConsumerGroupDescribe: consumer groups, their assignments and their members.
"""

from __future__ import annotations

from collections.abc import Iterator

from barnabas.coordination.groups.consumer.describing import described_error
from barnabas.coordination.groups.group_type import GroupType
from barnabas.coordination.security.acl.permissions import DESCRIBE_GROUP, DESCRIBE_TOPIC
from barnabas.protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
)
from barnabas.server.handlers.described_groups import Describing, described
from barnabas.server.requests.authorization import asks
from barnabas.server.requests.context import RequestContext
from barnabas.server.requests.registry import handles
from barnabas.server.requests.settled import groups, reads


@handles(ConsumerGroupDescribeRequest, needs=asks(DESCRIBE_GROUP, DESCRIBE_TOPIC))
@reads(groups, lambda request: request.group_ids)
async def consumer_group_describe(
    request: ConsumerGroupDescribeRequest, context: RequestContext
) -> ConsumerGroupDescribeResponse:
    """
    Describe each group that is named, see ``described``.
    """
    kind = Describing(
        type=GroupType.CONSUMER,
        describe=context.broker.groups.describe_consumer_group,
        refuse=described_error,
        topics_of=_topics,
    )
    groups = await described(request, context, kind)
    return ConsumerGroupDescribeResponse(groups=groups)


def _topics(group: DescribedGroup) -> Iterator[tuple[str, list[int]]]:
    for member in group.members:
        for assignment in (member.assignment, member.target_assignment):
            for topic in assignment.topic_partitions:
                yield topic.topic_name, topic.partitions
