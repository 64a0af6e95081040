"""
Requests about configs, and their answers, in few words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from barnabas.protocol.codec.schema import Message
from barnabas.protocol.messages.create_partitions import CreatePartitionsRequest
from barnabas.protocol.messages.delete_records import DeleteRecordsRequest
from barnabas.protocol.messages.describe_configs import DescribeConfigsRequest
from barnabas.protocol.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from tests.support.build import api_request, build

SET, DELETE, APPEND, SUBTRACT = range(4)
TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32

VERSIONS: Final[Mapping[int, int]] = {21: 2, 32: 4, 33: 2, 37: 3, 44: 1}
"""
The newest version of each request here.
"""


def change(
    resource_type: int, name: str, *changes: tuple[str, int, str | None], validate: bool = False
) -> IncrementalAlterConfigsRequest:
    return change_all((resource_type, name, changes), validate=validate)


def change_all(
    *resources: tuple[int, str, Sequence[tuple[str, int, str | None]]], validate: bool = False
) -> IncrementalAlterConfigsRequest:
    return build(
        IncrementalAlterConfigsRequest,
        resources=[
            {
                "resource_type": resource_type,
                "resource_name": name,
                "configs": [
                    {"name": option, "config_operation": what, "value": value}
                    for option, what, value in changes
                ],
            }
            for resource_type, name, changes in resources
        ],
        validate_only=validate,
    )


def replace(
    resource_type: int, name: str, *configs: tuple[str, str | None], validate: bool = False
) -> Message:
    return replace_all((resource_type, name, configs), validate=validate)


def replace_all(
    *resources: tuple[int, str, Sequence[tuple[str, str | None]]], validate: bool = False
) -> Message:
    wanted = [
        {
            "resource_type": resource_type,
            "resource_name": name,
            "configs": [{"name": option, "value": value} for option, value in configs],
        }
        for resource_type, name, configs in resources
    ]
    return api_request("alter_configs", resources=wanted, validate_only=validate)


def describe(resource_type: int, name: str, *options: str) -> DescribeConfigsRequest:
    """
    Describe options of one resource, with their synonyms.
    """
    return describe_all((resource_type, name, options), synonyms=True)


def describe_all(
    *resources: tuple[int, str, Sequence[str]], synonyms: bool = False
) -> DescribeConfigsRequest:
    wanted = [
        {
            "resource_type": resource_type,
            "resource_name": name,
            "configuration_keys": options or None,
        }
        for resource_type, name, options in resources
    ]
    return build(DescribeConfigsRequest, resources=wanted, include_synonyms=synonyms)


def grow(
    topic: str,
    count: int,
    assignments: Sequence[Sequence[int]] | None = None,
    *,
    validate: bool = False,
) -> CreatePartitionsRequest:
    """
    Give one topic more partitions.
    """
    given = None
    if assignments is not None:
        given = [{"broker_ids": brokers} for brokers in assignments]
    wanted = {"name": topic, "count": count, "assignments": given}
    return build(
        CreatePartitionsRequest, topics=[wanted], timeout_ms=10_000, validate_only=validate
    )


def trim(topic: str, *offsets: tuple[int, int]) -> DeleteRecordsRequest:
    """
    Delete the records of partitions below the given offsets.
    """
    partitions = [{"partition_index": p, "offset": o} for p, o in offsets]
    topics = [{"name": topic, "partitions": partitions}]
    return build(DeleteRecordsRequest, topics=topics, timeout_ms=10_000)


def told(answer: Any) -> Any:
    """
    The content of a response as plain values that can be compared; options in alphabetical order.
    """
    kind = type(answer).__name__
    if kind == "CreatePartitionsResponse":
        return [(r.name, r.error_code, r.error_message) for r in answer.results]
    if kind == "DeleteRecordsResponse":
        return {
            (topic.name, p.partition_index): (p.low_watermark, p.error_code)
            for topic in answer.topics
            for p in topic.partitions
        }
    if kind == "DescribeConfigsResponse":
        return [_described(result) for result in answer.results]
    return [(r.error_code, r.error_message) for r in answer.responses]


def _described(result: Any) -> Any:
    entries = {
        config.name: (
            config.value,
            config.read_only,
            config.config_source,
            config.is_sensitive,
            [(s.name, s.value, s.source) for s in config.synonyms],
            config.config_type,
        )
        for config in sorted(result.configs, key=lambda config: str(config.name))
    }
    return result.error_code, result.error_message, entries
