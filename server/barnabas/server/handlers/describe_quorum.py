"""
DescribeQuorum: the controllers that vote on the metadata log, and how far each is (KIP-595,
KIP-836, KIP-853; Kafka ``KafkaRaftClient.handleDescribeQuorumRequest``).

The one voter is this node. It has caught up with itself at any time, and nobody observes.
"""

from __future__ import annotations

from barnabas.coordination.security.acl.permissions import DESCRIBE_CLUSTER
from barnabas.coordination.steps import await_each, map_in_turns
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    Listener,
    Node,
    ReplicaState,
    RequestPartitionData,
    RequestTopicData,
    ResponsePartitionData,
    ResponseTopicData,
)
from barnabas.server.cluster.metadata_log import MetadataLog
from barnabas.server.requests.authorization import gate
from barnabas.server.requests.context import RequestContext
from barnabas.server.requests.registry import handles
from barnabas.storage.state_files.file_names import CLUSTER_METADATA_TOPIC


@handles(DescribeQuorumRequest, needs=gate(DESCRIBE_CLUSTER))
async def describe_quorum(
    request: DescribeQuorumRequest, context: RequestContext
) -> DescribeQuorumResponse:
    """
    The quorum of the metadata log, which must be the one partition that is asked for.
    """
    asked = [
        (topic.topic_name, partition.partition_index)
        for topic in request.topics
        for partition in topic.partitions
    ]
    if len(request.topics) != 1 or asked != [(CLUSTER_METADATA_TOPIC, 0)]:
        return await _unknown(request)
    log = context.broker.controller.log
    topic = ResponseTopicData(
        topic_name=CLUSTER_METADATA_TOPIC,
        partitions=[_quorum(log, context.broker.node_id, context.broker.clock.now_ms())],
    )
    return DescribeQuorumResponse(
        error_code=ErrorCode.NONE,
        error_message="",  # Kafka answers so, not with null.
        topics=[topic],
        nodes=[Node(node_id=context.broker.node_id, listeners=_listeners(context))],
    )


def _quorum(log: MetadataLog, node_id: int, now_ms: int) -> ResponsePartitionData:
    voter = ReplicaState(
        replica_id=node_id,
        replica_directory_id=log.voter_directory_id,
        log_end_offset=log.high_watermark,
        last_fetch_timestamp=now_ms,
        last_caught_up_timestamp=now_ms,
    )
    return ResponsePartitionData(
        partition_index=0,
        error_code=ErrorCode.NONE,
        error_message="",
        leader_id=node_id,
        leader_epoch=log.epoch,
        high_watermark=log.high_watermark,
        current_voters=[voter],
        observers=[],
    )


def _listeners(context: RequestContext) -> list[Listener]:
    """
    Where the controller says it can be reached: nowhere, it hears of requests from the broker.
    """
    registration = context.broker.image.controllers.get(context.broker.node_id)
    endpoints = [] if registration is None else registration.end_points
    return [Listener(name=e.name, host=e.host, port=e.port) for e in endpoints]


async def _unknown(request: DescribeQuorumRequest) -> DescribeQuorumResponse:
    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    def refuse_one(partition: RequestPartitionData) -> ResponsePartitionData:
        return ResponsePartitionData(
            partition_index=partition.partition_index,
            error_code=code,
            error_message=code.sentence,
            leader_id=0,
            leader_epoch=0,
            high_watermark=0,
            current_voters=[],
            observers=[],
        )

    async def refuse(topic: RequestTopicData) -> ResponseTopicData:
        refused = await map_in_turns(refuse_one, topic.partitions)
        return ResponseTopicData(topic_name=topic.topic_name, partitions=refused)

    topics = await await_each(refuse, request.topics)
    return DescribeQuorumResponse(error_code=ErrorCode.NONE, error_message="", topics=topics)
