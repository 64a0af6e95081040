"""
DescribeClientQuotas (48): the quotas that match a filter (KIP-546).

* v1 is flexible.
"""

from __future__ import annotations

from typing import ClassVar

from barnabas.protocol.apis import DESCRIBE_CLIENT_QUOTAS
from barnabas.protocol.codec.schema import Api, float64, int8, int16, int32, message


@message
class ComponentData:
    entity_type: str
    match_type: int8
    match: str | None


@message
class DescribeClientQuotasRequest:
    api: ClassVar[Api] = DESCRIBE_CLIENT_QUOTAS

    components: list[ComponentData]
    strict: bool


@message
class EntityData:
    entity_type: str
    entity_name: str | None


@message
class ValueData:
    key: str
    value: float64


@message
class EntryData:
    entity: list[EntityData]
    values: list[ValueData]


@message
class DescribeClientQuotasResponse:
    api: ClassVar[Api] = DESCRIBE_CLIENT_QUOTAS

    throttle_time_ms: int32 = 0
    error_code: int16
    error_message: str | None = None
    entries: list[EntryData] | None
