"""
The table of what groups answer, put to a running broker.

``BARNABAS_INTEROP_BROKER=apache`` puts it to Apache Kafka, which is where it comes from.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from barnabas.protocol.codec.schema import Message
from barnabas.protocol.messages.find_coordinator import FindCoordinatorRequest
from barnabas.protocol.messages.list_groups import ListGroupsRequest
from tests.interop.conftest import new_broker
from tests.support.broker_process import BrokerProcess
from tests.support.group_table import CELLS, TABLE, UNUSED, USED, code_of, set_up
from tests.support.topic_requests import create_request
from tests.support.wire_client import WireClient

DELAY = 6.0
PATIENCE = 2.0
"""
Seconds after which an answer that has not come is one that waits for other members, if others that
were asked for meanwhile have come.
"""


class Wire:
    """
    A broker behind a socket. Every request has a connection of its own: some are not answered
    before others are sent.
    """

    def __init__(self, port: int) -> None:
        self.port = port
        self.tasks: set[asyncio.Future[Any]] = set()

    async def send(self, request: Message, version: int) -> asyncio.Future[Any]:
        client = await WireClient.open(self.port)
        task = asyncio.ensure_future(self._ask(client, request, version))
        self.tasks.add(task)
        return task

    async def _ask(self, client: WireClient, request: Message, version: int) -> Any:
        try:
            return await client.ask(request, version)
        finally:
            await client.close()

    async def answer(self, future: asyncio.Future[Any]) -> Any:
        await asyncio.wait({future}, timeout=PATIENCE)
        if not future.done():
            # Of a broker that is busy, what is asked later is answered later.
            await (await self.send(ListGroupsRequest(), 4))
        return future.result() if future.done() else None

    async def pass_delay(self) -> None:
        # Somebody has joined meanwhile, so it waits twice.
        await asyncio.sleep(2 * DELAY)

    async def unload(self) -> None:
        raise AssertionError("nobody can ask a broker for that")

    async def close(self) -> None:
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)


@pytest.fixture
def patient_broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    """
    A broker whose first rounds last long enough for two members on a busy machine.
    """
    with new_broker(
        tmp_path,
        group__initial__rebalance__delay__ms=str(int(DELAY * 1000)),
        offsets__topic__num__partitions="5",
    ) as broker:
        yield broker


async def test_group_responses_in_every_state_equal_kafkas(patient_broker: BrokerProcess) -> None:
    """
    Every request in every state, each in a group of its own, all at once.
    """
    peer = Wire(patient_broker.port)
    creation = await peer.send(create_request(**{USED: 1, UNUSED: 1}), 7)
    assert [0, 0] == [topic.error_code for topic in (await creation).topics]
    find = FindCoordinatorRequest(key_type=0, coordinator_keys=["any"])
    for _ in range(50):
        if not (await (await peer.send(find, 4))).coordinators[0].error_code:
            break
        await asyncio.sleep(0.2)  # Kafka is still making the topic.

    async def cell(name: str, state: str) -> int | str:
        scene = await set_up(peer, f"{name} / {state}", state)
        return await code_of(peer, TABLE[name][0](scene))

    expected = {(name, state): code for name, state, code in CELLS if state != "Dead"}
    answers = await asyncio.gather(*(cell(*key) for key in expected))
    await peer.close()

    assert expected == dict(zip(expected, answers, strict=True))
