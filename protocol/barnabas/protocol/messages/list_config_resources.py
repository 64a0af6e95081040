"""
ListConfigResources (74): the resources that have options.

* v0 lists client metrics only (KIP-1000).
* v1 adds the types of resources (KIP-1142).
"""

from __future__ import annotations

from typing import ClassVar

from barnabas.protocol.apis import LIST_CONFIG_RESOURCES
from barnabas.protocol.codec.schema import Api, int8, int16, int32, message, since


@message
class ListConfigResourcesRequest:
    api: ClassVar[Api] = LIST_CONFIG_RESOURCES

    resource_types: list[int8] = since(1, default=[])


@message
class ConfigResource:
    resource_name: str
    resource_type: int8 = since(1, default=16)


@message
class ListConfigResourcesResponse:
    api: ClassVar[Api] = LIST_CONFIG_RESOURCES

    throttle_time_ms: int32 = 0
    error_code: int16
    config_resources: list[ConfigResource]
