"""
A match of ListTransactions ends when the client that asked for it has left, or when it has taken
long and others wait.
"""

from __future__ import annotations

import asyncio
from time import perf_counter, thread_time
from typing import Any, Final

import pytest

from barnabas.protocol.errors import RequestTimedOut
from barnabas.protocol.messages.init_producer_id import InitProducerIdRequest
from barnabas.server.scheduling import turns
from barnabas.server.scheduling.turns import PLACES
from tests.support.build import api_request
from tests.support.server import TestBroker, running
from tests.support.transactional_client import prepare

LONG_ID: Final = "a" * 32_000
SLOW: Final = "(.?){1000}" * 5
"""It matches ``LONG_ID`` for minutes."""
OPTIONS: Final = {"transaction_state_log_num_partitions": "1"}
LEAST_SHARE: Final = 0.08
"""The share of the time that a match takes at least while it runs, of a fifth."""


async def busy_share(seconds: float) -> float:
    """
    The share of the event loop's thread in the processor time, while the loop has nothing else.
    """
    began, before = perf_counter(), thread_time()
    await asyncio.sleep(seconds)
    return (thread_time() - before) / (perf_counter() - began)


async def prepared(broker: TestBroker) -> None:
    await prepare(broker, 1)
    request = InitProducerIdRequest(transactional_id=LONG_ID, transaction_timeout_ms=60_000)
    async with await broker.client() as client:
        assert 0 == (await client.ask(request, 2)).error_code


def asked(pattern: str) -> Any:
    return api_request(
        "list_transactions",
        state_filters=[],
        producer_id_filters=[],
        transactional_id_pattern=pattern,
    )


async def test_match_ends_when_its_client_leaves() -> None:
    async with running(**OPTIONS) as broker:
        await prepared(broker)
        client = await broker.client()
        waiting = asyncio.create_task(client.ask(asked(SLOW), 2))
        await asyncio.sleep(0.1)
        meanwhile = await busy_share(0.5)
        waiting.cancel()
        await client.close()
        await asyncio.sleep(0.1)
        afterwards = await busy_share(0.5)

    assert meanwhile > LEAST_SHARE
    assert afterwards < LEAST_SHARE / 2


async def test_match_that_has_taken_long_ends_for_one_that_waits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(turns, "PLACE_S", 0.02)
    # It takes longer than the first turn.
    short = "(.?){100}" + "a*"
    async with running(**OPTIONS) as broker:
        await prepared(broker)
        clients = [await broker.client() for _ in range(PLACES + 1)]
        *slow, other = clients
        waiting = [asyncio.create_task(client.ask(asked(SLOW), 2)) for client in slow]
        await asyncio.sleep(0.1)
        answer = await asyncio.wait_for(other.ask(asked(short), 2), 60)
        ended, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        for task in waiting:
            task.cancel()
        for client in clients:
            await client.close()

    assert [LONG_ID] == [each.transactional_id for each in answer.transaction_states]
    assert [RequestTimedOut.code] == [task.result().error_code for task in ended]
