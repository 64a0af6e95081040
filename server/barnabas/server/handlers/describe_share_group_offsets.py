"""
DescribeShareGroupOffsets: how far share groups are, and how far behind.

Partitions without a state, and topics that do not exist, are no errors: nothing is known of them.
"""

from __future__ import annotations

from uuid import UUID

from barnabas.coordination.security.acl.permissions import DESCRIBE_GROUP, DESCRIBE_TOPIC
from barnabas.coordination.share.keys import SharePartitionKey
from barnabas.coordination.share.offsets import UNKNOWN, ShareOffset, describe
from barnabas.protocol.errors import ErrorCode, KafkaError, UnknownServerError
from barnabas.protocol.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsRequestTopic,
    DescribeShareGroupOffsetsResponse,
    DescribeShareGroupOffsetsResponseGroup,
    DescribeShareGroupOffsetsResponsePartition,
    DescribeShareGroupOffsetsResponseTopic,
)
from barnabas.server.requests.authorization import asks
from barnabas.server.requests.context import RequestContext
from barnabas.server.requests.registry import handles
from barnabas.server.requests.settled import groups, reads


@handles(DescribeShareGroupOffsetsRequest, needs=asks(DESCRIBE_GROUP, DESCRIBE_TOPIC))
@reads(groups, lambda request: (each.group_id for each in request.groups))
async def describe_share_group_offsets(
    request: DescribeShareGroupOffsetsRequest, context: RequestContext
) -> DescribeShareGroupOffsetsResponse:
    groups = []
    async for group in context.broker.turns.between(request.groups):
        groups.append(await _describe_group(group, context))
    return DescribeShareGroupOffsetsResponse(groups=groups)


async def _describe_group(
    group: DescribeShareGroupOffsetsRequestGroup, context: RequestContext
) -> DescribeShareGroupOffsetsResponseGroup:
    group_id = group.group_id
    if not context.allows(DESCRIBE_GROUP, group_id):
        code = ErrorCode.GROUP_AUTHORIZATION_FAILED
        return DescribeShareGroupOffsetsResponseGroup(group_id=group_id, topics=[], error_code=code)
    try:
        if group.topics is None:
            topics = await _all_topics(group_id, context)
        else:
            topics = await _named_topics(group, context)
    except KafkaError as error:
        return DescribeShareGroupOffsetsResponseGroup(
            group_id=group_id,
            topics=[],
            error_code=error.code,
            error_message=error.code.sentence,
        )
    return DescribeShareGroupOffsetsResponseGroup(group_id=group_id, topics=topics)


async def _all_topics(
    group_id: str, context: RequestContext
) -> list[DescribeShareGroupOffsetsResponseTopic]:
    """
    Those whose states the group has initialized, as far as the client may see them.
    """
    topics = []
    for topic_id, indexes in context.broker.share_groups.initialized(group_id).items():
        topic = context.broker.topics.get_by_id(topic_id)
        if topic is not None and context.sees(DESCRIBE_TOPIC, topic.name):
            topics.append(await _describe_topic(group_id, topic.name, sorted(indexes), context))
    return topics


async def _named_topics(
    group: DescribeShareGroupOffsetsRequestGroup, context: RequestContext
) -> list[DescribeShareGroupOffsetsResponseTopic]:
    """
    First those that exist, then those that do not, then those that the client may not see.

    Raises:
        UnknownServerError: no group has an empty id, and no partition of a topic that exists a
            negative number. Kafka stumbles there, too.
    """
    topics = group.topics or ()
    if topics and not group.group_id:
        raise UnknownServerError
    known, missing, refused = [], [], []
    async for topic in context.broker.turns.between(topics):
        if not context.allows(DESCRIBE_TOPIC, topic.topic_name):
            code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            refused.append(await _failed_topic(topic, code, context))
        elif topic.topic_name in context.broker.topics:
            if min(topic.partitions, default=0) < 0:
                raise UnknownServerError
            known.append(
                await _describe_topic(group.group_id, topic.topic_name, topic.partitions, context)
            )
        else:
            missing.append(
                DescribeShareGroupOffsetsResponseTopic(
                    topic_name=topic.topic_name,
                    partitions=[
                        # Kafka leaves the lag at its default here.
                        DescribeShareGroupOffsetsResponsePartition(
                            partition_index=index, start_offset=UNKNOWN
                        )
                        async for index in context.broker.turns.between(topic.partitions)
                    ],
                )
            )
    return known + missing + refused


async def _failed_topic(
    topic: DescribeShareGroupOffsetsRequestTopic, code: ErrorCode, context: RequestContext
) -> DescribeShareGroupOffsetsResponseTopic:
    return DescribeShareGroupOffsetsResponseTopic(
        topic_name=topic.topic_name,
        partitions=[
            DescribeShareGroupOffsetsResponsePartition(
                partition_index=index,
                start_offset=UNKNOWN,
                error_code=code,
                error_message=code.sentence,
            )
            async for index in context.broker.turns.between(topic.partitions)
        ],
    )


async def _describe_topic(
    group_id: str, name: str, indexes: list[int], context: RequestContext
) -> DescribeShareGroupOffsetsResponseTopic:
    broker = context.broker
    topic = broker.topics.get(name)
    assert topic is not None
    partitions = []
    room = context.room()

    def high_watermark(topic_id: UUID, index: int) -> int:
        return broker.partitions.expect_by_id(topic_id, index).log.high_watermark

    async for index in broker.turns.between(indexes):
        room.take(1)
        key = SharePartitionKey(group_id, topic.id, index)
        try:
            offset = await describe(key, broker.shares, high_watermark)
        except KafkaError as error:
            partitions.append(
                DescribeShareGroupOffsetsResponsePartition(
                    partition_index=index,
                    error_code=error.code,
                    error_message=error.code.sentence,
                )
            )
        else:
            partitions.append(_partition(index, offset))
    return DescribeShareGroupOffsetsResponseTopic(
        topic_name=name, topic_id=topic.id, partitions=partitions
    )


def _partition(index: int, offset: ShareOffset) -> DescribeShareGroupOffsetsResponsePartition:
    return DescribeShareGroupOffsetsResponsePartition(
        partition_index=index,
        start_offset=offset.start_offset,
        leader_epoch=offset.leader_epoch,
        lag=offset.lag,
    )
