"""
DescribeConfigs (32): the options of topics, brokers and other resources.

* v1 is the oldest still understood.
* v3 adds the type and documentation of options (KIP-569).
* v4 is flexible.
"""

from __future__ import annotations

from typing import ClassVar

from barnabas.protocol.apis import DESCRIBE_CONFIGS
from barnabas.protocol.codec.schema import Api, int8, int16, int32, message, since


@message
class DescribeConfigsResource:
    resource_type: int8
    resource_name: str
    configuration_keys: list[str] | None


@message
class DescribeConfigsRequest:
    api: ClassVar[Api] = DESCRIBE_CONFIGS

    resources: list[DescribeConfigsResource]
    include_synonyms: bool = False
    include_documentation: bool = since(3, default=False)


@message
class DescribeConfigsSynonym:
    name: str
    value: str | None
    source: int8


@message
class DescribeConfigsResourceResult:
    name: str
    value: str | None
    read_only: bool
    config_source: int8 = -1
    is_sensitive: bool
    synonyms: list[DescribeConfigsSynonym]
    config_type: int8 = since(3, default=0)
    documentation: str | None = since(3, default=None)


@message
class DescribeConfigsResult:
    error_code: int16
    error_message: str | None = None
    resource_type: int8
    resource_name: str
    configs: list[DescribeConfigsResourceResult]


@message
class DescribeConfigsResponse:
    api: ClassVar[Api] = DESCRIBE_CONFIGS

    throttle_time_ms: int32 = 0
    results: list[DescribeConfigsResult]
