from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import Any, Final

import pytest

from barnabas.protocol.messages.api_versions import ApiVersionsRequest
from barnabas.testing.disks.memory import MemoryFiles
from barnabas.testing.manual_clock import ManualClock
from tests.support.config_requests import BROKER, SET, VERSIONS, change, told
from tests.support.quotas import clock_of, set_quotas
from tests.support.server import START_MS, TestBroker, running, until
from tests.support.wire_client import WireClient

ASKED: Final = ApiVersionsRequest()
HERE: Final = {"ip": "127.0.0.1"}
EVERYWHERE: Final = {"ip": None}


class Crowd(AsyncExitStack):
    def __init__(self, broker: TestBroker, listener: int = 0) -> None:
        super().__init__()
        self._broker = broker
        self._port = broker.listeners[listener].port
        self._answers: list[asyncio.Task[Any]] = []

    async def come(self, count: int) -> None:
        for _ in range(count):
            accepted = self._broker.metrics.value("connections_accepted")
            client = await self.enter_async_context(await WireClient.open(self._port))
            await until(
                lambda: self._broker.metrics.value("connections_accepted") > accepted  # noqa: B023
            )
            self._answers.append(asyncio.ensure_future(client.ask(ASKED, 0)))

    async def served(self) -> int:
        for _ in range(20):
            await asyncio.sleep(0.001)
        return sum(each.done() and each.exception() is None for each in self._answers)

    async def closed(self) -> int:
        await self.served()
        return sum(each.done() and each.exception() is not None for each in self._answers)

    async def __aexit__(self, *error: Any) -> bool | None:
        for each in self._answers:
            each.cancel()
        await asyncio.gather(*self._answers, return_exceptions=True)
        return await super().__aexit__(*error)


def rates_of(broker: TestBroker) -> Any:
    assert broker.connections is not None
    return broker.connections._rates


async def test_connections_are_not_counted_without_a_rate_limit(broker: TestBroker) -> None:
    async with Crowd(broker) as crowd:
        await crowd.come(30)

        assert 30 == await crowd.served()
    assert None is rates_of(broker)


@pytest.mark.broker(max_connection_creation_rate="1")
async def test_connections_over_the_rate_wait_and_none_is_refused(broker: TestBroker) -> None:
    """
    The windows have room for ten; each further connection waits for a second.
    """
    async with Crowd(broker) as crowd:
        await crowd.come(13)
        assert 10 == await crowd.served()

        await clock_of(broker).pass_time(1.01)
        assert 11 == await crowd.served()
        await clock_of(broker).pass_time(3.0)

        assert 13 == await crowd.served()
    assert 0 < broker.metrics.value("connections_throttled", quota="connection_creation")


@pytest.mark.broker(max_connection_creation_rate="1")
async def test_connection_that_waited_too_long_leaves_no_gap(broker: TestBroker) -> None:
    async with Crowd(broker) as patient:
        await patient.come(10)
        async with Crowd(broker) as hasty:
            await hasty.come(2)
            await patient.come(1)
        await patient.served()

        await clock_of(broker).pass_time(5.0)

        assert 11 == await patient.served()
    await until(lambda: not len(rates_of(broker)))


@pytest.mark.broker(max_connection_creation_rate="1", socket_listen_backlog_size="3")
async def test_number_of_waiting_connections_is_limited(broker: TestBroker) -> None:
    async with Crowd(broker) as crowd:
        await crowd.come(20)

        assert 3 == len(rates_of(broker))
        assert 7 == await crowd.closed()
        assert broker.connections is not None
        assert {"127.0.0.1": 10} == broker.connections._by_address


@pytest.mark.broker(max_connection_creation_rate="1")
async def test_waiting_connections_are_closed_when_the_broker_stops(broker: TestBroker) -> None:
    async with Crowd(broker) as crowd:
        await crowd.come(12)
        async with asyncio.timeout(10):
            await broker.stop()

        assert 2 == await crowd.closed()


@pytest.mark.broker(
    listeners="PLAINTEXT://127.0.0.1:0,OTHER://127.0.0.1:0",
    listener_security_protocol_map="PLAINTEXT:PLAINTEXT,OTHER:PLAINTEXT",
    **{"listener.name.other.max.connection.creation.rate": "1"},
)
async def test_listener_has_its_own_connection_rate(broker: TestBroker) -> None:
    async with Crowd(broker, 0) as free, Crowd(broker, 1) as limited:
        await limited.come(12)
        await free.come(12)

        assert 10 == await limited.served()
        assert 12 == await free.served()


