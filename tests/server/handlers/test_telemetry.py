"""
GetTelemetrySubscriptions and PushTelemetry are answered, although ApiVersions does not list them
(KIP-714). The codes are those of Apache Kafka 4.3.1 without a receiver of metrics.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Final
from uuid import UUID

import pytest

from barnabas.protocol import apis
from barnabas.protocol.codec.schema import ZERO_UUID
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.api_versions import ApiVersionsRequest
from barnabas.protocol.messages.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)
from barnabas.protocol.messages.push_telemetry import PushTelemetryRequest
from barnabas.testing.manual_clock import ManualClock
from tests.support.config_requests import METRICS, SET, change
from tests.support.server import TestBroker
from tests.support.wire_client import WireClient

E = ErrorCode
MIB: Final = 1024 * 1024
INTERVAL_S: Final = 300


async def subscriptions(client: WireClient, instance_id: UUID = ZERO_UUID) -> Any:
    return await client.ask(GetTelemetrySubscriptionsRequest(client_instance_id=instance_id), 0)


async def push(
    client: WireClient,
    instance_id: UUID,
    subscription_id: int,
    *,
    is_last: bool = False,
    compression: int = 0,
    metrics: bytes = b"",
) -> int:
    request = PushTelemetryRequest(
        client_instance_id=instance_id,
        subscription_id=subscription_id,
        terminating=is_last,
        compression_type=compression,
        metrics=metrics,
    )
    return int((await client.ask(request, 0)).error_code)


async def test_client_gets_an_id_and_is_asked_for_no_metrics(client: WireClient) -> None:
    first = await subscriptions(client)
    second = await subscriptions(client)

    assert ZERO_UUID != first.client_instance_id != second.client_instance_id
    assert (
        GetTelemetrySubscriptionsResponse(
            error_code=E.NONE,
            client_instance_id=first.client_instance_id,
            subscription_id=first.subscription_id,
            accepted_compression_types=[4, 3, 1, 2],
            push_interval_ms=300_000,
            telemetry_max_bytes=MIB,
            delta_temporality=True,
            requested_metrics=[],
        )
        == first
    )


async def test_client_keeps_its_id(client: WireClient) -> None:
    mine = UUID(int=77)

    assert mine == (await subscriptions(client, mine)).client_instance_id


async def test_neither_api_is_listed(client: WireClient) -> None:
    listed = await client.ask(
        ApiVersionsRequest(client_software_name="t", client_software_version="1"), 3
    )

    keys = {each.api_key for each in listed.api_keys}
    assert apis.DESCRIBE_TOPIC_PARTITIONS.key in keys
    assert not keys & {apis.GET_TELEMETRY_SUBSCRIPTIONS.key, apis.PUSH_TELEMETRY.key}


@pytest.mark.parametrize("instance_id", [ZERO_UUID, UUID(int=1)])
async def test_metrics_of_a_reserved_id_are_refused(client: WireClient, instance_id: UUID) -> None:
    assert E.INVALID_REQUEST == await push(client, instance_id, 0)


async def test_metrics_are_accepted_once_in_an_interval(
    client: WireClient, broker: TestBroker
) -> None:
    told = await subscriptions(client)
    send = partial(push, client, told.client_instance_id, told.subscription_id)
    codes = [await send(), await send()]
    clock = broker.clock
    assert isinstance(clock, ManualClock)
    clock.advance(INTERVAL_S)
    codes.append(await send(metrics=b"m" * MIB))

    assert [E.NONE, E.THROTTLING_QUOTA_EXCEEDED, E.NONE] == codes


@pytest.mark.parametrize(
    ("options", "code", "again"),
    [
        ({"compression": 9}, E.UNSUPPORTED_COMPRESSION_TYPE, E.NONE),
        ({"compression": -1}, E.UNSUPPORTED_COMPRESSION_TYPE, E.NONE),
        ({"metrics": b"m" * (MIB + 1)}, E.TELEMETRY_TOO_LARGE, E.THROTTLING_QUOTA_EXCEEDED),
        ({"compression": 4}, E.NONE, E.THROTTLING_QUOTA_EXCEEDED),
    ],
)
async def test_client_whose_metrics_are_refused_may_ask_again(
    client: WireClient, options: dict[str, Any], code: ErrorCode, again: ErrorCode
) -> None:
    told = await subscriptions(client)

    assert code == await push(client, told.client_instance_id, told.subscription_id, **options)
    assert again == (await subscriptions(client, told.client_instance_id)).error_code


async def test_subscription_must_be_the_last_one(client: WireClient) -> None:
    told = await subscriptions(client)
    mine = told.client_instance_id

    assert E.UNKNOWN_SUBSCRIPTION_ID == await push(client, mine, told.subscription_id ^ 1)
    assert E.NONE == (await subscriptions(client, mine)).error_code
    assert E.THROTTLING_QUOTA_EXCEEDED == (await subscriptions(client, mine)).error_code


async def test_nothing_is_accepted_after_the_last_metrics(client: WireClient) -> None:
    told = await subscriptions(client)
    send = partial(push, client, told.client_instance_id, told.subscription_id)

    assert E.NONE == await send()
    assert E.NONE == await send(is_last=True)
    assert E.INVALID_REQUEST == await send()
    assert E.INVALID_REQUEST == await send(is_last=True)


async def test_metrics_are_dropped_unread(client: WireClient) -> None:
    told = await subscriptions(client)
    send = partial(push, client, told.client_instance_id, told.subscription_id)

    assert E.NONE == await send(compression=4, metrics=b"no stream of zstd")


async def test_client_metrics_configs_ask_for_nothing(client: WireClient) -> None:
    changed = await client.ask(change(METRICS, "all", ("metrics", SET, "*")), 1)
    assert 0 == changed.responses[0].error_code

    assert [] == (await subscriptions(client)).requested_metrics


async def test_unknown_client_must_ask_first(client: WireClient) -> None:
    mine = UUID(int=77)

    assert E.UNKNOWN_SUBSCRIPTION_ID == await push(client, mine, 0)
