"""
Which requests an HTTP server takes.

A web page in a browser of this machine can send requests to the loopback interface as well. Two
rules keep it from controlling anything:

* Only known names may be in the header ``Host``: a page whose own name was made to stand for
  127.0.0.1 (DNS rebinding) sends that name.
* What changes something has the content type ``application/json``: a page of another origin may
  send that only after the server has agreed (CORS), and this one never does.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from ipaddress import ip_address
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

MOST_BODY_BYTES: Final = 64 << 20
MOST_BODIES: Final = 8
"""
So many requests are read and served at a time; others wait.
"""
BODY_S: Final = 30.0
"""
The seconds that a body may take to arrive.
"""

ALWAYS: Final = "localhost"
_WITH_BODY: Final = frozenset({"POST", "PUT", "PATCH"})


class Refused(Exception):
    """
    A request is not served; the sentence is for its sender.
    """

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status
        self.sentence = sentence


class KnownHosts:
    """
    The names that a header ``Host`` may have: localhost, addresses, and some others.
    """

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._names = frozenset(name.lower() for name in (ALWAYS, *names))

    def check(self, given: str) -> None:
        """
        See whether a request for the host *given* is for this server.

        Raises:
            Refused: it is not.
        """
        host = given.rpartition(":")[0] if given.rpartition(":")[2].isdecimal() else given
        try:
            # An address cannot be made to stand for another one, as a name can.
            ip_address(host.strip("[]"))
        except ValueError:
            if host.lower() not in self._names:
                raise Refused(
                    403,
                    f"this server does not answer for the host {given!r}: only for localhost,"
                    " addresses, and the names that it was given",
                ) from None


class Guard:
    """
    Hands requests on to an application, each with its whole body.
    """

    def __init__(self, app: ASGIApp, hosts: Iterable[str] = ()) -> None:
        """
        Args:
            hosts: names under which clients may ask, beside localhost and addresses.
        """
        self._app = app
        self._hosts = KnownHosts(hosts)
        self._turns = asyncio.Semaphore(MOST_BODIES)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        assert scope["type"] == "http", scope["type"]
        try:
            headers = {name.lower(): value.decode("latin-1") for name, value in scope["headers"]}
            self._check(scope["method"], headers)
            async with self._turns:
                body = await _body(receive)
                await self._app(scope, _Whole(body, receive), send)
        except Refused as refused:
            # What has not been read of the request cannot be told from the next one.
            await answer_refusal(send, refused, [(b"connection", b"close")])

    def _check(self, method: str, headers: dict[bytes, str]) -> None:
        self._hosts.check(headers.get(b"host", ""))
        content_type = headers.get(b"content-type", "").partition(";")[0].strip().lower()
        if method in _WITH_BODY and content_type != "application/json":
            raise Refused(
                415,
                f"a {method} needs the header Content-Type: application/json, also without a body",
            )
        length = headers.get(b"content-length", "")
        if length.isdecimal() and int(length) > MOST_BODY_BYTES:
            raise _too_large()


class _Whole:
    """
    Gives an application a body that has arrived.
    """

    def __init__(self, body: bytes, receive: Receive) -> None:
        self._body: bytes | None = body
        self._receive = receive

    async def __call__(self) -> Message:
        body, self._body = self._body, None
        if body is None:
            return await self._receive()
        return {"type": "http.request", "body": body, "more_body": False}


async def _body(receive: Receive) -> bytes:
    """
    The whole body.

    Raises:
        Refused: it is too large, or takes too long, or the client is gone.
    """
    parts: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(BODY_S):
            while True:
                message = await receive()
                if message["type"] != "http.request":
                    raise Refused(400, "the client has left")
                parts.append(message.get("body", b""))
                size += len(parts[-1])
                if size > MOST_BODY_BYTES:
                    raise _too_large()
                if not message.get("more_body", False):
                    return b"".join(parts)
    except TimeoutError:
        raise Refused(408, f"the body took longer than {BODY_S:.0f} s") from None


def _too_large() -> Refused:
    return Refused(413, f"a body has at most {MOST_BODY_BYTES >> 20} MiB")


async def answer_refusal(
    send: Send, refused: Refused, headers: Iterable[tuple[bytes, bytes]]
) -> None:
    """
    Answer that a request is not served, with some *headers*.
    """
    body = f"{json.dumps({'error': refused.sentence})}\n".encode()
    described = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    await send(
        {
            "type": "http.response.start",
            "status": refused.status,
            "headers": [*described, *headers],
        }
    )
    await send({"type": "http.response.body", "body": body})
