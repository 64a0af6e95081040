from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import TypeAlias

import pytest

from barnabas.server.http import bounded
from barnabas.server.http.read_only import MOST_BYTES
from barnabas.server.http.server import MOST_HEADER_BYTES
from tests.support.http_client import exchange, get, parsed
from tests.support.limits import stated
from tests.support.server import TestBroker, running

HTTP = {"barnabas_http_listener": "0"}

pytestmark = pytest.mark.broker(**HTTP)
REQUEST = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n"
PATIENCE_S = 10.0
Streams: TypeAlias = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@asynccontextmanager
async def peers(port: int, number: int) -> AsyncIterator[list[Streams]]:
    """
    Connections that stay open until the end of the block, unless the server closes them.
    """
    found: list[Streams] = []
    try:
        for _ in range(number):
            found.append(await asyncio.open_connection("127.0.0.1", port))
        yield found
    finally:
        for _, writer in found:
            writer.close()


async def closes(reader: asyncio.StreamReader) -> bytes:
    try:
        return await asyncio.wait_for(reader.read(), PATIENCE_S)
    except ConnectionError:
        return b""


async def test_headers_must_arrive_within_a_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    However slowly they arrive, and however old the connection is.
    """
    monkeypatch.setattr(bounded, "REQUEST_S", 0.3)
    async with running(**HTTP) as broker, peers(broker.http_port, 3) as found:
        (silent, _), (dripping, drips), (later, kept) = found
        kept.write(REQUEST)
        await later.readuntil(b"}\n")

        async def drip() -> None:
            for number in range(len(REQUEST) - 4):
                for writer in (drips, kept):
                    writer.write(REQUEST[number : number + 1])
                await asyncio.sleep(0.05)

        task = asyncio.create_task(drip())
        said = [await closes(each) for each in (silent, dripping, later)]
        task.cancel()

    assert [b"", b"", b""] == said


async def test_pipelined_request_must_arrive_within_a_timeout(
    broker: TestBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounded, "REQUEST_S", 0.2)
    said = await asyncio.wait_for(exchange(broker.http_port, REQUEST + REQUEST[:20]), PATIENCE_S)

    assert 200 == parsed(said).status


async def test_idle_connection_is_kept_for_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bounded, "REQUEST_S", 0.1)
    async with running(**HTTP) as broker, peers(broker.http_port, 1) as ((reader, writer),):
        for _ in range(2):
            writer.write(REQUEST)
            assert b'{"status": "ok"}\n' in await reader.readuntil(b"}\n")
            await asyncio.sleep(0.3)


async def test_response_must_be_read_within_a_timeout(
    broker: TestBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounded, "ANSWER_S", 0.3)
    monkeypatch.setattr("barnabas.server.http.metrics.endpoint.MOST_SCRAPES", 1)
    for number in range(4):
        await broker.create(f"{number}-{'x' * 200}", 2000)
    with socket.create_connection(("127.0.0.1", broker.http_port)) as slow:
        slow.sendall(REQUEST.replace(b"/healthz", b"/metrics"))
        async with asyncio.timeout(PATIENCE_S):
            while (  # noqa: ASYNC110  # it tells nobody
                busy := await get(broker.http_port, "/metrics")
            ).status == 200:
                await asyncio.sleep(0.001)
            while (  # noqa: ASYNC110  # the same
                await get(broker.http_port, "/metrics")
            ).status == 503:
                await asyncio.sleep(0.05)
        slow.settimeout(PATIENCE_S)
        size = 0
        with suppress(ConnectionError):
            while data := slow.recv(1 << 20):
                size += len(data)

    assert 503 == busy.status
    # The rest, which the system had not taken, was thrown away.
    assert 0 < size < 8000 * 4 * 200


async def test_connection_beyond_the_limit_replaces_the_most_idle_one() -> None:
    """
    The health check is always answered.
    """
    most = int(stated("http-connections"))
    async with running(**HTTP) as broker, peers(broker.http_port, most) as sitting:
        # The first one has just been answered, and is not the quietest any more.
        sitting[0][1].write(REQUEST)
        await sitting[0][0].readuntil(b"}\n")
        health = await get(broker.http_port, "/healthz")
        gone = await closes(sitting[1][0])
        answered = []
        for reader, writer in (sitting[0], sitting[2]):
            writer.write(REQUEST)
            answered.append(await reader.readuntil(b"}\n"))

    assert 200 == health.status
    assert b"" == gone
    assert all(b"200 OK" in answer for answer in answered)


async def test_many_connections_are_not_all_kept() -> None:
    most = int(stated("http-connections"))
    async with running(**HTTP) as broker, peers(broker.http_port, 3 * most):
        assert 200 == (await get(broker.http_port, "/healthz")).status
        assert broker.http is not None
        assert most >= broker.http.server.connections


HEAD = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\nx: "


async def test_header_size_is_limited(broker: TestBroker) -> None:
    assert stated("http-header") == MOST_HEADER_BYTES == MOST_BYTES
    port = broker.http_port
    most = await exchange(port, HEAD + b"y" * (MOST_BYTES - len(HEAD) - 4) + b"\r\n\r\n")
    at_once = await exchange(port, HEAD + b"y" * MOST_BYTES + b"\r\n\r\n")
    path = await exchange(port, HEAD.replace(b"healthz", b"z" * MOST_BYTES) + b"\r\n\r\n")
    async with peers(port, 1) as ((reader, writer),):
        writer.write(HEAD + b"y" * MOST_BYTES)
        in_pieces = await closes(reader)

    assert [200, 431, 431, 400] == [
        parsed(each).status for each in (most, at_once, path, in_pieces)
    ]
