"""
CreateTopics (Kafka ``ControllerApis.createTopics``).
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from barnabas.coordination.cluster.topic_names import CLUSTER_METADATA_TOPIC
from barnabas.coordination.security.acl.bindings import CLUSTER_NAME
from barnabas.coordination.security.acl.permissions import (
    CREATE_CLUSTER,
    CREATE_TOPIC,
    DESCRIBE_CONFIGS_TOPIC,
)
from barnabas.coordination.steps import checkpoint, map_in_turns
from barnabas.coordination.topics.creation import CreatedTopic
from barnabas.protocol.errors import (
    ErrorCode,
    InvalidRequest,
    KafkaError,
    TopicAuthorizationFailed,
)
from barnabas.protocol.messages.create_topics import (
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from barnabas.server.requests.authorization import asks
from barnabas.server.requests.context import RequestContext
from barnabas.server.requests.registry import handles

FIRST_WITH_CONFIGS: Final = 5
FIRST_STRICT: Final = 6


@handles(CreateTopicsRequest, needs=asks(CREATE_CLUSTER, CREATE_TOPIC, DESCRIBE_CONFIGS_TOPIC))
async def create_topics(
    request: CreateTopicsRequest, context: RequestContext
) -> CreateTopicsResponse:
    """
    Create each topic or say why not; those created can be used when the answer is sent.
    """
    refused = await _refusals(request, context)
    wanted = [topic for topic in request.topics if topic.name not in refused]
    plan = await context.broker.topics.create(
        wanted, validate_only=request.validate_only, charge=context.charge(FIRST_STRICT)
    )
    errors = refused | plan.errors

    def outcome(name: str) -> CreatableTopicResult:
        error = errors.get(name)
        if error is not None:
            return _failed(name, error.code, str(error))
        return _succeeded(plan.created[name], context)

    names = dict.fromkeys(topic.name for topic in request.topics)
    return CreateTopicsResponse(topics=await map_in_turns(outcome, names))


async def _refusals(request: CreateTopicsRequest, context: RequestContext) -> dict[str, KafkaError]:
    refused: dict[str, KafkaError] = {}
    may_create_all = context.sees(CREATE_CLUSTER, CLUSTER_NAME)
    for name, times in Counter(topic.name for topic in request.topics).items():
        await checkpoint()
        if times > 1:
            refused[name] = InvalidRequest("Duplicate topic name.")
        elif name == CLUSTER_METADATA_TOPIC:
            refused[name] = InvalidRequest(f"Creation of internal topic {name} is prohibited.")
        elif not may_create_all and not context.allows(CREATE_TOPIC, name):
            refused[name] = TopicAuthorizationFailed("Authorization failed.")
    return refused


def _failed(name: str, code: ErrorCode, message: str | None) -> CreatableTopicResult:
    return CreatableTopicResult(name=name, error_code=code, error_message=message, configs=[])


def _succeeded(topic: CreatedTopic, context: RequestContext) -> CreatableTopicResult:
    if not context.sees(DESCRIBE_CONFIGS_TOPIC, topic.name):
        return CreatableTopicResult(
            name=topic.name,
            topic_id=topic.id,
            error_code=ErrorCode.NONE,
            topic_config_error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
            configs=[],
        )
    configs = []
    if context.version >= FIRST_WITH_CONFIGS:
        configs = [
            CreatableTopicConfigs(
                name=entry.name,
                value=entry.value,
                read_only=False,
                config_source=entry.source,
                is_sensitive=False,
            )
            for entry in context.broker.topics.configs.describe(topic.configs)
        ]
    # Even 10,000 topics, the most of a request, stay below the limit of an answer.
    context.room().take(1 + len(configs))
    return CreatableTopicResult(
        name=topic.name,
        topic_id=topic.id,
        error_code=ErrorCode.NONE,
        num_partitions=topic.num_partitions,
        replication_factor=topic.replication_factor,
        configs=configs,
    )
