"""
OffsetForLeaderEpoch: where a leader epoch ended (KIP-101, KIP-320).

A client whose position is behind that end has read records that are gone. Kafka's
``Partition.lastOffsetForLeaderEpoch``.
"""

from __future__ import annotations

from barnabas.protocol.errors import KafkaError
from barnabas.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
    OffsetForLeaderTopicResult,
)
from barnabas.server.requests.authorization import asks
from barnabas.server.requests.context import RequestContext
from barnabas.server.requests.registry import handles
from barnabas.server.scheduling.turns import Steps, each_in_steps, map_in_steps
from barnabas.server.security.acl.permissions import CLUSTER_ACTION, DESCRIBE_TOPIC


@handles(OffsetForLeaderEpochRequest, needs=asks(CLUSTER_ACTION, DESCRIBE_TOPIC))
def offset_for_leader_epoch(
    request: OffsetForLeaderEpochRequest, context: RequestContext
) -> Steps[OffsetForLeaderEpochResponse]:
    def find(topic: OffsetForLeaderTopic) -> Steps[OffsetForLeaderTopicResult]:
        name = topic.topic
        ends = yield from map_in_steps(lambda each: _end(name, each, context), topic.partitions)
        return OffsetForLeaderTopicResult(topic=name, partitions=ends)

    return OffsetForLeaderEpochResponse(topics=(yield from each_in_steps(find, request.topics)))


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
