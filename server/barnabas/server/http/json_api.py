"""
Operations that take JSON, or a query, and give JSON.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from barnabas.server.http.answers import (
    NO_CONTENT,
    PiecesResponse,
    TooLarge,
    encoded,
    json_response,
    no_method,
    no_path,
)
from barnabas.server.http.fields import BadFields, from_json, from_query
from barnabas.server.http.guard import Refused
from barnabas.storage.threads.turns import SHORT_TURNS

if TYPE_CHECKING:
    from starlette.types import Message, Receive, Scope, Send

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
    handle: Callable[..., Answer | Awaitable[Answer]]
    """
    Takes the context, a ``shape``, and the parts of the path by their names. A coroutine function
    runs on the event loop; any other may block.
    """
    shape: type = Nothing
    """A dataclass: the fields of the body of a POST and PUT, else of the query."""
    answers: Any = dict
    """The type of the content, for the description of the API."""
    waits: bool = False
    """Whether it waits for something to happen, and ends when its client leaves."""


class Place:
    """
    One of the answers in progress. An operation gives it back while it waits for something to
    happen, so that waiting takes none.
    """

    def __init__(self, places: asyncio.Semaphore | None) -> None:
        """
        Args:
            places: None if there is any number.
        """
        self._places = places
        self._is_taken = False

    async def take(self) -> None:
        if self._places is not None:
            await self._places.acquire()
            self._is_taken = True

    def give_back(self) -> None:
        if self._places is not None and self._is_taken:
            self._is_taken = False
            self._places.release()


_place: Final[ContextVar[Place | None]] = ContextVar("place", default=None)


@asynccontextmanager
async def waiting() -> AsyncIterator[None]:
    """
    Within the block the operation waits, and its answer is not in progress.
    """
    place = _place.get()
    if place is not None:
        place.give_back()
    yield
    if place is not None:
        await place.take()


class Limits(NamedTuple):
    """
    What the operations of an API may take.
    """

    most_bytes: int
    """Of an answer."""
    most_at_once: int
    """Answers in progress; others wait. Operations that wait are not counted meanwhile."""
    most_waiting: int
    """Operations that wait; more are refused."""


def make_app(
    operations: Sequence[Operation],
    context: object,
    *,
    executor: Executor,
    refusal: Callable[[Exception], Refused | None],
    limits: Limits | None = None,
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
    run = _Runner(context, executor, refusal, limits)
    routes = [Route("/", _constant(listed), methods=["GET"])]
    for path, methods in by_path.items():
        routes.append(Route(path, _Endpoint(methods, run), methods=list(methods)))
    return Starlette(routes=routes, exception_handlers={404: no_path, 405: no_method})


class _Runner:
    """
    Runs operations, those that may block on an executor.
    """

    def __init__(
        self,
        context: object,
        executor: Executor,
        refusal: Callable[[Exception], Refused | None],
        limits: Limits | None,
    ) -> None:
        self._context = context
        self._executor = executor
        self._refusal = refusal
        self.limits = limits
        self._places = None if limits is None else asyncio.Semaphore(limits.most_at_once)
        self.waiting = 0

    def place(self) -> Place:
        """
        A place among the answers in progress, not taken yet.
        """
        return Place(self._places)

    async def __call__(
        self, operation: Operation, read: Callable[[], object], path: Mapping[str, str]
    ) -> Response:
        """
        The answer of an operation, or why there is none.

        Args:
            read: returns the fields.
        """
        loop = asyncio.get_running_loop()
        try:
            if iscoroutinefunction(operation.handle):
                answer = await operation.handle(self._context, read(), **path)
                return await loop.run_in_executor(self._executor, self._response, answer)
            return await loop.run_in_executor(
                self._executor,
                lambda: self._response(operation.handle(self._context, read(), **path)),
            )
        except Exception as error:
            refused = self._refused(error, operation)
            return json_response({"error": refused.sentence}, refused.status)

    def _response(self, answer: Any) -> Response:
        if self.limits is None or answer.status == NO_CONTENT:
            return json_response(answer.content, answer.status)
        with SHORT_TURNS:
            try:
                return PiecesResponse(
                    encoded(answer.content, self.limits.most_bytes), answer.status
                )
            except TooLarge:
                most = self.limits.most_bytes >> 20
                raise Refused(
                    400, f"the answer has more than {most} MiB: ask for less, as with limit"
                ) from None

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


class _Endpoint:
    """
    Answers the requests for one path.
    """

    def __init__(self, methods: Mapping[str, Operation], run: _Runner) -> None:
        self._methods = methods
        self._run = run

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        operation = self._methods.get(request.method) or self._methods["GET"]  # HEAD is a GET
        read = await _reader(operation, request)
        if operation.waits:
            await self._wait(operation, read, scope, receive, send)
            return
        place = self._run.place()
        await place.take()
        try:
            response = await self._run(operation, read, request.path_params)
            await response(scope, receive, send)
        finally:
            place.give_back()

    async def _wait(
        self,
        operation: Operation,
        read: Callable[[], object],
        scope: Scope,
        receive: Receive,
        send: Send,
    ) -> None:
        """
        Answer once something has happened, unless the client leaves before that.
        """
        run = self._run
        if run.limits is not None and run.waiting >= run.limits.most_waiting:
            busy = {"error": f"{run.waiting} requests wait already"}
            await json_response(busy, 503, {"retry-after": "1"})(scope, receive, send)
            return
        run.waiting += 1
        place = run.place()
        _place.set(place)
        try:
            await place.take()
            answering = asyncio.ensure_future(run(operation, read, scope["path_params"]))
            leaving = asyncio.ensure_future(_left(receive))
            try:
                await asyncio.wait({answering, leaving}, return_when=asyncio.FIRST_COMPLETED)
                if answering.done():
                    await answering.result()(scope, receive, send)
            finally:
                answering.cancel()
                leaving.cancel()
        finally:
            place.give_back()
            run.waiting -= 1


async def _reader(operation: Operation, request: Request) -> Callable[[], object]:
    if request.method in ("POST", "PUT"):
        body = await request.body()
        return lambda: from_json(operation.shape, body)
    query = list(request.query_params.multi_items())
    return lambda: from_query(operation.shape, query)


async def _left(receive: Receive) -> None:
    """
    Return once the client has left.
    """
    message: Message = {"type": ""}
    while message["type"] != "http.disconnect":
        message = await receive()


def _constant(content: object) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(_: Request) -> Response:
        return json_response(content, 200)

    return endpoint
