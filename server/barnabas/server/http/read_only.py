"""
The guard of an application that changes nothing.

It takes requests without a body only, and of known hosts: see ``guard``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from barnabas.server.http.guard import KnownHosts, Refused, answer_refusal

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

MOST_BYTES: Final = 16 << 10
"""
The most bytes of a path, its query and the headers. uvicorn bounds those that come in several
pieces only.
"""
METHODS: Final = ("GET", "HEAD")
_CACHE_CONTROL: Final = b"cache-control"
HEADERS: Final = ((_CACHE_CONTROL, b"no-store"), (b"x-content-type-options", b"nosniff"))
"""
Every answer has these: it is of this moment, unless it says otherwise, and is what it says it is.
"""
_CLOSE: Final = (b"connection", b"close")


class ReadOnly:
    """
    Hands requests on to an application that read.
    """

    def __init__(self, app: ASGIApp, hosts: Iterable[str] = ()) -> None:
        """
        Args:
            hosts: names under which clients may ask, beside localhost and addresses.
        """
        self._app = app
        self._hosts = KnownHosts(hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        assert scope["type"] == "http", scope["type"]

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                given = list(message["headers"])
                says_itself = any(name == _CACHE_CONTROL for name, _ in given)
                message["headers"] = [*given, *(HEADERS[1:] if says_itself else HEADERS)]
            await send(message)

        try:
            self._check(scope)
        except Refused as refused:
            # A body that comes behind it is not read.
            more = (_CLOSE, (b"allow", b"GET, HEAD")) if refused.status == 405 else (_CLOSE,)
            await answer_refusal(answer, refused, more)
            return
        await self._app(scope, receive, answer)

    def _check(self, scope: Scope) -> None:
        """
        Raises:
            Refused: the request may change something, has a body, is for another host, or too long.
        """
        size = len(scope["raw_path"]) + len(scope["query_string"])
        if size + sum(len(name) + len(value) for name, value in scope["headers"]) > MOST_BYTES:
            raise Refused(431, f"a request has at most {MOST_BYTES >> 10} KiB")
        method = scope["method"]
        headers = {name.lower(): value.decode("latin-1") for name, value in scope["headers"]}
        self._hosts.check(headers.get(b"host", ""))
        if method not in METHODS:
            raise Refused(405, "this server answers GET and HEAD only: it changes nothing")
        if headers.get(b"content-length", "0") != "0" or b"transfer-encoding" in headers:
            raise Refused(413, "this server takes no requests with a body")
