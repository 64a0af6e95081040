"""
PushTelemetry (72): a client sends metrics of its own (KIP-714).
"""

from __future__ import annotations

from typing import ClassVar
from uuid import UUID

from barnabas.protocol.apis import PUSH_TELEMETRY
from barnabas.protocol.codec.schema import Api, int8, int16, int32, message


@message
class PushTelemetryRequest:
    api: ClassVar[Api] = PUSH_TELEMETRY

    client_instance_id: UUID
    subscription_id: int32
    terminating: bool
    compression_type: int8
    metrics: bytes


@message
class PushTelemetryResponse:
    api: ClassVar[Api] = PUSH_TELEMETRY

    throttle_time_ms: int32 = 0
    error_code: int16
