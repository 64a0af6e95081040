"""
Metadata: brokers, topics, and who leads their partitions (Kafka ``KafkaApis.handleTopicMetadata``).

Kafka answers UNKNOWN_TOPIC_OR_PARTITION to the request that makes it create a topic and leaves the
client to ask again. Here the topic is there when the answer is sent.
"""

from __future__ import annotations

from collections.abc import Coroutine, Iterable
from typing import Any, Final
from uuid import UUID

from barnabas.protocol.codec.schema import ZERO_UUID
from barnabas.protocol.errors import ErrorCode, InvalidRequest, UnknownServerError
from barnabas.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from barnabas.server.cluster.image import Topic
from barnabas.server.cluster.partition_registration import NO_LEADER, PartitionRegistration
from barnabas.server.cluster.topic_names import is_internal, reason_invalid
from barnabas.server.requests.authorization import asks
from barnabas.server.requests.authorized import (
    NOT_REQUESTED,
    authorized_cluster_operations,
    authorized_operations,
    partition_by_authorized,
)
from barnabas.server.requests.context import RequestContext
from barnabas.server.requests.registry import handles
from barnabas.server.scheduling.turns import Steps, each_in_steps, map_in_steps
from barnabas.server.security.acl.bindings import CLUSTER_NAME, ResourceType
from barnabas.server.security.acl.permissions import (
    CREATE_CLUSTER,
    CREATE_TOPIC,
    DESCRIBE_CLUSTER,
    DESCRIBE_TOPIC,
)

FIRST_WITH_TOPIC_IDS: Final = 12
ALWAYS_STRICT: Final = 0


@handles(
    MetadataRequest, needs=asks(DESCRIBE_TOPIC, CREATE_TOPIC, CREATE_CLUSTER, DESCRIBE_CLUSTER)
)
def metadata(
    request: MetadataRequest, context: RequestContext
) -> Steps[MetadataResponse | Coroutine[Any, Any, MetadataResponse]]:
    """
    Answer at once, unless topics have to be created first.
    """
    asked = request.topics
    if asked is None or (context.version == 0 and not asked):
        every = yield from _visible(context)
        found = yield from each_in_steps(lambda each: _describe(each, request, context), every)
        return _respond(request, context, found)
    names, ids = yield from _distinct(asked, context.version)
    if ids:
        # As soon as one topic is asked for by id, names count for nothing.
        found = yield from each_in_steps(lambda each: _find_by_id(each, request, context), ids)
        return _respond(request, context, found)
    names, hidden = yield from partition_by_authorized(context, DESCRIBE_TOPIC, names, str)
    refused = yield from map_in_steps(lambda name: _refused(name=name), hidden)
    if request.allow_auto_topic_creation:
        missing, uncreatable = yield from _missing(names, context)
        if uncreatable:
            refused += yield from map_in_steps(_uncreated, uncreatable)
            left_out = set(uncreatable)
            names = [name for name in names if name not in left_out]
        if missing:
            return _create_and_respond(request, context, names, missing, refused)
    found = yield from _find_all(names, request, context)
    return _respond(request, context, found + refused)


async def _create_and_respond(
    request: MetadataRequest,
    context: RequestContext,
    names: list[str],
    missing: Iterable[str],
    refused: list[MetadataResponseTopic],
) -> MetadataResponse:
    await context.broker.topics.create_missing(
        missing, context.charge(ALWAYS_STRICT, is_told=False)
    )
    found = await context.broker.turns.finish(_find_all(names, request, context))
    return _respond(request, context, found + refused)


def _visible(context: RequestContext) -> Steps[list[Topic]]:
    """
    The topics that the client may describe.
    """
    every = list(context.broker.topics)
    if context.broker.authorizer is None:
        return every
    visible = []
    for topic in every:
        yield
        if context.sees(DESCRIBE_TOPIC, topic.name):
            visible.append(topic)
    return visible


def _distinct(
    asked: list[MetadataRequestTopic], version: int
) -> Steps[tuple[list[str], list[UUID]]]:
    """
    The names and the ids that are asked for, each once.

    Raises:
        InvalidRequest: a topic is named by its id in a version whose answers have no place for it.
        UnknownServerError: a topic has neither name nor id, and none has an id. Kafka has no better
            code for this, and fails the other topics with it.
    """
    names: dict[str, None] = {}
    ids: dict[UUID, None] = {}
    is_nameless = False
    for topic in asked:
        yield
        if topic.name is not None:
            names[topic.name] = None
        elif version < FIRST_WITH_TOPIC_IDS:
            raise InvalidRequest(f"Topic name can not be null for version {version}")
        else:
            is_nameless = True
        if topic.topic_id != ZERO_UUID:
            if version < FIRST_WITH_TOPIC_IDS:
                raise InvalidRequest(
                    f"Topic IDs are not supported in requests for version {version}"
                )
            ids[topic.topic_id] = None
    if is_nameless and not ids:
        raise UnknownServerError("A topic has neither name nor id: give one of them")
    return list(names), list(ids)


def _missing(names: list[str], context: RequestContext) -> Steps[tuple[list[str], list[str]]]:
    """
    The topics that the request may create, and those that it could if the client were allowed to.
    """
    missing: list[str] = []
    if context.broker.config.auto_create_topics_enable:
        for name in names:
            yield
            if name not in context.broker.topics:
                missing.append(name)
    if not missing or context.sees(CREATE_CLUSTER, CLUSTER_NAME):
        return missing, []
    return (yield from partition_by_authorized(context, CREATE_TOPIC, missing, str))


def _find_all(
    names: list[str], request: MetadataRequest, context: RequestContext
) -> Steps[list[MetadataResponseTopic]]:
    return (yield from each_in_steps(lambda each: _find(each, request, context), names))


def _find_by_id(
    topic_id: UUID, request: MetadataRequest, context: RequestContext
) -> Steps[MetadataResponseTopic]:
    topic = context.broker.topics.get_by_id(topic_id)
    if topic is None:
        return _unknown(ErrorCode.UNKNOWN_TOPIC_ID, topic_id=topic_id)
    if not context.allows(DESCRIBE_TOPIC, topic.name):
        return _refused(topic_id=topic_id)
    return (yield from _describe(topic, request, context))


def _find(
    name: str, request: MetadataRequest, context: RequestContext
) -> Steps[MetadataResponseTopic]:
    topic = context.broker.topics.get(name)
    if topic is not None:
        return (yield from _describe(topic, request, context))
    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if reason_invalid(name) is not None:
        code = ErrorCode.INVALID_TOPIC_EXCEPTION
    return _unknown(code, name=name, operations=_topic_operations(name, request, context))


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


def _describe(
    topic: Topic, request: MetadataRequest, context: RequestContext
) -> Steps[MetadataResponseTopic]:
    make = _partition if context.version > 0 else _partition_v0
    partitions = yield from map_in_steps(
        lambda index: make(index, topic.partitions[index], context), tuple(topic.partitions)
    )
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
    node_id = context.broker.node_id
    is_led = partition.leader == node_id
    return MetadataResponsePartition(
        error_code=ErrorCode.NONE if is_led else ErrorCode.LEADER_NOT_AVAILABLE,
        partition_index=index,
        leader_id=node_id if is_led else NO_LEADER,
        leader_epoch=partition.leader_epoch,
        replica_nodes=list(partition.replicas),
        isr_nodes=list(partition.isr),
        offline_replicas=context.broker.topics.offline_replicas(partition),
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
