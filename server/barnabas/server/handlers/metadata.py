"""
Metadata: brokers, topics, and who leads their partitions (Kafka ``KafkaApis.handleTopicMetadata``).

Kafka answers UNKNOWN_TOPIC_OR_PARTITION to the request that makes it create a topic and leaves the
client to ask again. Here the topic is there when the answer is sent.
"""

from __future__ import annotations

from typing import Final
from uuid import UUID

from barnabas.coordination.cluster.image import Topic
from barnabas.coordination.cluster.partition_registration import NO_LEADER, PartitionRegistration
from barnabas.coordination.cluster.topic_names import is_internal, unknown_topic_code
from barnabas.coordination.security.acl.bindings import CLUSTER_NAME, ResourceType
from barnabas.coordination.security.acl.permissions import (
    CREATE_CLUSTER,
    CREATE_TOPIC,
    DESCRIBE_CLUSTER,
    DESCRIBE_TOPIC,
)
from barnabas.coordination.steps import await_each, checkpoint, map_in_turns
from barnabas.coordination.topics.named import distinct
from barnabas.protocol.codec.schema import ZERO_UUID
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from barnabas.server.requests.authorization import asks
from barnabas.server.requests.authorized import (
    NOT_REQUESTED,
    authorized_cluster_operations,
    authorized_operations,
    partition_by_authorized,
)
from barnabas.server.requests.context import RequestContext
from barnabas.server.requests.registry import handles

ALWAYS_STRICT: Final = 0


@handles(
    MetadataRequest, needs=asks(DESCRIBE_TOPIC, CREATE_TOPIC, CREATE_CLUSTER, DESCRIBE_CLUSTER)
)
async def metadata(request: MetadataRequest, context: RequestContext) -> MetadataResponse:
    """
    Describe topics, after those that are missing are created.
    """
    asked = request.topics
    if asked is None or (context.version == 0 and not asked):
        every = await _visible(context)
        found = await await_each(lambda each: _describe(each, request, context), every)
        return _respond(request, context, found)
    names, ids = await distinct(asked, context.version)
    if ids:
        # As soon as one topic is asked for by id, names count for nothing.
        found = await await_each(lambda each: _find_by_id(each, request, context), ids)
        return _respond(request, context, found)
    names, hidden = await partition_by_authorized(context, DESCRIBE_TOPIC, names, str)
    refused = await map_in_turns(lambda name: _refused(name=name), hidden)
    if request.allow_auto_topic_creation:
        missing, uncreatable = await _missing(names, context)
        if uncreatable:
            refused += await map_in_turns(_uncreated, uncreatable)
            left_out = set(uncreatable)
            names = [name for name in names if name not in left_out]
        if missing:
            await context.broker.topics.create_missing(
                missing, context.charge(ALWAYS_STRICT, is_told=False)
            )
    found = await await_each(lambda each: _find(each, request, context), names)
    return _respond(request, context, found + refused)


async def _visible(context: RequestContext) -> list[Topic]:
    """
    The topics that the client may describe.
    """
    every = list(context.broker.topics)
    if context.broker.authorizer is None:
        return every
    visible = []
    for topic in every:
        await checkpoint()
        if context.sees(DESCRIBE_TOPIC, topic.name):
            visible.append(topic)
    return visible


async def _missing(names: list[str], context: RequestContext) -> tuple[list[str], list[str]]:
    """
    The topics that the request may create, and those that it could if the client were allowed to.
    """
    missing: list[str] = []
    if context.broker.config.auto_create_topics_enable:
        for name in names:
            await checkpoint()
            if name not in context.broker.topics:
                missing.append(name)
    if not missing or context.sees(CREATE_CLUSTER, CLUSTER_NAME):
        return missing, []
    return await partition_by_authorized(context, CREATE_TOPIC, missing, str)


async def _find_by_id(
    topic_id: UUID, request: MetadataRequest, context: RequestContext
) -> MetadataResponseTopic:
    topic = context.broker.topics.get_by_id(topic_id)
    if topic is None:
        return _unknown(ErrorCode.UNKNOWN_TOPIC_ID, topic_id=topic_id)
    if not context.allows(DESCRIBE_TOPIC, topic.name):
        return _refused(topic_id=topic_id)
    return await _describe(topic, request, context)


