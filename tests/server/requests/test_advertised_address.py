"""
Warnings about advertised addresses that clients cannot reach.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from barnabas.protocol.messages.api_versions import ApiVersionsRequest
from barnabas.protocol.messages.metadata import MetadataRequest
from barnabas.server.config import Listener
from barnabas.server.requests.advertised_address import (
    MOST_HOSTS,
    PATIENCE_S,
    AdvertisedAddressCheck,
)
from barnabas.server.requests.client import Client
from barnabas.testing.disks.memory import MemoryFiles
from barnabas.testing.manual_clock import ManualClock
from tests.support.limits import stated
from tests.support.server import START_MS, TestBroker, batch, produce_request, running

ELSEWHERE = "PLAINTEXT://kafka.example:19092"
WARNING = "was given the address kafka.example:19092"


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(START_MS)


@pytest.fixture
async def broker(clock: ManualClock) -> AsyncIterator[TestBroker]:
    async with running(MemoryFiles(), clock, advertised_listeners=ELSEWHERE) as broker:
        yield broker


async def ask_where_it_is(broker: TestBroker) -> None:
    """
    Ask for the advertised address, as a client does before it connects there.
    """
    async with await broker.client("shop") as client:
        await client.ask(ApiVersionsRequest(), 0)
        await client.ask(MetadataRequest(topics=None), 9)


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [message for message in caplog.messages if WARNING in message]


async def test_warning_for_an_unreachable_advertised_address_names_client_and_option(
    broker: TestBroker, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    await ask_where_it_is(broker)
    await clock.pass_time(PATIENCE_S - 0.1)
    early = warnings(caplog)

    await clock.pass_time(0.1)

    (warning,) = warnings(caplog)
    assert [] == early
    assert "'shop' at 127.0.0.1:" in warning
    assert "advertised.listeners (KAFKA_ADVERTISED_LISTENERS)" in warning


async def test_host_is_warned_of_once(
    broker: TestBroker, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(3):
        await ask_where_it_is(broker)
        await clock.pass_time(2 * PATIENCE_S)

    assert 1 == len(warnings(caplog))


@pytest.mark.parametrize("works", ["before", "after"])
async def test_host_with_a_working_client_is_not_warned_of(
    broker: TestBroker, clock: ManualClock, caplog: pytest.LogCaptureFixture, works: str
) -> None:
    """
    The working client has a connection of its own, which requests no metadata.
    """
    async with await broker.client("shop") as client:
        if works == "after":
            await ask_where_it_is(broker)
        await client.ask(produce_request("orders", batch(b"x")), 9)
        if works == "before":
            await ask_where_it_is(broker)

    await clock.pass_time(2 * PATIENCE_S)

    assert [] == warnings(caplog)


async def test_client_connected_to_the_advertised_address_may_only_request_metadata(
    clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    """
    ``kcat -L`` does so on the machine of the broker.
    """
    async with running(MemoryFiles(), clock) as broker:
        await ask_where_it_is(broker)
        await clock.pass_time(2 * PATIENCE_S)

    assert [] == [message for message in caplog.messages if "was given the address" in message]


def test_number_of_remembered_hosts_is_limited(caplog: pytest.LogCaptureFixture) -> None:
    """
    An attacker may have many addresses: the oldest ones are forgotten without a warning.
    """
    clock = ManualClock(START_MS)
    check = AdvertisedAddressCheck(clock)
    listener = Listener("PLAINTEXT", "0.0.0.0", 9092, "kafka.example", 19092)

    for number in range(3 * MOST_HOSTS):
        check.given(Client(listener, f"10.0.{number >> 8}.{number & 255}"))
    clock.advance(PATIENCE_S)

    assert MOST_HOSTS == len(warnings(caplog)) == stated("advertised-hosts")
