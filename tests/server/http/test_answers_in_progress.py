"""
Operations that wait take no place among the answers in progress, and need one for their answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import pytest

from barnabas.server.http.json_api import Answer, Limits, Nothing, Operation, make_app, waiting
from tests.support.server import until

LIMITS: Final = Limits(most_bytes=1 << 20, most_at_once=1, most_waiting=4)


class Stage:
    """
    Operations that end when the test lets them, and what they have done.
    """

    def __init__(self) -> None:
        self.done: list[str] = []
        self.begun = asyncio.Event()
        self.release = asyncio.Event()
        self.happened = asyncio.Event()


async def slow(stage: Stage, _: Nothing) -> Answer:
    stage.begun.set()
    await stage.release.wait()
    stage.done.append("slow")
    return Answer({})


async def poll(stage: Stage, _: Nothing) -> Answer:
    async with waiting():
        stage.begun.set()
        await stage.happened.wait()
    stage.done.append("poll")
    return Answer({})


@pytest.fixture
def executor() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(1) as executor:
        yield executor


class Caller:
    """
    Asks an application without a socket.
    """

    def __init__(self, stage: Stage, executor: ThreadPoolExecutor) -> None:
        operations = [
            Operation("GET", "/slow", "slow", slow),
            Operation("GET", "/poll", "poll", poll, waits=True),
        ]
        self._app = make_app(
            operations, stage, executor=executor, refusal=lambda _: None, limits=LIMITS
        )
        self.left = asyncio.Event()

    async def ask(self, path: str) -> int:
        """
        The status of the answer; 0 if there is none.
        """
        status = [0]
        asked = False

        async def receive() -> dict[str, Any]:
            nonlocal asked
            if not asked and path != "/poll":
                asked = True
                return {"type": "http.request", "body": b"", "more_body": False}
            await self.left.wait()
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            if message["type"] == "http.response.start":
                status[0] = message["status"]

        scope = {
            "type": "http",
            "method": "GET",
            "path": path,
            "root_path": "",
            "query_string": b"",
            "headers": [],
        }
        await self._app(scope, receive, send)
        return status[0]


async def test_waiting_operation_takes_no_place_until_it_answers(
    executor: ThreadPoolExecutor,
) -> None:
    stage = Stage()
    caller = Caller(stage, executor)
    polling = asyncio.create_task(caller.ask("/poll"))
    await stage.begun.wait()
    stage.begun.clear()
    answering = asyncio.create_task(caller.ask("/slow"))
    await stage.begun.wait()

    stage.happened.set()
    for _ in range(10):
        await asyncio.sleep(0)
    early = list(stage.done)
    stage.release.set()

    assert [200, 200] == [await answering, await polling]
    assert [] == early
    assert ["slow", "poll"] == stage.done


async def test_client_that_leaves_while_it_waits_keeps_no_place(
    executor: ThreadPoolExecutor,
) -> None:
    stage = Stage()
    caller = Caller(stage, executor)
    stage.release.set()
    polling = asyncio.create_task(caller.ask("/poll"))
    await stage.begun.wait()

    caller.left.set()

    assert 0 == await polling
    caller.left.clear()
    assert [200, 200] == [await caller.ask("/slow"), await caller.ask("/slow")]
    await until(lambda: ["slow", "slow"] == stage.done)
