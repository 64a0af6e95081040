"""
StreamsGroupDescribe: streams groups, their topologies, assignments and members.
"""

from __future__ import annotations

from typing import Final

from barnabas.protocol.codec.schema import replace
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages.streams_group_describe import (
    DescribedGroup,
    Member,
    StreamsGroupDescribeRequest,
    StreamsGroupDescribeResponse,
)
from barnabas.server.groups.group_type import GroupType
from barnabas.server.groups.streams.describing import described_error, topics_of
from barnabas.server.handlers.group_protocols import check_protocol
from barnabas.server.requests.answer_room import AnswerRoom
from barnabas.server.requests.authorization import asks
from barnabas.server.requests.authorized import authorized_operations
from barnabas.server.requests.context import RequestContext
from barnabas.server.requests.registry import handles
from barnabas.server.scheduling.turns import Steps
from barnabas.server.security.acl.bindings import ResourceType
from barnabas.server.security.acl.permissions import DESCRIBE_GROUP, DESCRIBE_TOPIC

HIDDEN_TOPICS: Final = (
    "The described group uses topics that the client is not authorized to describe."
)


@handles(StreamsGroupDescribeRequest, needs=asks(DESCRIBE_GROUP, DESCRIBE_TOPIC))
def streams_group_describe(
    request: StreamsGroupDescribeRequest, context: RequestContext
) -> Steps[StreamsGroupDescribeResponse]:
    """
    Describe each group that is named. Those that the client may not describe come first in the
    answer, then those without a name; a group with topics that it may not describe is refused.
    """
    check_protocol(context, GroupType.STREAMS)
    room = AnswerRoom()
    refused: list[DescribedGroup] = []
    nameless: list[DescribedGroup] = []
    groups: list[DescribedGroup] = []
    for group_id in request.group_ids:
        yield
        if not context.allows(DESCRIBE_GROUP, group_id):
            room.take(1)
            refused.append(described_error(group_id, ErrorCode.GROUP_AUTHORIZATION_FAILED))
            continue
        group = yield from _described(group_id, request, context)
        topics = () if group.topology is None else topics_of(group.topology)
        room.take(1 + len(group.members), sum(map(_size, group.members)) + sum(map(len, topics)))
        (nameless if group.error_code == ErrorCode.INVALID_GROUP_ID else groups).append(group)
    return StreamsGroupDescribeResponse(groups=refused + nameless + groups)


def _described(
    group_id: str, request: StreamsGroupDescribeRequest, context: RequestContext
) -> Steps[DescribedGroup]:
    try:
        group = yield from context.broker.groups.describe_streams_group(group_id)
    except KafkaError as error:
        told = str(error) if error.code == ErrorCode.GROUP_ID_NOT_FOUND else None
        return described_error(group_id, error.code, told)
    for topic in () if group.topology is None else topics_of(group.topology):
        yield
        if not context.allows(DESCRIBE_TOPIC, topic):
            return described_error(group_id, ErrorCode.TOPIC_AUTHORIZATION_FAILED, HIDDEN_TOPICS)
    if request.include_authorized_operations:
        operations = authorized_operations(context, ResourceType.GROUP, group_id)
        return replace(group, authorized_operations=operations)
    return group


def _size(member: Member) -> int:
    """
    About the bytes of a member in the answer.
    """
    return sum(
        len(tasks.subtopology_id) + 4 * len(tasks.partitions)
        for assignment in (member.assignment, member.target_assignment)
        for of_role in (
            assignment.active_tasks,
            assignment.standby_tasks,
            assignment.warmup_tasks,
        )
        for tasks in of_role
    )