async def test_connection_rate_can_be_changed_while_the_broker_runs(broker: TestBroker) -> None:
    async with await broker.client() as client:
        for name, resource in (
            ("max.connection.creation.rate", ""),
            ("listener.name.plaintext.max.connection.creation.rate", "1"),
        ):
            request = change(BROKER, resource, (name, SET, "1"))
            assert 0 == told(await client.ask(request, VERSIONS[request.api.key]))[0][0]
    await until(lambda: rates_of(broker) is not None)
    async with Crowd(broker) as crowd:
        await crowd.come(12)

        assert 10 == await crowd.served()


@pytest.mark.parametrize("value", ["0", "-1", "x", "2147483648"])
async def test_connection_rate_of_a_listener_must_be_positive(
    broker: TestBroker, value: str
) -> None:
    name = "listener.name.plaintext.max.connection.creation.rate"
    request = change(BROKER, "1", (name, SET, value))
    async with await broker.client() as client:
        assert 42 == told(await client.ask(request, VERSIONS[request.api.key]))[0][0]


async def test_connection_rates_survive_a_restart() -> None:
    files, clock = MemoryFiles(), ManualClock(START_MS)
    name = "listener.name.plaintext.max.connection.creation.rate"
    request = change(BROKER, "1", (name, SET, "1"))
    async with running(files, clock) as broker, await broker.client() as client:
        assert 0 == told(await client.ask(request, VERSIONS[request.api.key]))[0][0]
        await set_quotas(broker, HERE, connection_creation_rate=100)

    async with running(files, clock) as broker, Crowd(broker) as crowd:
        await crowd.come(12)
        assert 10 == await crowd.served()


# Addresses


@pytest.mark.parametrize("entity", [HERE, EVERYWHERE], ids=["itself", "default"])
async def test_connection_of_an_address_over_its_quota_is_closed_after_a_delay(
    broker: TestBroker, entity: dict[str, str | None]
) -> None:
    failed: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: failed.append(context))
    await set_quotas(broker, entity, connection_creation_rate=1)
    async with Crowd(broker) as crowd:
        await crowd.come(12)
        assert 10 == await crowd.served()
        assert 0 == await crowd.closed()

        await clock_of(broker).pass_time(1.01)

        assert 2 == await crowd.closed()
        assert 10 == await crowd.served()
    assert 2 == broker.metrics.value("connections_throttled")
    assert [] == failed


async def test_connections_closed_for_the_address_quota_do_not_count(broker: TestBroker) -> None:
    await set_quotas(broker, HERE, connection_creation_rate=1)
    async with Crowd(broker) as crowd:
        await crowd.come(10)
        await crowd.come(30)
        await clock_of(broker).pass_time(12.0)
        assert 30 == await crowd.closed()

        await crowd.come(5)

        assert 15 == await crowd.served()
        assert broker.connections is not None
        assert {"127.0.0.1": 15} == broker.connections._by_address


@pytest.mark.broker(max_connection_creation_rate="2")
async def test_connections_closed_for_the_address_quota_do_not_count_for_the_broker_rate(
    broker: TestBroker,
) -> None:
    await set_quotas(broker, HERE, connection_creation_rate=1)
    async with Crowd(broker) as crowd:
        await crowd.come(40)

        assert 30 == broker.metrics.value("connections_throttled")
        assert 0 == broker.metrics.value("connections_throttled", quota="connection_creation")


async def test_quota_of_another_address_does_not_apply(broker: TestBroker) -> None:
    await set_quotas(broker, {"ip": "10.0.0.1"}, connection_creation_rate=1)
    async with Crowd(broker) as crowd:
        await crowd.come(20)
        assert 20 == await crowd.served()


async def test_ip_quota_entity_may_be_a_host_name(broker: TestBroker) -> None:
    await set_quotas(broker, {"ip": "localhost"}, connection_creation_rate=1)
    await until(lambda: rates_of(broker) is not None)
    async with Crowd(broker) as crowd:
        await crowd.come(12)
        assert await crowd.served() in (10, 12), "localhost may be ::1 only"


async def test_removed_quota_frees_the_address(broker: TestBroker) -> None:
    await set_quotas(broker, HERE, connection_creation_rate=1)
    async with Crowd(broker) as crowd:
        await crowd.come(11)
        await set_quotas_from_inside(broker)
        await crowd.come(10)

        assert 20 == await crowd.served()


async def set_quotas_from_inside(broker: TestBroker) -> None:
    """
    Set the quota without a connection, since all new connections are closed.
    """
    assert broker.connections is not None
    broker.connections.limit_address_rate("127.0.0.1", None)
