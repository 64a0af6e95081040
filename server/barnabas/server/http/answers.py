"""
Answers in JSON.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

NO_CONTENT: Final = 204


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
    return Response(body, status, headers, media_type="application/json")


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
