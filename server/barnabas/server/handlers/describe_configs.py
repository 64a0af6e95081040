"""
DescribeConfigs (Kafka ``ConfigHelper``).
"""

from __future__ import annotations

from barnabas.coordination.security.acl.permissions import (
    DESCRIBE_CONFIGS_CLUSTER,
    DESCRIBE_CONFIGS_GROUP,
    DESCRIBE_CONFIGS_TOPIC,
)
from barnabas.coordination.steps import checkpoint
from barnabas.coordination.text_memory import text_bytes
from barnabas.protocol.errors import ErrorCode, InvalidRequest, KafkaError
from barnabas.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
from barnabas.server.dynamic_config.admin import ConfigEntry
from barnabas.server.requests.authorization import asks
from barnabas.server.requests.config_authorization import require_describe
from barnabas.server.requests.context import RequestContext
from barnabas.server.requests.registry import handles


@handles(
    DescribeConfigsRequest,
    needs=asks(DESCRIBE_CONFIGS_TOPIC, DESCRIBE_CONFIGS_GROUP, DESCRIBE_CONFIGS_CLUSTER),
)
async def describe_configs(
    request: DescribeConfigsRequest, context: RequestContext
) -> DescribeConfigsResponse:
    """
    The options of each resource, where their values come from, and what they mean.
    """
    for resource in request.resources:
        await checkpoint()
        if not context.broker.config_admin().can_describe(resource.resource_type):
            raise InvalidRequest(
                f"Unexpected resource type {resource.resource_type} for resource"
                f" {resource.resource_name}"
            )
    room = context.room()
    results: list[DescribeConfigsResult] = room.list()
    refused = []
    for resource in request.resources:
        await checkpoint()
        try:
            require_describe(context, resource.resource_type, resource.resource_name)
        except KafkaError as error:
            room.take(1, text_bytes(str(error)))
            refused.append(_failed(resource, error.code, str(error)))
            continue
        try:
            described = _describe(resource, request, context)
            for each in described.configs:
                values = [each.value, each.documentation]
                values += [synonym.value for synonym in each.synonyms]
                room.take(1 + len(each.synonyms), sum(text_bytes(value or "") for value in values))
            room.take(1)
            results.append(described)
        except KafkaError as error:
            room.take(1, text_bytes(str(error)))
            results.append(_failed(resource, error.code, str(error)))
    return DescribeConfigsResponse(results=results + refused)


def _describe(
    resource: DescribeConfigsResource, request: DescribeConfigsRequest, context: RequestContext
) -> DescribeConfigsResult:
    wanted = set(resource.configuration_keys or ())
    entries = context.broker.config_admin().describe(resource.resource_type, resource.resource_name)
    return DescribeConfigsResult(
        error_code=ErrorCode.NONE,
        error_message="",  # Kafka answers so, not with null.
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
        configs=[
            _result(entry, request) for entry in entries if not wanted or entry.name in wanted
        ],
    )


def _result(entry: ConfigEntry, request: DescribeConfigsRequest) -> DescribeConfigsResourceResult:
    synonyms = [
        DescribeConfigsSynonym(name=synonym.name, value=synonym.value, source=synonym.source)
        for synonym in entry.synonyms
        if request.include_synonyms
    ]
    documentation = entry.documentation
    if documentation and not request.include_documentation:
        documentation = None
    return DescribeConfigsResourceResult(
        name=entry.name,
        value=entry.value,
        read_only=entry.read_only,
        config_source=entry.source,
        is_sensitive=entry.is_sensitive,
        synonyms=synonyms,
        config_type=entry.type,
        documentation=documentation,
    )


def _failed(
    resource: DescribeConfigsResource, code: ErrorCode, message: str | None
) -> DescribeConfigsResult:
    return DescribeConfigsResult(
        error_code=code,
        error_message=message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
        configs=[],
    )
