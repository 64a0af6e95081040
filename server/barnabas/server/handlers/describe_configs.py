"""
DescribeConfigs of topics and of this broker (Kafka ``ConfigHelper``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from barnabas.protocol.errors import (
    ErrorCode,
    InvalidRequest,
    KafkaError,
    UnknownTopicOrPartition,
)
from barnabas.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
from barnabas.server.cluster.image import ResourceType
from barnabas.server.cluster.topic_names import validate_topic_name
from barnabas.server.config import BrokerConfig
from barnabas.server.context import Context
from barnabas.server.handlers import handles
from barnabas.server.topic_configs import ConfigSource, ConfigValue
from barnabas.storage.log_config import LogConfig
from barnabas.storage.options import Option, OptionType, Update


def _error_response(
    request: DescribeConfigsRequest, _version: int, code: ErrorCode, message: str | None
) -> DescribeConfigsResponse:
    return DescribeConfigsResponse(
        results=[_failed(resource, code, message) for resource in request.resources]
    )


@handles(DescribeConfigsRequest, error_response=_error_response)
def describe_configs(request: DescribeConfigsRequest, context: Context) -> DescribeConfigsResponse:
    """
    The options of each resource, where their values come from, and what they mean.
    """
    results = []
    for resource in request.resources:
        try:
            results.append(_describe(resource, request, context))
        except KafkaError as error:
            results.append(_failed(resource, error.code, str(error)))
    return DescribeConfigsResponse(results=results)


def _describe(
    resource: DescribeConfigsResource, request: DescribeConfigsRequest, context: Context
) -> DescribeConfigsResult:
    describe = _DESCRIBE.get(resource.resource_type)
    if describe is None:
        raise InvalidRequest(f"Unsupported resource type: {resource.resource_type}")
    wanted = resource.configuration_keys
    configs = [
        _result(entry, request)
        for entry in describe(resource.resource_name, context)
        if not wanted or entry.option.name in wanted
    ]
    return DescribeConfigsResult(
        error_code=ErrorCode.NONE,
        error_message="",  # Kafka answers so, not with null.
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
        configs=configs,
    )


class _Entry:
    """
    One option of a resource with its value.
    """

    __slots__ = ("option", "read_only", "synonyms", "value")

    def __init__(
        self, option: Option, value: str | None, synonyms: list[ConfigValue], *, read_only: bool
    ) -> None:
        self.option = option
        self.value = value
        self.synonyms = synonyms
        self.read_only = read_only


def _topic(name: str, context: Context) -> Iterable[_Entry]:
    validate_topic_name(name)
    if name not in context.topics:
        raise UnknownTopicOrPartition
    configs = context.topics.configs
    stored = configs.of(name)
    effective = configs.log_config(name)
    for option_name, option in LogConfig.options().items():
        if option.internal and option_name not in stored:
            continue
        text = option.format(getattr(effective, option_name.replace(".", "_")))
        synonyms = []
        if option.synonyms:
            synonyms = configs.brokers.values(option.synonyms[0])
        if option_name in stored:
            synonyms = [ConfigValue(option_name, text, ConfigSource.DYNAMIC_TOPIC), *synonyms]
        yield _Entry(option, text, synonyms, read_only=False)


def _broker(name: str, context: Context) -> Iterable[_Entry]:
    brokers = context.topics.configs.brokers
    if not name:
        return _cluster_default(brokers.of_all_brokers, context)
    if _broker_id(name) != context.node_id:
        raise InvalidRequest(
            f"Unexpected broker id, expected {context.node_id} or empty string, but received {name}"
        )
    return [
        _Entry(
            option,
            option.format(brokers.effective(option_name)),
            brokers.values(option_name),
            read_only=option.update is Update.READ_ONLY,
        )
        for option_name, option in BrokerConfig.options().items()
        if not option.internal or option_name in context.config.given
    ]


def _cluster_default(stored: Mapping[str, str], context: Context) -> Iterable[_Entry]:
    brokers = context.topics.configs.brokers
    for name, text in stored.items():
        option = BrokerConfig.options().get(name)
        if option is None:
            continue  # Of no effect here; kept for an Apache Kafka that knows it.
        synonyms = [
            value
            for value in brokers.values(name)
            if value.source is ConfigSource.DYNAMIC_DEFAULT_BROKER
        ]
        yield _Entry(option, text, synonyms, read_only=option.update is Update.READ_ONLY)


def _broker_id(name: str) -> int:
    try:
        return int(name)
    except ValueError:
        raise InvalidRequest(f"Broker id must be an integer, but it is: {name}") from None


_DESCRIBE: Final[Mapping[int, Callable[[str, Context], Iterable[_Entry]]]] = {
    ResourceType.TOPIC: _topic,
    ResourceType.BROKER: _broker,
}


def _result(entry: _Entry, request: DescribeConfigsRequest) -> DescribeConfigsResourceResult:
    option = entry.option
    is_secret = option.type is OptionType.PASSWORD
    source = entry.synonyms[0].source if entry.synonyms else ConfigSource.DEFAULT
    synonyms = [
        DescribeConfigsSynonym(
            name=synonym.name, value=None if is_secret else synonym.value, source=synonym.source
        )
        for synonym in entry.synonyms
    ]
    return DescribeConfigsResourceResult(
        name=option.name,
        value=None if is_secret else entry.value,
        read_only=entry.read_only,
        config_source=source,
        is_sensitive=is_secret,
        synonyms=synonyms if request.include_synonyms else [],
        config_type=option.type,
        documentation=option.doc if request.include_documentation else None,
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
