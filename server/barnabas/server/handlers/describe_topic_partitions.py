"""
DescribeTopicPartitions: topics and their partitions, page by page (KIP-966; Kafka
``DescribeTopicPartitionsRequestHandler``).

A page ends where the limit on partitions is reached, and its cursor says where the next one begins.
"""

from __future__ import annotations

from heapq import heapify, heappop

from barnabas.coordination.cluster.image import Topic
from barnabas.coordination.cluster.partition_registration import PartitionRegistration
from barnabas.coordination.cluster.topic_names import is_internal, unknown_topic_code
from barnabas.coordination.security.acl.bindings import ResourceType
from barnabas.coordination.security.acl.permissions import DESCRIBE_TOPIC
from barnabas.coordination.steps import checkpoint, map_in_turns
from barnabas.coordination.topics.pages import names_from
from barnabas.protocol.codec.schema import ZERO_UUID
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)
from barnabas.server.requests.authorization import asks
from barnabas.server.requests.authorized import authorized_operations, partition_by_authorized
from barnabas.server.requests.context import RequestContext
from barnabas.server.requests.registry import handles


@handles(DescribeTopicPartitionsRequest, needs=asks(DESCRIBE_TOPIC))
async def describe_topic_partitions(
    request: DescribeTopicPartitionsRequest, context: RequestContext
) -> DescribeTopicPartitionsResponse:
    """
    One page of the topics that are asked for; of all topics if none is named. Those that the client
    may not describe are on every page, or on none if it has not named them.
    """
    asked = {topic.name for topic in request.topics}
    every = asked or {topic.name for topic in context.broker.topics}
    names = await names_from(request.cursor, asked, every)
    hidden: list[tuple[bytes, str]] = []
    if request.topics:
        names, hidden = await partition_by_authorized(
            context, DESCRIBE_TOPIC, names, lambda each: each[1]
        )
        heapify(names)
    page = await _page(request, context, names)
    page.topics.extend(await map_in_turns(lambda each: _refused(each[1]), hidden))
    return page


async def _page(
    request: DescribeTopicPartitionsRequest, context: RequestContext, names: list[tuple[bytes, str]]
) -> DescribeTopicPartitionsResponse:
    start = request.cursor
    described: list[DescribeTopicPartitionsResponseTopic] = []
    room = context.room()
    left = max(
        min(
            context.broker.config.max_request_partition_size_limit, request.response_partition_limit
        ),
        1,
    )
    while names:
        await checkpoint()
        _, name = heappop(names)
        if not (request.topics or context.sees(DESCRIBE_TOPIC, name)):
            continue
        if left == 0:
            cursor = Cursor(topic_name=name, partition_index=0)
            return DescribeTopicPartitionsResponse(topics=described, next_cursor=cursor)
        topic = context.broker.topics.get(name)
        if topic is None:
            if request.topics:
                described.append(_unknown(name, context))
            continue
        first = start.partition_index if start is not None and start.topic_name == name else 0
        end = min(len(topic.partitions), first + left)
        room.take(1 + max(end - first, 0), len(name))
        described.append(_describe(topic, range(first, end), context))
        if end < len(topic.partitions):
            cursor = Cursor(topic_name=name, partition_index=end)
            return DescribeTopicPartitionsResponse(topics=described, next_cursor=cursor)
        left -= max(end - first, 0)
    return DescribeTopicPartitionsResponse(topics=described)


def _unknown(name: str, context: RequestContext) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(
        error_code=unknown_topic_code(name),
        name=name,
        topic_id=ZERO_UUID,
        is_internal=is_internal(name),
        partitions=[],
        topic_authorized_operations=authorized_operations(context, ResourceType.TOPIC, name),
    )


def _refused(name: str) -> DescribeTopicPartitionsResponseTopic:
    """
    Says nothing of the topic, not even whether it exists.
    """
    return DescribeTopicPartitionsResponseTopic(
        error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        name=name,
        topic_id=ZERO_UUID,
        partitions=[],
    )


def _describe(
    topic: Topic, indexes: range, context: RequestContext
) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(
        error_code=ErrorCode.NONE,
        name=topic.name,
        topic_id=topic.id,
        is_internal=topic.is_internal,
        partitions=[_partition(index, topic.partitions[index], context) for index in indexes],
        topic_authorized_operations=authorized_operations(context, ResourceType.TOPIC, topic.name),
    )


def _partition(
    index: int, partition: PartitionRegistration, context: RequestContext
) -> DescribeTopicPartitionsResponsePartition:
    return DescribeTopicPartitionsResponsePartition(
        error_code=ErrorCode.NONE,
        partition_index=index,
        leader_id=context.broker.topics.leader_of(partition),
        leader_epoch=partition.leader_epoch,
        replica_nodes=list(partition.replicas),
        isr_nodes=list(partition.isr),
        eligible_leader_replicas=list(partition.eligible_leader_replicas),
        last_known_elr=list(partition.last_known_elr),
        offline_replicas=context.broker.topics.offline_replicas(partition),
    )
