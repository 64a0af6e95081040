"""
StreamsGroupDescribe: streams groups, their topologies, assignments and members.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from barnabas.coordination.groups.group_type import GroupType
from barnabas.coordination.groups.streams.describing import described_error, topics_of
from barnabas.coordination.security.acl.permissions import DESCRIBE_GROUP, DESCRIBE_TOPIC
from barnabas.coordination.text_memory import text_bytes
from barnabas.protocol.messages.streams_group_describe import (
    DescribedGroup,
    Member,
    StreamsGroupDescribeRequest,
    StreamsGroupDescribeResponse,
)
from barnabas.server.handlers.described_groups import Describing, described
from barnabas.server.requests.authorization import asks
from barnabas.server.requests.context import RequestContext
from barnabas.server.requests.registry import handles
from barnabas.server.requests.settled import groups, reads

HIDDEN_TOPICS: Final = (
    "The described group uses topics that the client is not authorized to describe."
)


@handles(StreamsGroupDescribeRequest, needs=asks(DESCRIBE_GROUP, DESCRIBE_TOPIC))
@reads(groups, lambda request: request.group_ids)
async def streams_group_describe(
    request: StreamsGroupDescribeRequest, context: RequestContext
) -> StreamsGroupDescribeResponse:
    """
    Describe each group that is named, see ``described``.
    """
    kind = Describing(
        type=GroupType.STREAMS,
        describe=context.broker.groups.describe_streams_group,
        refuse=described_error,
        topics_of=_topics,
        size_of=_size,
        hidden=HIDDEN_TOPICS,
    )
    groups = await described(request, context, kind)
    return StreamsGroupDescribeResponse(groups=groups)


def _topics(group: DescribedGroup) -> Iterator[tuple[str, list[int]]]:
    if group.topology is not None:
        yield from ((topic, []) for topic in topics_of(group.topology))


def _size(member: Member) -> int:
    """
    About the bytes of a member in the answer.
    """
    return sum(
        text_bytes(tasks.subtopology_id) + 4 * len(tasks.partitions)
        for assignment in (member.assignment, member.target_assignment)
        for of_role in (
            assignment.active_tasks,
            assignment.standby_tasks,
            assignment.warmup_tasks,
        )
        for tasks in of_role
    )
