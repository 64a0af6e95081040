"""
IncrementalAlterConfigs (44): changes some options of topics, brokers and other resources (KIP-339).

* v1 is flexible.
"""

from __future__ import annotations

from typing import ClassVar

from barnabas.protocol.apis import INCREMENTAL_ALTER_CONFIGS
from barnabas.protocol.codec.schema import Api, int8, int16, int32, message


@message
class AlterableConfig:
    name: str
    config_operation: int8
    value: str | None


@message
class AlterConfigsResource:
    resource_type: int8
    resource_name: str
    configs: list[AlterableConfig]


@message
class IncrementalAlterConfigsRequest:
    api: ClassVar[Api] = INCREMENTAL_ALTER_CONFIGS

    resources: list[AlterConfigsResource]
    validate_only: bool


@message
class AlterConfigsResourceResponse:
    error_code: int16
    error_message: str | None = None
    resource_type: int8
    resource_name: str


@message
class IncrementalAlterConfigsResponse:
    api: ClassVar[Api] = INCREMENTAL_ALTER_CONFIGS

    throttle_time_ms: int32 = 0
    responses: list[AlterConfigsResourceResponse]
