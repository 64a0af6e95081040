"""
OffsetFetch: how far groups have come.

Internally every request is one for several groups, each with its own error, as since v8.

A client has to be allowed to describe the group. A topic that it may not describe is refused if it
has named it, and left out if it wants all.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Final

from barnabas.coordination.groups.offsets.answers import fetch_error, no_offset
from barnabas.coordination.security.acl.permissions import DESCRIBE_GROUP, DESCRIBE_TOPIC
from barnabas.coordination.steps import await_each, checkpoint, map_in_turns
from barnabas.coordination.text_memory import text_bytes
from barnabas.protocol.codec.schema import ZERO_UUID, replace
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from barnabas.server.requests.authorization import asks
from barnabas.server.requests.context import RequestContext
from barnabas.server.requests.registry import handles
from barnabas.server.requests.settled import groups, reads

SEVERAL_GROUPS_SINCE: Final = 8
TOPIC_IDS_SINCE: Final = 10


def _group_ids(request: OffsetFetchRequest) -> Iterator[str]:
    yield request.group_id
    for group in request.groups:
        yield group.group_id


@handles(OffsetFetchRequest, needs=asks(DESCRIBE_GROUP, DESCRIBE_TOPIC))
@reads(groups, _group_ids)
async def offset_fetch(request: OffsetFetchRequest, context: RequestContext) -> OffsetFetchResponse:
    """
    Answer for each group: the topics that are named, or all that it has offsets of.
    """
    room = context.room()
    groups = []
    for group in await _groups(request, context.version):
        await checkpoint()
        room.take(1)
        groups.append(await _fetch(group, request.require_stable, context))
    return await _of_version(groups, context.version)


async def _groups(request: OffsetFetchRequest, version: int) -> list[OffsetFetchRequestGroup]:
    if version >= SEVERAL_GROUPS_SINCE:
        return request.groups
    topics = None
    if request.topics is not None:
        topics = await map_in_turns(
            lambda topic: OffsetFetchRequestTopics(
                name=topic.name, partition_indexes=topic.partition_indexes
            ),
            request.topics,
        )
    return [OffsetFetchRequestGroup(group_id=request.group_id, topics=topics)]


async def _fetch(
    group: OffsetFetchRequestGroup, require_stable: bool, context: RequestContext
) -> OffsetFetchResponseGroup:
    if not context.allows(DESCRIBE_GROUP, group.group_id):
        error = ErrorCode.GROUP_AUTHORIZATION_FAILED
        return await fetch_error(group, error, context.version)
    room = context.room()
    fetch = partial(
        context.broker.groups.fetch_offsets,
        version=context.version,
        require_stable=require_stable,
        found_one=lambda each: room.take(1, text_bytes(each.metadata or "")),
    )
    if context.version < TOPIC_IDS_SINCE and context.broker.authorizer is None:
        return await fetch(group)
    named = group
    refused: list[OffsetFetchResponseTopics] = []
    if group.topics is not None:
        topics, refused = await _named(group.topics, context)
        named = replace(group, topics=topics)
    answer = await fetch(named)
    if answer.error_code != ErrorCode.NONE:
        return answer
    if group.topics is None:
        return replace(answer, topics=await _visible(answer.topics, context))
    return replace(answer, topics=answer.topics + refused)


async def _named(
    topics: list[OffsetFetchRequestTopics], context: RequestContext
) -> tuple[list[OffsetFetchRequestTopics], list[OffsetFetchResponseTopics]]:
    """
    The topics with their names, and the answer for those that have none, or that the client may not
    describe.
    """
    named, refused = [], []
    for topic in topics:
        await checkpoint()
        error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        if context.version >= TOPIC_IDS_SINCE:
            found = context.broker.topics.get_by_id(topic.topic_id)
            if found is None:
                error = ErrorCode.UNKNOWN_TOPIC_ID
            elif context.allows(DESCRIBE_TOPIC, found.name):
                named.append(replace(topic, name=found.name))
                continue
        elif context.allows(DESCRIBE_TOPIC, topic.name):
            named.append(topic)
            continue
        partitions = await map_in_turns(partial(no_offset, error=error), topic.partition_indexes)
        refused.append(
            OffsetFetchResponseTopics(
                name=topic.name, topic_id=topic.topic_id, partitions=partitions
            )
        )
    return named, refused


async def _visible(
    topics: list[OffsetFetchResponseTopics], context: RequestContext
) -> list[OffsetFetchResponseTopics]:
    """
    The topics that the client may describe. Where topics have ids, those that do not exist any more
    cannot be told of.
    """
    visible = []
    for topic in topics:
        await checkpoint()
        if not context.sees(DESCRIBE_TOPIC, topic.name):
            continue
        if context.version < TOPIC_IDS_SINCE:
            visible.append(topic)
            continue
        found = context.broker.topics.get(topic.name)
        if found is not None and topic.topic_id == ZERO_UUID:
            visible.append(replace(topic, topic_id=found.id))
    return visible


async def _of_version(groups: list[OffsetFetchResponseGroup], version: int) -> OffsetFetchResponse:
    if version >= SEVERAL_GROUPS_SINCE:
        return OffsetFetchResponse(groups=groups)
    (group,) = groups
    topics = await await_each(_of_one_group, group.topics)
    return OffsetFetchResponse(error_code=group.error_code, topics=topics)


async def _of_one_group(topic: OffsetFetchResponseTopics) -> OffsetFetchResponseTopic:
    partitions = await map_in_turns(
        lambda partition: OffsetFetchResponsePartition(
            partition_index=partition.partition_index,
            committed_offset=partition.committed_offset,
            committed_leader_epoch=partition.committed_leader_epoch,
            metadata=partition.metadata,
            error_code=partition.error_code,
        ),
        topic.partitions,
    )
    return OffsetFetchResponseTopic(name=topic.name, partitions=partitions)
