"""
Answers in JSON.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

NO_CONTENT: Final = 204
JSON: Final = "application/json"
SEND_BYTES: Final = 64 << 10
"""
An answer is sent in pieces of about that size: each is copied on its way.
"""
ENTRIES_AT_ONCE: Final = 64
"""
So many entries of a list are encoded in one call, during which no other thread runs.
"""


class TooLarge(Exception):
    """
    An answer has more bytes than it may have.
    """


def json_response(
    content: object, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """
    An answer with *content*, unless its *status* allows none.
    """
    if status == NO_CONTENT:
        return Response(status_code=status)
    # As ASCII: a text may have half a character, which UTF-8 cannot say.
    body = json.dumps(content) + "\n"
    return Response(body, status, headers, media_type=JSON)


class PiecesResponse(Response):
    """
    An answer that is sent in pieces, between which the event loop does other work.
    """

    def __init__(self, text: Sequence[bytes], status: int = 200, media_type: str = JSON) -> None:
        super().__init__(status_code=status, media_type=media_type)
        self.headers["content-length"] = str(sum(map(len, text)))
        self._text = text

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        start = {"type": "http.response.start", "status": self.status_code}
        await send({**start, "headers": self.raw_headers})
        await send_in_pieces(send, () if scope["method"] == "HEAD" else self._text)


async def send_in_pieces(send: Send, text: Iterable[bytes]) -> None:
    """
    Send the body of an answer whose beginning is sent.
    """
    for piece in _pieces(text):
        await send({"type": "http.response.body", "body": piece, "more_body": True})
        await asyncio.sleep(0)  # a peer that reads as fast as that does not let others wait
    await send({"type": "http.response.body", "body": b""})


def _pieces(text: Iterable[bytes]) -> Iterator[bytes]:
    """
    The same *text* in pieces of about ``SEND_BYTES``.
    """
    waiting: list[bytes] = []
    size = 0
    for chunk in text:
        waiting.append(chunk)
        size += len(chunk)
        if size >= SEND_BYTES:
            yield b"".join(waiting)
            waiting, size = [], 0
    yield b"".join(waiting)


def encoded(content: object, most_bytes: int) -> list[bytes]:
    """
    *content* as JSON, encoded in many short calls.

    Raises:
        TooLarge: it has more than *most_bytes*.
    """
    found = []
    size = 0
    for text in _encoded(content):
        found.append(text.encode())
        size += len(text)
        if size > most_bytes:
            raise TooLarge
    return [*found, b"\n"]


def _encoded(content: object) -> Iterator[str]:
    if isinstance(content, Mapping):
        between = "{"
        for name, value in content.items():
            yield f"{between}{json.dumps(name)}: "
            yield from _encoded(value)
            between = ", "
        yield "{}" if between == "{" else "}"
    elif isinstance(content, list) and len(content) > ENTRIES_AT_ONCE:
        between = "["
        for at in range(0, len(content), ENTRIES_AT_ONCE):
            yield between + json.dumps(content[at : at + ENTRIES_AT_ONCE])[1:-1]
            between = ", "
        yield "]"
    else:
        yield json.dumps(content)


async def no_path(request: Request, _: Exception) -> Response:
    """
    The answer where nothing has the path of *request*.
    """
    sentence = f"there is no {request.url.path}: GET / lists all paths"
    return json_response({"error": sentence}, 404)


async def no_method(request: Request, error: Exception) -> Response:
    """
    The answer where the path of *request* takes other methods.
    """
    headers = dict(error.headers or {}) if isinstance(error, HTTPException) else {}
    takes = headers.get("Allow", "").replace("HEAD, ", "").replace(", HEAD", "")
    sentence = f"{request.url.path} takes {takes}, not {request.method}"
    return json_response({"error": sentence}, 405, headers)
