"""
OffsetFetch: how far groups have come.

Internally every request is one for several groups, each with its own error, as since v8.
"""

from __future__ import annotations

from functools import partial
from typing import Final

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
from barnabas.server.groups.offsets.answers import no_offset
from barnabas.server.requests.answer_room import AnswerRoom
from barnabas.server.requests.authorization import asks
from barnabas.server.requests.context import RequestContext
from barnabas.server.requests.registry import handles
from barnabas.server.scheduling.turns import Steps, map_in_steps
from barnabas.server.security.acl.permissions import DESCRIBE_GROUP, DESCRIBE_TOPIC

SEVERAL_GROUPS_SINCE: Final = 8
TOPIC_IDS_SINCE: Final = 10


@handles(OffsetFetchRequest, needs=asks(DESCRIBE_GROUP, DESCRIBE_TOPIC))
def offset_fetch(
    request: OffsetFetchRequest, context: RequestContext
) -> Steps[OffsetFetchResponse]:
    """
    Answer for each group: the topics that are named, or all that it has offsets of.
    """
    room = AnswerRoom()
    groups = []
    for group in _groups(request, context.version):
        yield
        fetched = yield from _fetch(group, request.require_stable, context)
        for topic in fetched.topics:
            yield
            size = sum(len(each.metadata or "") for each in topic.partitions)
            room.take(len(topic.partitions), size)
        groups.append(fetched)
    return _of_version(groups, context.version)


def _groups(request: OffsetFetchRequest, version: int) -> list[OffsetFetchRequestGroup]:
    if version >= SEVERAL_GROUPS_SINCE:
        return request.groups
    topics = None
    if request.topics is not None:
        topics = [
            OffsetFetchRequestTopics(name=topic.name, partition_indexes=topic.partition_indexes)
            for topic in request.topics
        ]
    return [OffsetFetchRequestGroup(group_id=request.group_id, topics=topics)]


def _fetch(
    group: OffsetFetchRequestGroup, require_stable: bool, context: RequestContext
) -> Steps[OffsetFetchResponseGroup]:
    fetch = partial(
        context.broker.groups.fetch_offsets, version=context.version, require_stable=require_stable
    )
    if context.version < TOPIC_IDS_SINCE:
        return (yield from fetch(group))
    named = group
    unknown: list[OffsetFetchResponseTopics] = []
    if group.topics is not None:
        topics, unknown = yield from _name(group.topics, context)
        named = replace(group, topics=topics)
    answer = yield from fetch(named)
    if answer.error_code != ErrorCode.NONE:
        return answer
    if group.topics is None:
        return replace(answer, topics=(yield from _identify(answer.topics, context)))
    return replace(answer, topics=answer.topics + unknown)


def _name(
    topics: list[OffsetFetchRequestTopics], context: RequestContext
) -> Steps[tuple[list[OffsetFetchRequestTopics], list[OffsetFetchResponseTopics]]]:
    """
    The topics with their names, and the answer for those that have none.
    """
    named, unknown = [], []
    for topic in topics:
        yield
        found = context.broker.topics.get_by_id(topic.topic_id)
        if found is not None:
            named.append(replace(topic, name=found.name))
            continue
        partitions = yield from map_in_steps(
            lambda index: no_offset(index, ErrorCode.UNKNOWN_TOPIC_ID), topic.partition_indexes
        )
        unknown.append(OffsetFetchResponseTopics(topic_id=topic.topic_id, partitions=partitions))
    return named, unknown


def _identify(
    topics: list[OffsetFetchResponseTopics], context: RequestContext
) -> Steps[list[OffsetFetchResponseTopics]]:
    """
    The topics with their ids; those that do not exist any more cannot be told of.
    """
    identified = []
    for topic in topics:
        yield
        found = context.broker.topics.get(topic.name)
        if found is not None and topic.topic_id == ZERO_UUID:
            identified.append(replace(topic, topic_id=found.id))
    return identified


def _of_version(groups: list[OffsetFetchResponseGroup], version: int) -> OffsetFetchResponse:
    if version >= SEVERAL_GROUPS_SINCE:
        return OffsetFetchResponse(groups=groups)
    (group,) = groups
    return OffsetFetchResponse(
        error_code=group.error_code,
        topics=[
            OffsetFetchResponseTopic(
                name=topic.name,
                partitions=[
                    OffsetFetchResponsePartition(
                        partition_index=partition.partition_index,
                        committed_offset=partition.committed_offset,
                        committed_leader_epoch=partition.committed_leader_epoch,
                        metadata=partition.metadata,
                        error_code=partition.error_code,
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in group.topics
        ],
    )
