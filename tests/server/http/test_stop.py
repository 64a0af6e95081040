from __future__ import annotations

import asyncio
import time

import pytest
from starlette.types import Receive, Scope, Send

from barnabas.server.http.address import Address
from barnabas.server.http.server import STOP_S, HttpServer
from tests.support.api_client import HTTP
from tests.support.http_client import exchange, get
from tests.support.server import running, until

SLOW_MACHINE_S = 3.0
REQUEST = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"


@pytest.mark.parametrize("path", ["tail", "partitions/0/records"])
async def test_stop_answers_requests_that_wait_for_records(path: str) -> None:
    async with running(**HTTP, barnabas_http_records="true") as broker:
        await broker.create("t")
        address = f"/api/v1/topics/t/{path}?wait_ms=30000"
        waiting = asyncio.create_task(get(broker.http_port, address))
        partition = broker.partitions.expect("t", 0)
        await until(lambda: partition._watches)
        await broker.stop()
    assert (await waiting).status == 200


async def test_stop_ends_requests_that_never_end(caplog: pytest.LogCaptureFixture) -> None:
    async def endless(_scope: Scope, _receive: Receive, _send: Send) -> None:
        await asyncio.Event().wait()

    server = HttpServer(endless, Address.parse("127.0.0.1:0"), option="barnabas.http.listener")
    await server.start()
    asking = asyncio.create_task(exchange(server.address.port, REQUEST))
    await until(lambda: server.connections)
    began = time.monotonic()
    await server.stop()
    assert time.monotonic() - began < STOP_S + SLOW_MACHINE_S
    assert await asking == b""
    assert caplog.text == ""
