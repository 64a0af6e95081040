"""
Operations that take JSON, or a query, and give JSON.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from barnabas.server.http.fields import BadFields, from_json, from_query
from barnabas.server.http.guard import Refused

logger = logging.getLogger(__name__)

CREATED: Final = 201
NO_CONTENT: Final = 204


@dataclass(frozen=True, slots=True)
class Nothing:
    """
    The fields of an operation that has none.
    """


class Answer(NamedTuple):
    """
    What an operation answers.
    """

    content: Any
    status: int = 200


DONE: Final = Answer(None, NO_CONTENT)


class Operation(NamedTuple):
    """
    An entry of the table of an API.
    """

    method: str
    path: str
    says: str
    """What it answers, or does."""
    handle: Callable[..., Answer]
    """Takes the context, a ``shape``, and the parts of the path by their names. It may block."""
    shape: type = Nothing
    """A dataclass: the fields of the body of a POST and PUT, else of the query."""


def make_app(
    operations: Sequence[Operation],
    context: object,
    *,
    executor: Executor,
    refusal: Callable[[Exception], Refused | None],
) -> Starlette:
    """
    The application of a table.

    Args:
        context: what the operations work on.
        executor: where they run.
        refusal: the answer to an error of an operation, if it is the sender's to know.
    """
    by_path: dict[str, dict[str, Operation]] = {}
    for operation in operations:
        by_path.setdefault(operation.path, {})[operation.method] = operation
    listed = [
        {"method": operation.method, "path": operation.path, "says": operation.says}
        for operation in operations
    ]
    run = _Runner(context, executor, refusal)
    routes = [Route("/", _constant(listed), methods=["GET"])]
    for path, methods in by_path.items():
        routes.append(Route(path, _endpoint(methods, run), methods=list(methods)))
    return Starlette(routes=routes, exception_handlers={404: _no_path, 405: _no_method})


class _Runner:
    """
    Runs operations on an executor.
    """

    def __init__(
        self,
        context: object,
        executor: Executor,
        refusal: Callable[[Exception], Refused | None],
    ) -> None:
        self._context = context
        self._executor = executor
        self._refusal = refusal

    async def __call__(
        self, operation: Operation, request: Request, read: Callable[[], object]
    ) -> Response:
        loop = asyncio.get_running_loop()
        path = request.path_params

        def work() -> Response:
            try:
                answer = operation.handle(self._context, read(), **path)
                return _response(answer.content, answer.status)
            except Exception as error:
                refused = self._refused(error, operation)
                return _response({"error": refused.sentence}, refused.status)

        return await loop.run_in_executor(self._executor, work)

    def _refused(self, error: Exception, operation: Operation) -> Refused:
        if isinstance(error, Refused):
            return error
        if isinstance(error, BadFields):
            return Refused(400, str(error))
        refused = self._refusal(error)
        if refused is None:
            logger.error("%s %s fails", operation.method, operation.path, exc_info=error)
            refused = Refused(500, f"{type(error).__name__}: {error}")
        return refused


def _endpoint(
    methods: Mapping[str, Operation], run: _Runner
) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        operation = methods.get(request.method) or methods["GET"]  # HEAD is a GET
        if request.method in ("POST", "PUT"):
            body = await request.body()
            return await run(operation, request, lambda: from_json(operation.shape, body))
        query = list(request.query_params.multi_items())
        return await run(operation, request, lambda: from_query(operation.shape, query))

    return endpoint


def _constant(content: object) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(_: Request) -> Response:
        return _response(content, 200)

    return endpoint


async def _no_path(request: Request, _: Exception) -> Response:
    sentence = f"there is no {request.url.path}: GET / lists all paths"
    return _response({"error": sentence}, 404)


async def _no_method(request: Request, error: Exception) -> Response:
    headers = dict(error.headers or {}) if isinstance(error, HTTPException) else {}
    takes = headers.get("Allow", "").replace("HEAD, ", "").replace(", HEAD", "")
    sentence = f"{request.url.path} takes {takes}, not {request.method}"
    return _response({"error": sentence}, 405, headers)


def _response(content: object, status: int, headers: Mapping[str, str] | None = None) -> Response:
    if status == NO_CONTENT:
        return Response(status_code=status)
    # As ASCII: a text may have half a character, which UTF-8 cannot say.
    body = json.dumps(content) + "\n"
    return Response(body, status, headers, media_type="application/json")