async def _find(
    name: str, request: MetadataRequest, context: RequestContext
) -> MetadataResponseTopic:
    topic = context.broker.topics.get(name)
    if topic is not None:
        return await _describe(topic, request, context)
    operations = _topic_operations(name, request, context)
    return _unknown(unknown_topic_code(name), name=name, operations=operations)


def _unknown(
    code: ErrorCode,
    *,
    name: str | None = None,
    topic_id: UUID = ZERO_UUID,
    operations: int = NOT_REQUESTED,
) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        error_code=code,
        name=name,
        topic_id=topic_id,
        is_internal=name is not None and is_internal(name),
        partitions=[],
        topic_authorized_operations=operations,
    )


def _refused(*, name: str | None = None, topic_id: UUID = ZERO_UUID) -> MetadataResponseTopic:
    """
    The answer for a topic that the client may not describe: it says nothing of the topic, not even
    whether it exists. An id is no secret.
    """
    return MetadataResponseTopic(
        error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        name=name,
        topic_id=topic_id,
        partitions=[],
    )


def _uncreated(name: str) -> MetadataResponseTopic:
    """
    The answer for a topic that does not exist, and that the client may not create.
    """
    return _unknown(ErrorCode.TOPIC_AUTHORIZATION_FAILED, name=name)


async def _describe(
    topic: Topic, request: MetadataRequest, context: RequestContext
) -> MetadataResponseTopic:
    make = _partition if context.version > 0 else _partition_v0
    room = context.room()
    room.take(1, len(topic.name))

    def described(index: int) -> MetadataResponsePartition:
        room.take(1)
        return make(index, topic.partitions[index], context)

    partitions = await map_in_turns(described, tuple(topic.partitions))
    return MetadataResponseTopic(
        error_code=ErrorCode.NONE,
        name=topic.name,
        topic_id=topic.id,
        is_internal=topic.is_internal,
        partitions=partitions,
        topic_authorized_operations=_topic_operations(topic.name, request, context),
    )


def _partition(
    index: int, partition: PartitionRegistration, context: RequestContext
) -> MetadataResponsePartition:
    topics = context.broker.topics
    leader_id = topics.leader_of(partition)
    return MetadataResponsePartition(
        error_code=ErrorCode.LEADER_NOT_AVAILABLE if leader_id == NO_LEADER else ErrorCode.NONE,
        partition_index=index,
        leader_id=leader_id,
        leader_epoch=partition.leader_epoch,
        replica_nodes=list(partition.replicas),
        isr_nodes=list(partition.isr),
        offline_replicas=topics.offline_replicas(partition),
    )


def _partition_v0(
    index: int, partition: PartitionRegistration, context: RequestContext
) -> MetadataResponsePartition:
    """
    The oldest clients cannot bear replicas on brokers that are not in the answer.
    """
    node_id = context.broker.node_id
    described = _partition(index, partition, context)
    described.replica_nodes = [node_id] if node_id in partition.replicas else []
    described.isr_nodes = [node_id] if node_id in partition.isr else []
    is_complete = described.replica_nodes == list(partition.replicas)
    if described.error_code == ErrorCode.NONE and not is_complete:
        described.error_code = ErrorCode.REPLICA_NOT_AVAILABLE
    return described


def _topic_operations(name: str, request: MetadataRequest, context: RequestContext) -> int:
    if not request.include_topic_authorized_operations:
        return NOT_REQUESTED
    return authorized_operations(context, ResourceType.TOPIC, name)


def _respond(
    request: MetadataRequest, context: RequestContext, topics: list[MetadataResponseTopic]
) -> MetadataResponse:
    listener = context.client.listener
    context.broker.advertised_address.given(context.client)
    broker = MetadataResponseBroker(
        node_id=context.broker.node_id,
        host=listener.advertised_host,
        port=listener.advertised_port,
        rack=context.broker.config.broker_rack,
    )
    with_cluster = request.include_cluster_authorized_operations
    return MetadataResponse(
        brokers=[broker],
        cluster_id=context.broker.cluster_id,
        controller_id=context.broker.node_id,
        topics=topics,
        cluster_authorized_operations=(
            authorized_cluster_operations(context) if with_cluster else NOT_REQUESTED
        ),
    )
