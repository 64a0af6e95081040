from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, MutableMapping
from typing import Any

import pytest

from barnabas.server.http import guard as module
from barnabas.server.http.guard import MOST_BODIES, Guard

MIB = 1 << 20
JSON = [(b"host", b"localhost"), (b"content-type", b"application/json; charset=utf-8")]


class Application:
    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self.may_answer = asyncio.Event()
        self.may_answer.set()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        message = await receive()
        assert not message["more_body"]
        self.bodies.append(message["body"])
        await self.may_answer.wait()
        await send({"type": "http.response.start", "status": 200, "headers": []})


async def post(
    guard: Guard, parts: Iterable[bytes] = (b"",), *, headers: Any = JSON, forever: bool = False
) -> tuple[int, str]:
    sent: list[MutableMapping[str, Any]] = []
    coming = iter([*parts, None])
    following = next(coming)

    async def receive() -> dict[str, Any]:
        nonlocal following
        if following is None:
            if forever:
                await asyncio.Event().wait()
            return {"type": "http.disconnect"}
        part, following = following, next(coming)
        more = forever or following is not None
        return {"type": "http.request", "body": part, "more_body": more}

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "POST", "path": "/", "headers": headers}
    await guard(scope, receive, send)
    if len(sent) == 1:
        return sent[0]["status"], ""
    assert (b"connection", b"close") in sent[0]["headers"]
    return sent[0]["status"], json.loads(sent[1]["body"])["error"]


async def test_application_receives_whole_bodies() -> None:
    app = Application()

    assert (200, "") == await post(Guard(app), [b"{", b"}"])

    assert [b"{}"] == app.bodies


@pytest.mark.parametrize("length", [[], [(b"content-length", b"1")]])
async def test_body_of_unknown_length_is_limited(length: list[Any]) -> None:
    app = Application()
    part = bytes(MIB)

    at_most = await post(Guard(app), [part] * 64, headers=JSON + length)
    more = await post(Guard(app), [part] * 64 + [b"x"], headers=JSON + length)

    assert (200, 413) == (at_most[0], more[0])
    assert "a body has at most 64 MiB" == more[1]
    assert [64 * MIB] == [len(body) for body in app.bodies]


async def test_body_that_does_not_arrive_times_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BODY_S", 0.01)

    status, _ = await post(Guard(Application()), [b"{"], forever=True)

    assert 408 == status


async def test_number_of_bodies_in_memory_is_limited() -> None:
    app = Application()
    app.may_answer.clear()
    guard = Guard(app)

    requests = [asyncio.create_task(post(guard)) for _ in range(MOST_BODIES + 3)]
    await asyncio.sleep(0.01)
    during = len(app.bodies)
    app.may_answer.set()
    statuses = {status for status, _ in await asyncio.gather(*requests)}

    assert (MOST_BODIES, {200}) == (during, statuses)
    assert len(requests) == len(app.bodies)
