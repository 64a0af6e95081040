"""
The files of the page over HTTP.

They are a few hundred KiB, which are read once. A browser keeps them, and asks each time whether
they are still the same: so a page is never older than its broker.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import TYPE_CHECKING, Final, NamedTuple

from starlette.responses import Response

from barnabas.server.http.answers import json_response

if TYPE_CHECKING:
    from starlette.requests import Request

FOLDER: Final = "/page"
"""
The path of all files but the frame, which is at ``/``.
"""
FRAME: Final = "index.html"

POLICY: Final = "; ".join(
    (
        "default-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "object-src 'none'",
        # No text that a record or a name brings becomes a program or a document.
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    )
)
"""
The content security policy: nothing comes from another host, and nothing inline is run.
"""

_MEDIA_TYPES: Final = {
    ".css": "text/css",
    ".html": "text/html",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
}


class Asset(NamedTuple):
    """
    A file of the page.
    """

    body: bytes
    media_type: str
    etag: str


class Assets:
    """
    All files of the page, in memory.
    """

    def __init__(self) -> None:
        """
        Read them.
        """
        self._by_name = dict(_read(files(__package__).joinpath("static"), ""))

    @property
    def names(self) -> list[str]:
        """
        The paths of the files, below ``FOLDER``.
        """
        return sorted(self._by_name)

    def answer(self, name: str, request: Request) -> Response:
        """
        The file, or that the browser has it, or that there is none.
        """
        asset = self._by_name.get(name)
        if asset is None:
            sentence = f"there is no {request.url.path}: GET / lists all paths"
            return json_response({"error": sentence}, 404)
        headers = {
            "cache-control": "no-cache",
            "content-security-policy": POLICY,
            "cross-origin-opener-policy": "same-origin",
            "etag": asset.etag,
            "referrer-policy": "no-referrer",
            "vary": "accept",
        }
        if asset.etag in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        return Response(asset.body, headers=headers, media_type=asset.media_type)

    async def frame(self, request: Request) -> Response:
        """
        Answer a request for ``/`` of a browser.
        """
        return self.answer(FRAME, request)

    async def file(self, request: Request) -> Response:
        """
        Answer a request for a path below ``FOLDER``.
        """
        return self.answer(request.path_params["name"], request)


def wants_html(request: Request) -> bool:
    """
    Whether a browser asks, and not a program that reads JSON.
    """
    return "text/html" in request.headers.get("accept", "")


def _read(folder: Traversable, place: str) -> Iterator[tuple[str, Asset]]:
    for each in folder.iterdir():
        name = f"{place}{each.name}"
        suffix = f".{each.name.rpartition('.')[2]}"
        if each.is_dir():
            yield from _read(each, f"{name}/")
        elif suffix in _MEDIA_TYPES:
            body = each.read_bytes()
            etag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
            yield name, Asset(body, _MEDIA_TYPES[suffix], etag)
