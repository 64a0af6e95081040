"""
GetTelemetrySubscriptions and PushTelemetry: clients are asked for no metrics, and those that they
send are dropped. Kafka does the same without a receiver of metrics (KIP-714).

ApiVersions lists neither. A client that asks nevertheless gets an answer.
"""

from __future__ import annotations

from typing import Final
from uuid import UUID

from barnabas.protocol.codec.schema import ZERO_UUID
from barnabas.protocol.errors import ErrorCode, InvalidRequest
from barnabas.protocol.messages.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)
from barnabas.protocol.messages.push_telemetry import (
    PushTelemetryRequest,
    PushTelemetryResponse,
)
from barnabas.server.requests.authorization import NOTHING
from barnabas.server.requests.context import RequestContext
from barnabas.server.requests.registry import handles
from barnabas.server.requests.telemetry import MAX_BYTES, PUSH_INTERVAL_S, TelemetrySession
from barnabas.storage.uuids import METADATA_TOPIC_ID, random_uuid

ZSTD, LZ4, GZIP, SNAPPY = 4, 3, 1, 2
_RESERVED: Final = (ZERO_UUID, METADATA_TOPIC_ID)


@handles(GetTelemetrySubscriptionsRequest, needs=NOTHING)
async def get_telemetry_subscriptions(
    request: GetTelemetrySubscriptionsRequest, context: RequestContext
) -> GetTelemetrySubscriptionsResponse:
    instance_id = request.client_instance_id
    session = _session(random_uuid() if instance_id == ZERO_UUID else instance_id, context)
    session.ask(context.broker.clock.monotonic())
    return GetTelemetrySubscriptionsResponse(
        error_code=ErrorCode.NONE,
        client_instance_id=session.instance_id,
        subscription_id=session.subscription_id,
        accepted_compression_types=[ZSTD, LZ4, GZIP, SNAPPY],
        push_interval_ms=PUSH_INTERVAL_S * 1000,
        telemetry_max_bytes=MAX_BYTES,
        delta_temporality=True,
    )


@handles(PushTelemetryRequest, needs=NOTHING)
async def push_telemetry(
    request: PushTelemetryRequest, context: RequestContext
) -> PushTelemetryResponse:
    if request.client_instance_id in _RESERVED:
        raise InvalidRequest
    _session(request.client_instance_id, context).push(
        request.subscription_id,
        request.compression_type,
        len(request.metrics),
        context.broker.clock.monotonic(),
        is_last=request.terminating,
    )
    return PushTelemetryResponse(error_code=ErrorCode.NONE)


def _session(instance_id: UUID, context: RequestContext) -> TelemetrySession:
    session = context.client.telemetry
    if session is None or session.instance_id != instance_id:
        session = context.client.telemetry = TelemetrySession(instance_id)
    return session
