"""
Operations that take JSON, or a query, and give JSON.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from barnabas.server.http.answers import NO_CONTENT, json_response, no_method, no_path
from barnabas.server.http.fields import BadFields, from_json, from_query
from barnabas.server.http.guard import Refused

logger = logging.getLogger(__name__)

CREATED: Final = 201


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
    return Starlette(routes=routes, exception_handlers={404: no_path, 405: no_method})


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
                return json_response(answer.content, answer.status)
            except Exception as error:
                refused = self._refused(error, operation)
                return json_response({"error": refused.sentence}, refused.status)

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
        return json_response(content, 200)

    return endpoint
