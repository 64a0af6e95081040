"""
What a group answers in each of its states: one table, every request and every state.

``tests/interop/test_group_table.py`` puts the same table to a running broker.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from barnabas.protocol.codec.schema import Message
from barnabas.protocol.errors import ErrorCode
from tests.support.coordination import GROUP, Coordination
from tests.support.group_handlers import HandlerBroker
from tests.support.group_table import CELLS, TABLE, UNUSED, USED, code_of, set_up

DELAY = 3.0


class Handlers:
    """
    The handlers in this process, on a clock that is moved by hand.
    """

    def __init__(self) -> None:
        self.broker = HandlerBroker(
            {USED: 1, UNUSED: 1}, group_initial_rebalance_delay_ms=int(DELAY * 1000)
        )

    async def send(self, request: Message, version: int) -> asyncio.Future[Any]:
        return asyncio.ensure_future(self.broker.ask(request, version))

    async def answer(self, future: asyncio.Future[Any]) -> Any:
        for _ in range(5):
            await asyncio.sleep(0)
        return await future if future.done() else None

    async def pass_delay(self) -> None:
        for _ in range(5):
            await asyncio.sleep(0)
        # Somebody has joined meanwhile, so it waits twice.
        await self.broker.world.clock.pass_time(2 * DELAY)

    async def unload(self) -> None:
        state = self.broker.world.coordinator.state_of(GROUP)
        state.unloaded(self.broker.world.clock.now_ms())


@pytest_asyncio.fixture
async def peer() -> AsyncIterator[Handlers]:
    made = Handlers()
    yield made
    await made.broker.close()


@pytest.mark.parametrize(("request_name", "state", "expected"), CELLS)
async def test_group_answers_every_request_in_every_state_as_expected(
    peer: Handlers, request_name: str, state: str, expected: int | str
) -> None:
    scene = await set_up(peer, GROUP, state)

    assert expected == await code_of(peer, TABLE[request_name][0](scene))


def test_first_join_writes_the_group_even_if_it_is_refused() -> None:
    # As in Kafka.
    c = Coordination()

    assert ErrorCode.INCONSISTENT_GROUP_PROTOCOL == c.join(protocols=()).now.error_code

    assert 1 == len(c.log)
    assert c.group.is_empty


def test_join_with_an_unknown_member_id_creates_no_group() -> None:
    c = Coordination()

    c.join("elsewhere")

    assert [] == c.log
    assert c.state.groups.get(GROUP) is None


def test_pending_member_id_cannot_become_static() -> None:
    # Kafka fails with an unexpected exception.
    c = Coordination()
    member_id = c.join().now.member_id

    answer = c.join(member_id, instance_id="i").now

    assert ErrorCode.UNKNOWN_SERVER_ERROR == answer.error_code
