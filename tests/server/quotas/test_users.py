from __future__ import annotations

import asyncio
from typing import Final

import pytest

from barnabas.protocol.messages.api_versions import ApiVersionsRequest
from barnabas.protocol.messages.heartbeat import HeartbeatRequest
from tests.support.quotas import set_quotas
from tests.support.sasl_client import SaslClient
from tests.support.server import TestBroker

HEARTBEAT: Final = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
LOGIN_MODULE: Final = "org.apache.kafka.common.security.plain.PlainLoginModule"

pytestmark = pytest.mark.broker(
    listeners="PLAINTEXT://127.0.0.1:0,SECURE://127.0.0.1:0",
    sasl_enabled_mechanisms="PLAIN",
    **{
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SECURE:SASL_PLAINTEXT",
        "listener.name.secure.plain.sasl.jaas.config": (
            f'{LOGIN_MODULE} required user_alice="a" user_bob="b";'
        ),
    },
)


def waits_of(port: int, user: str) -> list[int]:
    """
    The throttle times of a client before and after it authenticates.
    """
    with SaslClient(port) as client:
        told = [client.ask(ApiVersionsRequest(), 2).throttle_time_ms]
        client.log_in(user, user[0])
        told.append(client.ask(HEARTBEAT, 3).throttle_time_ms)
        return told


@pytest.mark.parametrize(
    ("entity", "alice", "bob"),
    [
        ({"user": "alice"}, 1000, 0),
        ({"user": None}, 1000, 1000),
        ({"user": "ANONYMOUS"}, 0, 0),
    ],
    ids=["of-one", "default", "of-nobody"],
)
async def test_quota_applies_to_the_authenticated_user(
    broker: TestBroker, entity: dict[str, str | None], alice: int, bob: int
) -> None:
    await set_quotas(broker, entity, request_percentage=1e-6)
    port = broker.listeners[1].port

    for user, told in (("alice", alice), ("bob", bob)):
        assert [0, told] == await asyncio.to_thread(waits_of, port, user)
