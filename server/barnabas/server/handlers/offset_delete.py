"""
OffsetDelete: an administrator makes a group forget single offsets.
"""

from __future__ import annotations

from typing import TypeAlias

from barnabas.coordination.security.acl.permissions import DELETE_GROUP, READ_TOPIC
from barnabas.coordination.steps import checkpoint
from barnabas.protocol.codec.schema import replace
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from barnabas.server.requests.authorization import asks
from barnabas.server.requests.context import RequestContext
from barnabas.server.requests.registry import handles

RefusedTopics: TypeAlias = dict[str, OffsetDeleteResponseTopic]
"""
The part of the answer that the coordinator has no say in, by the name of the topic.
"""


@handles(OffsetDeleteRequest, needs=asks(DELETE_GROUP, READ_TOPIC))
async def offset_delete(
    request: OffsetDeleteRequest, context: RequestContext
) -> OffsetDeleteResponse:
    """
    Have offsets of partitions that exist deleted, and answer for those that do not, or whose topic
    the client may not read.
    """
    context.require(DELETE_GROUP, request.group_id)
    refused: RefusedTopics = {}
    topics = []
    for topic in request.topics:
        known = await _known_part(topic, context, refused)
        if known:
            topics.append(OffsetDeleteRequestTopic(name=topic.name, partitions=known))

    deleted = await context.broker.groups.delete_offsets(replace(request, topics=topics))
    response = await context.committed(deleted)
    if response.error_code != ErrorCode.NONE or not refused:
        return response
    for answered in response.topics:
        _answered(answered.name, refused).partitions.extend(answered.partitions)
    return OffsetDeleteResponse(error_code=ErrorCode.NONE, topics=list(refused.values()))


async def _known_part(
    topic: OffsetDeleteRequestTopic, context: RequestContext, refused: RefusedTopics
) -> list[OffsetDeleteRequestPartition]:
    """
    The partitions that exist. A topic that does not, or that the client may not read, is named in
    the answer even if it has no partitions.
    """
    await checkpoint()
    if context.allows(READ_TOPIC, topic.name):
        found = context.broker.topics.get(topic.name)
        error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    else:
        found = None
        error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    if found is None:
        _answered(topic.name, refused)
    known = []
    for partition in topic.partitions:
        await checkpoint()
        index = partition.partition_index
        if found is not None and index in found.partitions:
            known.append(partition)
        else:
            _answered(topic.name, refused).partitions.append(
                OffsetDeleteResponsePartition(partition_index=index, error_code=error)
            )
    return known


def _answered(name: str, refused: RefusedTopics) -> OffsetDeleteResponseTopic:
    if name not in refused:
        refused[name] = OffsetDeleteResponseTopic(name=name, partitions=[])
    return refused[name]
