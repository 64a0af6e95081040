"""
``max.connections`` of one listener (Kafka ``SocketServer.ConnectionQuotas``).
"""

from __future__ import annotations

import asyncio
import re
from typing import Any, Final

import pytest

from barnabas.server.config import BrokerConfig
from barnabas.storage.config.option_values import ConfigError
from tests.support.build import api_request
from tests.support.config_requests import BROKER, DELETE, SET, change
from tests.support.server import TestBroker, running
from tests.support.wire_client import WireClient

LIMIT: Final = "listener.name.a.max.connections"
OPTIONS: Final = {
    "listeners": "A://127.0.0.1:0,B://127.0.0.1:0",
    "listener_security_protocol_map": "A:PLAINTEXT,B:PLAINTEXT",
    "inter_broker_listener_name": "B",
}
ASKED: Final = api_request("describe_cluster", include_cluster_authorized_operations=False)
A_MOMENT: Final = 0.1


async def connected(broker: TestBroker, listener: int, count: int) -> list[WireClient]:
    port = broker.listeners[listener].port
    return [await WireClient.open(port, client_id="t") for _ in range(count)]


async def served(clients: list[WireClient]) -> list[bool]:
    """
    Which of the clients get an answer. Do not use the others again.
    """
    asking = [asyncio.create_task(client.ask(ASKED, 0)) for client in clients]
    await asyncio.wait(asking, timeout=A_MOMENT)
    done = [task.done() for task in asking]
    for task in asking:
        task.cancel()
    return done


async def closed(clients: list[WireClient]) -> None:
    for client in clients:
        await client.close()


async def test_listener_serves_no_more_connections_than_its_limit() -> None:
    async with running(**OPTIONS, listener_name_a_max_connections="2") as broker:
        limited = await connected(broker, 0, 4)
        free = await connected(broker, 1, 3)

        assert [True, True, False, False] == await served(limited)
        assert [True] * 3 == await served(free)
        await closed([*limited, *free])


async def test_held_connection_is_served_when_one_of_its_listener_leaves() -> None:
    async with running(**OPTIONS, listener_name_a_max_connections="1") as broker:
        first, second, third = await connected(broker, 0, 3)
        (other,) = await connected(broker, 1, 1)
        assert [True, True] == await served([first, other])

        await other.close()
        waiting = asyncio.create_task(second.ask(ASKED, 0))
        await asyncio.wait([waiting], timeout=A_MOMENT)
        was_served_early = waiting.done()
        await first.close()
        await asyncio.wait_for(waiting, 10)

        assert not was_served_early
        assert [False] == await served([third])
        await closed([second, third])


async def test_full_listener_holds_nobody_of_another_listener_up() -> None:
    async with running(
        **OPTIONS, listener_name_a_max_connections="1", max_connections="2"
    ) as broker:
        a, b = await connected(broker, 0, 1), await connected(broker, 1, 1)
        await served([*a, *b])
        (held_of_a,) = await connected(broker, 0, 1)
        (held_of_b,) = await connected(broker, 1, 1)
        waiting = [asyncio.create_task(each.ask(ASKED, 0)) for each in (held_of_a, held_of_b)]
        await asyncio.wait(waiting, timeout=A_MOMENT)
        before = [each.done() for each in waiting]

        await b[0].close()
        await asyncio.wait_for(waiting[1], 10)

        assert [False, False] == before
        assert not waiting[0].done()
        waiting[0].cancel()
        await closed([*a, held_of_a, held_of_b])


async def test_limit_of_a_listener_changes_while_the_broker_runs() -> None:
    async def alter(broker: TestBroker, *changes: tuple[str, int, str | None]) -> Any:
        async with await WireClient.open(broker.listeners[1].port, client_id="t") as client:
            answer = await client.ask(change(BROKER, "1", *changes), 1)
            return answer.responses[0].error_code

    async with running(**OPTIONS) as broker:
        assert 0 == await alter(broker, (LIMIT, SET, "1"))
        first, second = await connected(broker, 0, 2)
        assert [True] == await served([first])
        waiting = asyncio.create_task(second.ask(ASKED, 0))
        await asyncio.wait([waiting], timeout=A_MOMENT)
        was_served_early = waiting.done()

        assert 0 == await alter(broker, (LIMIT, DELETE, None))
        await asyncio.wait_for(waiting, 10)

        assert not was_served_early
        assert 42 == await alter(broker, (LIMIT, SET, "many"))
        await closed([first, second])


@pytest.mark.parametrize("text", ["many", "-1", "2147483648", ""])
def test_limit_of_a_listener_must_be_a_number(text: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(LIMIT)):
        BrokerConfig.parse(
            {name.replace("_", "."): value for name, value in OPTIONS.items() if "name" not in name}
            | {"listener.security.protocol.map": "A:PLAINTEXT,B:PLAINTEXT", LIMIT: text}
        )
