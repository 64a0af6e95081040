"""
Hostile HTTP requests neither stop the broker nor use up its memory.

Ten thousand requests, the same ones in each run: absurd paths, methods, hosts, headers and bodies,
truncated, concatenated, and random bytes. ``BARNABAS_HOSTILE_HTTP`` sets another number.
"""

from __future__ import annotations

import asyncio
import os
import random
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

import pytest

from tests.support.broker_process import Barnabas, answers, free_port, resident_bytes
from tests.support.http_client import get, parsed
from tests.support.limits import stated

REQUESTS: Final = int(os.environ.get("BARNABAS_HOSTILE_HTTP", "10000"))
AT_ONCE: Final = 80
"""
Fewer than there may be connections, so that most requests are answered.
"""
PATIENCE_S: Final = 2.0
SLOW_ONE_IN: Final = 100
PATHS: Final = (
    "/metrics",
    "/healthz",
    "/readyz",
    "/",
    "/api/v1/cluster",
    "/api/v1/topics?sort=bytes_in",
    "/api/v1/topics/%2e%2e/partitions/0",
    "/api/v1/topics/t/partitions/" + "9" * 5000,
    "/api/v1/topics/t/partitions/0/records?wait_ms=30000&last=0",
    "/api/v1/topics/__consumer_offsets/tail?positions=" + "0:0," * 2000,
    "/api/v1/group?id=%00%ff%fe" + "%f0%9f%98%80" * 100,
    "/api/v1/topics?start=99999999999999999999&limit=-1",
    "/api/v1/topics?" + "&".join(f"x{number}=1" for number in range(1500)),
    "/api/v1/openapi.json",
    "/api/v1",
    "/../../../../etc/passwd",
    "/%2e%2e/%2e%2e/etc/passwd",
    "/metrics/../../data",
    "/metrics%00.json",
    "//metrics",
    "/metrics?name[]=" + "a" * 300,
    "/%ff%fe%fd",
    "/\\..\\..\\boot.ini",
    "http://127.0.0.1/metrics",
    "http://evil.example/metrics",
    "*",
    "/" + "a/" * 2000,
    "/" + "b" * 20_000,
)
METHODS: Final = (
    *("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "TRACE", "CONNECT", "PATCH"),
    *("PRI", "get", "G" * 5000, "GE\tT", ""),
)
HOSTS: Final = (
    *("localhost", "127.0.0.1:80", "[::1]", "evil.example", "localhost.evil.example", ""),
    *("localhost:99999999999", "[", "]", "a" * 10_000, "127.0.0.1@evil", "\xff\xfe", "loc alhost"),
)
HEADERS: Final = (
    "content-length: 5",
    "content-length: -1",
    "content-length: 99999999999999999999",
    "content-length: 5\r\ncontent-length: 6",
    "transfer-encoding: chunked",
    "transfer-encoding: chunked\r\ncontent-length: 4",
    "transfer-encoding: gzip, chunked",
    "accept: application/openmetrics-text; version=99.0.0; escaping=nothing",
    "accept: application/openmetrics-text; version=x.y",
    "accept: " + "text/plain;q=0.1," * 500,
    "accept-encoding: gzip",
    "accept-encoding: gzip;q=x, deflate, br, *",
    "connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-key: eA==",
    "connection: upgrade, http2-settings\r\nupgrade: h2c",
    "connection: keep-alive, close, \xff",
    "expect: 100-continue",
    "range: bytes=0-0,-1",
    "x-forwarded-for: 1.1.1.1\r\nx-forwarded-host: localhost",
    "cookie: " + "a=b; " * 1000,
    "x: " + "y" * 30_000,
    "\r\n".join(f"x-{number}: y" for number in range(1500)),
    "no colon",
    ": no name",
    " folded: line",
    "x: \x00\x01\x7f",
    "nam\xe9: value",
)
NOISE: Final = (
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",  # a client of TLS
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00",
    b"\x00\x00\x00\x10\x00\x12\x00\x00\x00\x00\x00\x01\xff\xff",  # a client of Kafka
    b"\r\n" * 5000,
    b"GET /metrics\r\n\r\n",
    b"GET /metrics HTTP/1.1 HTTP/1.1\r\n\r\n",
    bytes(range(256)) * 40,
)


def hostile_requests(number: int) -> Iterator[bytes]:
    chance = random.Random(7)
    kinds: tuple[Callable[[random.Random], bytes], ...] = (
        _request,
        _request,
        _request,
        _cut,
        _glued,
        _noise,
    )
    for _ in range(number):
        yield chance.choice(kinds)(chance)


def _request(chance: random.Random) -> bytes:
    usual = chance.random() < 0.5
    method = "GET" if usual else chance.choice(METHODS)
    host = "localhost" if usual else chance.choice(HOSTS)
    headers = chance.sample(HEADERS, chance.randrange(3))
    version = chance.choice(("HTTP/1.1", "HTTP/1.1", "HTTP/1.0", "HTTP/0.9", "HTTP/", ""))
    lines = [f"{method} {chance.choice(PATHS)} {version}", f"host: {host}", *headers, "", ""]
    body = chance.choice((b"", b"", b"{}", b"5\r\nhello\r\n", b"ffffffffffff\r\n"))
    return "\r\n".join(lines).encode("latin-1") + body


def _cut(chance: random.Random) -> bytes:
    whole = _request(chance)
    return whole[: chance.randrange(len(whole))]


def _glued(chance: random.Random) -> bytes:
    return b"".join(_request(chance) for _ in range(chance.randrange(2, 8)))


def _noise(chance: random.Random) -> bytes:
    return chance.choice((*NOISE, chance.randbytes(chance.randrange(1, 4000))))


async def send(port: int, request: bytes, *, is_slow: bool) -> int:
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return 0
    try:
        if is_slow:
            for at in range(0, min(len(request), 20)):
                writer.write(request[at : at + 1])
                await asyncio.sleep(0.05)
        writer.write(request)
        said = b""
        async with asyncio.timeout(0.05):
            while len(said) < 1 << 16 and (data := await reader.read(1 << 16)):
                said += data
        return parsed(said).status if said else 0
    except TimeoutError:
        return parsed(said).status if said else 0
    except (OSError, RuntimeError, ValueError, IndexError):  # it was closed, or is no answer
        return 0
    finally:
        writer.transport.abort()
        with suppress(OSError):
            await writer.wait_closed()


async def send_all(port: int) -> Counter[int]:
    statuses: Counter[int] = Counter()
    requests = enumerate(hostile_requests(REQUESTS))

    async def worker() -> None:
        for number, request in requests:
            statuses[await send(port, request, is_slow=number % SLOW_ONE_IN == 0)] += 1

    await asyncio.gather(*(worker() for _ in range(AT_ONCE)))
    return statuses


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[tuple[Barnabas, int]]:
    port = free_port()
    with Barnabas(tmp_path / "broker", settings={"barnabas.http.listener": str(port)}) as broker:
        yield broker, port
        assert 0 == broker.stop()


async def test_hostile_http_requests_do_not_disturb_the_broker(
    broker: tuple[Barnabas, int],
) -> None:
    running, port = broker
    for _ in range(3):
        await get(port, "/metrics", accept_encoding="gzip")
        await get(port, "/api/v1/cluster")  # the first request loads the API
    before = resident_bytes(running.pid)
    lines = len(running.log_text().splitlines())

    sending = asyncio.create_task(send_all(port))
    served = 0
    while not sending.done():
        assert await asyncio.to_thread(answers, running.port, PATIENCE_S)
        served += 1
        await asyncio.sleep(0.1)
    statuses = await sending
    after = resident_bytes(running.pid)

    assert served > 10
    assert 200 == (await get(port, "/healthz")).status
    assert 200 == (await get(port, "/metrics")).status
    assert {200, 400, 403, 404, 405, 413, 431} <= statuses.keys()
    assert 500 not in statuses
    assert statuses.keys() <= {0, 100, 200, 307, 400, 403, 404, 405, 413, 431, 503}
    assert after - before <= stated("http-hostile")
    assert lines == len(running.log_text().splitlines()), running.log_text()[-2000:]
