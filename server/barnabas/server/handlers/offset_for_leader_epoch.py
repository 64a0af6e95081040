"""
OffsetForLeaderEpoch: where a leader epoch ended (KIP-101, KIP-320).

A client whose position is behind that end has read records that are gone. Kafka's
``Partition.lastOffsetForLeaderEpoch``.
"""

from __future__ import annotations

from barnabas.coordination.security.acl.bindings import CLUSTER_NAME
from barnabas.coordination.security.acl.permissions import CLUSTER_ACTION, DESCRIBE_TOPIC
from barnabas.coordination.steps import await_each, map_in_turns
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
    OffsetForLeaderTopicResult,
)
from barnabas.server.requests.authorization import asks
from barnabas.server.requests.authorized import partition_by_authorized
from barnabas.server.requests.context import RequestContext
from barnabas.server.requests.registry import handles


@handles(OffsetForLeaderEpochRequest, needs=asks(CLUSTER_ACTION, DESCRIBE_TOPIC))
async def offset_for_leader_epoch(
    request: OffsetForLeaderEpochRequest, context: RequestContext
) -> OffsetForLeaderEpochResponse:
    topics = request.topics
    hidden: list[OffsetForLeaderTopic] = []
    if not context.sees(CLUSTER_ACTION, CLUSTER_NAME):
        topics, hidden = await partition_by_authorized(
            context, DESCRIBE_TOPIC, topics, lambda topic: topic.topic
        )

    async def find(topic: OffsetForLeaderTopic) -> OffsetForLeaderTopicResult:
        name = topic.topic
        ends = await map_in_turns(lambda each: _end(name, each, context), topic.partitions)
        return OffsetForLeaderTopicResult(topic=name, partitions=ends)

    async def refuse(topic: OffsetForLeaderTopic) -> OffsetForLeaderTopicResult:
        ends = await map_in_turns(_refused, topic.partitions)
        return OffsetForLeaderTopicResult(topic=topic.topic, partitions=ends)

    results = await await_each(find, topics)
    results += await await_each(refuse, hidden)
    return OffsetForLeaderEpochResponse(topics=results)


def _refused(asked: OffsetForLeaderPartition) -> EpochEndOffset:
    return EpochEndOffset(
        partition=asked.partition, error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED
    )


def _end(topic: str, asked: OffsetForLeaderPartition, context: RequestContext) -> EpochEndOffset:
    try:
        partition = context.broker.partitions.expect(topic, asked.partition)
        partition.check_leader_epoch(asked.current_leader_epoch)
        epoch, end_offset = partition.end_of_epoch(asked.leader_epoch)
    except KafkaError as error:
        return EpochEndOffset(partition=asked.partition, error_code=error.code)
    return EpochEndOffset(
        partition=asked.partition, error_code=0, leader_epoch=epoch, end_offset=end_offset
    )
