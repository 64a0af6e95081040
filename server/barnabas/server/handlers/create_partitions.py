"""
CreatePartitions (Kafka ``ControllerApis.createPartitions``).
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from barnabas.coordination.security.acl.permissions import ALTER_TOPIC
from barnabas.coordination.steps import map_in_turns
from barnabas.protocol.errors import (
    ErrorCode,
    InvalidRequest,
    KafkaError,
    TopicAuthorizationFailed,
    UnknownTopicOrPartition,
)
from barnabas.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
)
from barnabas.server.requests.authorization import asks
from barnabas.server.requests.authorized import partition_by_authorized
from barnabas.server.requests.context import RequestContext
from barnabas.server.requests.registry import handles

FIRST_STRICT: Final = 3


@handles(CreatePartitionsRequest, needs=asks(ALTER_TOPIC))
async def create_partitions(
    request: CreatePartitionsRequest, context: RequestContext
) -> CreatePartitionsResponse:
    """
    Add partitions to each topic or say why not; those added can be used when the answer is sent.
    """
    times = Counter(topic.name for topic in request.topics)
    once = [name for name, count in times.items() if count == 1]
    _, refused = await partition_by_authorized(context, ALTER_TOPIC, once, str)
    errors: dict[str, KafkaError] = dict.fromkeys(refused, TopicAuthorizationFailed())
    if len(once) < len(times):
        repeated = InvalidRequest("Duplicate topic name.")
        errors |= {name: repeated for name, count in times.items() if count > 1}
    plan = await context.broker.topics.add_partitions(
        [topic for topic in request.topics if topic.name not in errors],
        validate_only=request.validate_only,
        charge=context.charge(FIRST_STRICT),
    )
    errors |= plan.errors

    def outcome(name: str) -> CreatePartitionsTopicResult:
        error = errors.get(name)
        if error is None:
            return _result(name, ErrorCode.NONE, None)
        if isinstance(error, UnknownTopicOrPartition | TopicAuthorizationFailed):
            return _result(name, error.code, None)
        return _result(name, error.code, str(error))

    return CreatePartitionsResponse(results=await map_in_turns(outcome, times))


def _result(name: str, code: ErrorCode, message: str | None) -> CreatePartitionsTopicResult:
    return CreatePartitionsTopicResult(name=name, error_code=code, error_message=message)
