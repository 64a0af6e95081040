"""
GetTelemetrySubscriptions (71): a client asks which of its metrics a broker wants (KIP-714).
"""

from __future__ import annotations

from typing import ClassVar
from uuid import UUID

from barnabas.protocol.apis import GET_TELEMETRY_SUBSCRIPTIONS
from barnabas.protocol.codec.schema import ZERO_UUID, Api, int8, int16, int32, message
from barnabas.protocol.structs import fresh


@message
class GetTelemetrySubscriptionsRequest:
    api: ClassVar[Api] = GET_TELEMETRY_SUBSCRIPTIONS

    client_instance_id: UUID


@message
class GetTelemetrySubscriptionsResponse:
    api: ClassVar[Api] = GET_TELEMETRY_SUBSCRIPTIONS

    throttle_time_ms: int32 = 0
    error_code: int16
    client_instance_id: UUID = ZERO_UUID
    subscription_id: int32 = 0
    accepted_compression_types: list[int8] = fresh(factory=list)
    push_interval_ms: int32 = 0
    telemetry_max_bytes: int32 = 0
    delta_temporality: bool = False
    requested_metrics: list[str] = fresh(factory=list)
