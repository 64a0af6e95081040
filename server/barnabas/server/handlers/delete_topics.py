"""
DeleteTopics, by name or by id (Kafka ``ControllerApis.deleteTopics``).
"""

from __future__ import annotations

from typing import Final
from uuid import UUID

from barnabas.coordination.security.acl.bindings import CLUSTER_NAME
from barnabas.coordination.security.acl.permissions import (
    DELETE_CLUSTER,
    DELETE_TOPIC,
    DESCRIBE_TOPIC,
)
from barnabas.coordination.steps import checkpoint, map_in_turns
from barnabas.coordination.topics.named import once_each
from barnabas.protocol.codec.schema import ZERO_UUID
from barnabas.protocol.errors import (
    ErrorCode,
    InvalidRequest,
    KafkaError,
    TopicAuthorizationFailed,
    TopicDeletionDisabled,
    UnknownTopicId,
    UnknownTopicOrPartition,
)
from barnabas.protocol.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from barnabas.server.requests.authorization import asks
from barnabas.server.requests.context import RequestContext
from barnabas.server.requests.registry import handles

FIRST_WITH_DELETION_DISABLED: Final = 3
FIRST_STRICT: Final = 5


@handles(DeleteTopicsRequest, needs=asks(DELETE_CLUSTER, DELETE_TOPIC, DESCRIBE_TOPIC))
async def delete_topics(
    request: DeleteTopicsRequest, context: RequestContext
) -> DeleteTopicsResponse:
    """
    Delete each topic or say why not; those deleted are gone when the answer is sent.
    """
    if not context.broker.config.delete_topic_enable:
        if context.version < FIRST_WITH_DELETION_DISABLED:
            raise InvalidRequest("This version does not support topic deletion.")
        raise TopicDeletionDisabled
    results: list[DeletableTopicResult] = []
    wanted = await _wanted(request, results, context)
    errors = await context.broker.topics.delete(list(wanted), context.charge(FIRST_STRICT))
    results += await map_in_turns(
        lambda each: _result(wanted[each], each, errors.get(each)), wanted
    )
    return DeleteTopicsResponse(responses=results)


async def _wanted(
    request: DeleteTopicsRequest, results: list[DeletableTopicResult], context: RequestContext
) -> dict[UUID, str]:
    """
    The topics that can be deleted; those that cannot get their *results* here.
    """
    asked = await once_each(_states(request))
    results += await map_in_turns(lambda each: _result(*each), asked.refused)
    may_delete_all = context.sees(DELETE_CLUSTER, CLUSTER_NAME)
    refusal = TopicAuthorizationFailed()
    wanted: dict[UUID, str] = {}
    for topic_id in asked.ids:
        await checkpoint()
        topic = context.broker.topics.get_by_id(topic_id)
        if topic is None:
            results.append(_result(None, topic_id, UnknownTopicId()))
        elif may_delete_all or context.allows(DELETE_TOPIC, topic.name):
            wanted[topic_id] = topic.name
        elif context.allows(DESCRIBE_TOPIC, topic.name):
            results.append(_result(topic.name, topic_id, refusal))
        else:
            results.append(_result(None, topic_id, refusal))
    for name in asked.names:
        await checkpoint()
        if not (may_delete_all or context.allows(DESCRIBE_TOPIC, name)):
            results.append(_result(name, ZERO_UUID, refusal))
            continue
        topic = context.broker.topics.get(name)
        if topic is None:
            results.append(_result(name, ZERO_UUID, UnknownTopicOrPartition()))
        elif not (may_delete_all or context.allows(DELETE_TOPIC, name)):
            results.append(_result(name, ZERO_UUID, refusal))
        elif wanted.pop(topic.id, None) is not None:
            message = "The provided topic name maps to an ID that was already supplied."
            results.append(_result(name, topic.id, InvalidRequest(message)))
        else:
            wanted[topic.id] = name
    return wanted


def _states(request: DeleteTopicsRequest) -> list[DeleteTopicState]:
    by_name = [DeleteTopicState(name=name, topic_id=ZERO_UUID) for name in request.topic_names]
    return [*by_name, *request.topics]


def _result(name: str | None, topic_id: UUID, error: KafkaError | None) -> DeletableTopicResult:
    return DeletableTopicResult(
        name=name,
        topic_id=topic_id,
        error_code=ErrorCode.NONE if error is None else error.code,
        error_message=None if error is None else str(error),
    )
