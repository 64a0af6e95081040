"""
A client of HTTP on the event loop of a test.
"""

from __future__ import annotations

import asyncio
import gzip
import json
from typing import Any, NamedTuple


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def text(self) -> str:
        is_zipped = self.headers.get("content-encoding") == "gzip"
        return (gzip.decompress(self.body) if is_zipped else self.body).decode()

    @property
    def json(self) -> Any:
        return json.loads(self.text)


async def get(port: int, path: str, method: str = "GET", **headers: str) -> Answer:
    """
    Ask once, on a connection of its own; headers have ``_`` for ``-``.
    """
    given = {"host": "localhost", "connection": "close"} | {
        name.replace("_", "-"): value for name, value in headers.items()
    }
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in given.items())]
    return parsed(await exchange(port, "\r\n".join([*lines, "", ""]).encode("latin-1")))


async def exchange(port: int, request: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(request)
        return await reader.read()
    except ConnectionError:
        return b""
    finally:
        writer.close()


def parsed(answer: bytes) -> Answer:
    """
    A response with a length, or one that ends with its connection.
    """
    head, _, body = answer.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = {}
    for line in lines:
        name, _, value = line.partition(":")
        headers[name.lower()] = value.strip()
    return Answer(int(first.split()[1]), headers, body)
