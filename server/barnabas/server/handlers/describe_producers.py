"""
DescribeProducers: the producers that partitions know, and their open transactions (KIP-664).
"""

from __future__ import annotations

from typing import Final

from barnabas.coordination.cluster.topic_names import validate_topic_name
from barnabas.coordination.security.acl.permissions import READ_TOPIC
from barnabas.coordination.steps import await_each, map_in_turns
from barnabas.protocol.errors import (
    ErrorCode,
    KafkaError,
    TopicAuthorizationFailed,
    UnknownTopicOrPartition,
    without_frames,
)
from barnabas.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicRequest,
    TopicResponse,
)
from barnabas.server.requests.authorization import asks
from barnabas.server.requests.context import RequestContext
from barnabas.server.requests.registry import handles

NO_SUCH_TOPIC: Final = "This server does not host this topic-partition."
"""What Kafka says of a topic; of a partition that a topic does not have it says nothing."""


@handles(DescribeProducersRequest, needs=asks(READ_TOPIC))
async def describe_producers(
    request: DescribeProducersRequest, context: RequestContext
) -> DescribeProducersResponse:
    room = context.room()

    def describe_one(
        topic: TopicRequest, index: int, error: KafkaError | None
    ) -> PartitionResponse:
        if error is not None:
            described = _error(index, error.code, str(error))
        else:
            described = _describe(topic, index, context)
        room.take(1 + len(described.active_producers))
        return described

    async def describe(topic: TopicRequest) -> TopicResponse:
        error = _error_of_topic(topic.name, context)
        described = await map_in_turns(
            lambda index: describe_one(topic, index, error), topic.partition_indexes
        )
        return TopicResponse(name=topic.name, partitions=described)

    return DescribeProducersResponse(topics=await await_each(describe, request.topics))


def _error_of_topic(name: str, context: RequestContext) -> KafkaError | None:
    """
    The error of all partitions of a topic.
    """
    try:
        validate_topic_name(name)
    except KafkaError as error:
        return without_frames(error)
    if not context.allows(READ_TOPIC, name):
        return TopicAuthorizationFailed()
    return None if name in context.broker.topics else UnknownTopicOrPartition(NO_SUCH_TOPIC)


def _describe(topic: TopicRequest, index: int, context: RequestContext) -> PartitionResponse:
    try:
        partition = context.broker.partitions.expect(topic.name, index)
        if partition.error is not None:
            raise partition.error.with_traceback(None)
    except KafkaError as error:
        return _error(index, error.code, None)
    return PartitionResponse(
        partition_index=index,
        error_code=0,
        active_producers=[
            ProducerState(
                producer_id=producer.producer_id,
                producer_epoch=producer.producer_epoch,
                last_sequence=producer.last_sequence,
                last_timestamp=producer.last_timestamp,
                coordinator_epoch=producer.coordinator_epoch,
                current_txn_start_offset=producer.current_txn_start_offset,
            )
            for producer in partition.log.active_producers()
        ],
    )


def _error(index: int, code: ErrorCode, message: str | None) -> PartitionResponse:
    return PartitionResponse(
        partition_index=index, error_code=code, error_message=message, active_producers=[]
    )
