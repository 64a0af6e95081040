"""
AlterClientQuotas (49): sets and removes quotas (KIP-546).

* v1 is flexible.
"""

from __future__ import annotations

from typing import ClassVar

from barnabas.protocol.apis import ALTER_CLIENT_QUOTAS
from barnabas.protocol.codec.schema import Api, float64, int16, int32, message


@message
class EntityData:
    entity_type: str
    entity_name: str | None


@message
class OpData:
    key: str
    value: float64
    remove: bool


@message
class RequestEntryData:
    entity: list[EntityData]
    ops: list[OpData]


@message
class AlterClientQuotasRequest:
    api: ClassVar[Api] = ALTER_CLIENT_QUOTAS

    entries: list[RequestEntryData]
    validate_only: bool


@message
class ResponseEntryData:
    error_code: int16
    error_message: str | None = None
    entity: list[EntityData]


@message
class AlterClientQuotasResponse:
    api: ClassVar[Api] = ALTER_CLIENT_QUOTAS

    throttle_time_ms: int32 = 0
    entries: list[ResponseEntryData]
