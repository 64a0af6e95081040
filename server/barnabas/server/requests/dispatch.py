"""
From the bytes of a request to the bytes of its answer.

::

    frame -> header -> registration of key and version -> decode -> handler -> encode -> parts
                                                      -> shortcut ----------------------> parts
          -> as before -----------------------> question -------------------------------> parts
          -> many entries: decode in steps -> handler -> encode in steps, in turns -----> parts

What goes wrong on the way is answered as Kafka does: what cannot be understood closes the
connection, what a handler refuses is an error code in that API's own slots, and what it did not
expect is UNKNOWN_SERVER_ERROR there, with a traceback in the log.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

import logging
from collections.abc import Awaitable, Generator, Mapping
from struct import Struct
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast

from barnabas.protocol import apis
from barnabas.protocol.codec.codec import (
    decode_from,
    decode_in_steps,
    encode_in_steps,
    encode_parts,
)
from barnabas.protocol.codec.primitives import ENTRIES_AT_ONCE
from barnabas.protocol.codec.schema import Message
from barnabas.protocol.errors import (
    DecodeError,
    ErrorCode,
    KafkaError,
    TooManyEntries,
    without_frames,
)
from barnabas.protocol.headers import RequestHeader, decode_request_header
from barnabas.server.requests.context import CloseConnection, Context, Parts
from barnabas.server.requests.delayed import Delayed, Outcome, Unanswered
from barnabas.server.requests.error_response import error_response, unsupported_version
from barnabas.server.requests.registry import Answer, Registration
from barnabas.server.requests.release import released
from barnabas.server.requests.repeated_requests import RepeatedRequests
from barnabas.server.scheduling.turns import Steps, Work

if TYPE_CHECKING:
    from asyncio import Future

    from barnabas.protocol.codec.primitives import Buffer
    from barnabas.server.metrics import Counter
    from barnabas.server.network.connection import Connection
    from barnabas.server.network.sender import Part

logger = logging.getLogger(__name__)

T = TypeVar("T")
Later: TypeAlias = "tuple[Unanswered, Delayed | Awaitable[Outcome | Delayed]]"
Served: TypeAlias = "list[Part] | Delayed | Awaitable[Message | Delayed | None] | None"

SIZE_BYTES = 4
_HEAD = Struct(">ii")  # size, correlation id
_CORRELATION_ID = Struct(">i")
_TAGGED_HEAD = Struct(">iix")  # and no tagged fields
API_VERSIONS = apis.API_VERSIONS.key
REQUEST_WEIGHT = 4
"""
How many times the size of its frame a request counts that waits for its answer: its objects are
larger than its bytes.
"""
FULL_REQUEST_WEIGHT = 32
"""
The same for a request that is little else than entries of arrays.
"""
MOST_ENTRIES = 1 << 18
"""
A request whose arrays have more entries, all together, closes its connection.
"""


class Exchange:
    """
    A request with all that its answer takes to be written.
    """

    __slots__ = (
        "_context",
        "_correlation_id",
        "_frame_bytes",
        "held_bytes",
        "is_large",
        "request",
        "route",
    )

    def __init__(
        self, context: Context, route: Route, correlation_id: int, frame_bytes: int
    ) -> None:
        self.held_bytes = REQUEST_WEIGHT * frame_bytes
        self.is_large = False
        self.route = route
        self.request: Any = None
        self._context = context
        self._correlation_id = correlation_id
        self._frame_bytes = frame_bytes

    def handle(self) -> Answer:
        """
        What the handler does with the request.
        """
        return self.route.registration.handler(self.request, self._context)

    def forget(self) -> None:
        """
        Let go of what is not needed for the answer: the effects of the request are done.
        """
        forget = self.route.registration.forget
        if forget is not None:
            forget(self.request)
            self.held_bytes = 0

    def start(self, steps: Steps[T], *, is_large: bool = False) -> Work[T]:
        """
        Let *steps* for this request take their turns.

        Args:
            is_large: the request itself is what makes them many.
        """
        return self._context.turns.start(steps, self._frame_bytes if is_large else 0)

    def parts(self, outcome: Outcome) -> list[Part] | Future[list[Part]]:
        """
        The bytes of the answer; later, if it is large.

        Raises:
            CloseConnection: the outcome is that.
        """
        if outcome is None:
            return []
        if isinstance(outcome, list):
            return outcome
        if self.is_large or isinstance(outcome, Exception):
            return self._in_steps(outcome)
        try:
            return frame_of(outcome, self.route, self._correlation_id)
        except TooManyEntries:
            return self._in_steps(outcome)
        except ValueError as error:
            return self.parts(error)

    def _in_steps(self, outcome: Message | Exception) -> list[Part] | Future[list[Part]]:
        work = self.start(self.parts_in_steps([outcome]))
        return work.result() if work.is_done else work.future()

    def parts_in_steps(self, box: list[Message | Exception]) -> Steps[list[Part]]:
        """
        The bytes of a large answer. Its objects are freed, and those of the request.

        Args:
            box: has the outcome, and nobody else does: see ``released``.

        Raises:
            CloseConnection: the outcome is that.
        """
        parts = yield from self._encoded(box)
        box.append(self.request)
        self.request = None
        yield from released(box)
        return parts

    def _encoded(self, box: list[Message | Exception]) -> Steps[list[Part]]:
        route = self.route
        outcome = box[0]
        if isinstance(outcome, Exception):
            box[0] = response = yield from self._error_response(outcome)
        else:
            response = outcome
        try:
            try:
                parts = encode_parts(response, route.version, ENTRIES_AT_ONCE)
            except TooManyEntries:
                parts = yield from encode_in_steps(response, route.version)
        except ValueError as error:
            box[0] = error
            return (yield from self._encoded(box))
        return with_head(parts, route, self._correlation_id)

    def _error_response(self, error: Exception) -> Steps[Message]:
        if isinstance(error, CloseConnection):
            raise without_frames(error)
        registration = self.route.registration
        if isinstance(error, KafkaError):
            code, message = error.code, str(error) or None
        else:
            code, message = ErrorCode.UNKNOWN_SERVER_ERROR, None
            logger.error(
                "%s v%d of %s failed",
                registration.name,
                self._context.version,
                self._context.connection,
                exc_info=error,
            )
        without_frames(error)
        self._context.metrics.count_error(registration.name, code)
        return error_response(registration, self.request, self.route.version, code, message)


class Route:
    """
    What there is to know of one version of one API.
    """

    __slots__ = ("has_tags", "read_question", "registration", "requests", "shortcut", "version")

    def __init__(self, registration: Registration, version: int, requests: Counter) -> None:
        self.registration = registration
        self.version = version
        self.requests = requests
        self.shortcut = registration.shortcut
        self.read_question = registration.read_question
        # ApiVersions is answered with the classic header in every version: whoever reads it does
        # not know yet what the broker understands (KIP-511).
        api = registration.request.api
        self.has_tags = api.is_flexible(version) and api.key != API_VERSIONS


class Dispatcher:
    """
    Calls the handlers.
    """

    def __init__(self, handlers: Mapping[int, Registration], parts: Parts) -> None:
        self._parts = parts
        self._handlers = handlers
        self._routes: dict[tuple[int, int], Route] = {}
        self._repeated = RepeatedRequests()

    def __call__(self, frame: memoryview, connection: Connection) -> list[Part] | Later | None:
        """
        Handle one request.

        Returns:
            The bytes of the answer; or what is going to give it; or None where there is none.

        Raises:
            CloseConnection: the request is not one that can be answered.
        """
        answer = self._repeated.answer(frame, connection, self._parts)
        return self._serve(frame, connection) if answer is None else answer

    def _serve(self, frame: memoryview, connection: Connection) -> list[Part] | Later | None:
        try:
            header, position = decode_request_header(frame)
        except DecodeError as error:
            raise CloseConnection(f"the header of a request is malformed: {error}") from None
        connection.client_id = header.client_id
        key, version = header.api_key, header.api_version
        route = self._routes.get((key, version)) or self._find_route(key, version)
        if route is None:
            return self._unsupported(header)
        result = self._answer_undecoded(frame, position, header, route, connection)
        if isinstance(result, list):
            route.requests.value += 1
            return result
        context = Context(self._parts, route.version, header.client_id, connection)
        exchange = Exchange(context, route, header.correlation_id, len(frame))
        try:
            exchange.request, _ = decode_from(
                route.registration.request, route.version, frame, position, ENTRIES_AT_ONCE
            )
        except TooManyEntries:
            return _begin_large(exchange, frame, position, connection)
        except DecodeError as error:
            raise CloseConnection(f"{route.registration.name} is malformed: {error}") from None
        route.requests.value += 1
        return _answer(exchange, result)

    def _answer_undecoded(
        self,
        frame: memoryview,
        position: int,
        header: RequestHeader,
        route: Route,
        connection: Connection,
    ) -> Answer | list[Part]:
        """
        Answer one of the commonest form; None if the handler has to.
        """
        if route.shortcut is not None:
            return route.shortcut(
                frame, position, route.version, header.correlation_id, self._parts, connection
            )
        if route.read_question is None:
            return None
        question = route.read_question(frame, position, route.version)
        if question is None:
            return None
        self._repeated.note(frame, header.client_id, route.requests, question)
        answer = question.answer(_CORRELATION_ID.pack(header.correlation_id), self._parts)
        return None if answer is None else [answer]

    def _find_route(self, key: int, version: int) -> Route | None:
        """
        Where requests of that API and version go; None where the version is not served.

        Raises:
            CloseConnection: no handler has that API.
        """
        if key not in self._handlers:
            raise CloseConnection(f"API key {key} is unknown")
        registration = self._handlers[key]
        if version not in registration.versions:
            return None
        requests = self._parts.metrics.counter(
            "requests", "Requests received.", api=registration.name
        )
        route = self._routes[key, version] = Route(registration, version, requests)
        return route

    def _unsupported(self, header: RequestHeader) -> list[Part]:
        """
        Clients ask for the newest ApiVersions first and take the range from the refusal (KIP-511);
        for every other API they know the range already, and Kafka closes the connection.
        """
        if header.api_key == API_VERSIONS:
            first = self._find_route(API_VERSIONS, 0)
            assert first is not None, "version 0 is the one that everybody understands"
            return frame_of(unsupported_version(), first, header.correlation_id)
        registration = self._handlers[header.api_key]
        raise CloseConnection(
            f"{registration.name} v{header.api_version} is not supported,"
            f" only v{registration.versions[0]} to v{registration.versions[-1]}"
        )


def _answer(exchange: Exchange, result: Answer) -> list[Part] | Later | None:
    """
    Handle a request that is decoded.

    Args:
        result: what has come of it already; None to ask the handler.
    """
    registration = exchange.route.registration
    try:
        if result is None:
            result = exchange.handle()
        if isinstance(result, registration.response):
            return _now_or_later(exchange, result)
        if result is None:
            return None
        if isinstance(result, Delayed):
            exchange.forget()
            return exchange, result
        # Before generators: a coroutine that is compiled looks like one.
        if isinstance(result, Awaitable):
            return exchange, result
        assert isinstance(result, Generator), f"{result!r} is no answer"
        return _begun(exchange, exchange.start(_serve_in_steps(exchange, result)))
    except Exception as error:  # whatever it is, the client gets an answer
        return _now_or_later(exchange, error)


def _now_or_later(exchange: Exchange, outcome: Message | Exception) -> list[Part] | Later:
    parts = exchange.parts(outcome)
    return parts if isinstance(parts, list) else (exchange, parts)


def _begun(exchange: Exchange, work: Work[Served]) -> list[Part] | Later | None:
    """
    The answer, if *work* has ended already, or what is going to give it.
    """
    if not work.is_done:
        return exchange, _finished(work)
    result = work.result()
    return result if result is None or isinstance(result, list) else (exchange, result)


async def _finished(work: Work[Served]) -> Outcome | Delayed:
    result = await work.future()
    return await result if isinstance(result, Awaitable) else result


def _begin_large(
    exchange: Exchange, frame: memoryview, position: int, connection: Connection
) -> list[Part] | Later | None:
    exchange.held_bytes = FULL_REQUEST_WEIGHT * len(frame)
    exchange.is_large = True
    steps = _decode_and_serve(exchange, frame, position, connection)
    return _begun(exchange, exchange.start(steps, is_large=True))


def _decode_and_serve(
    exchange: Exchange, frame: memoryview, position: int, connection: Connection
) -> Steps[Served]:
    """
    Do with a large request what is done with any other.

    Raises:
        CloseConnection: the request is not one that can be answered.
    """
    route = exchange.route
    name, cls = route.registration.name, route.registration.request
    try:
        exchange.request, _ = yield from decode_in_steps(
            cls, route.version, frame, position, MOST_ENTRIES
        )
    except TooManyEntries:
        raise CloseConnection(f"{name} has more than {MOST_ENTRIES} entries") from None
    except DecodeError as error:
        raise CloseConnection(f"{name} is malformed: {error}") from None
    route.requests.value += 1
    if connection.is_closing:
        return None
    return (yield from _serve_in_steps(exchange, None))


def _serve_in_steps(exchange: Exchange, result: Answer) -> Steps[Served]:
    """
    Let the handler and its answer take steps.

    Args:
        result: what the handler has said; None if it was not asked.
    """
    try:
        if result is None:
            result = exchange.handle()
        if isinstance(result, Generator) and not isinstance(result, Awaitable):
            result = yield from result
        if result is None or isinstance(result, Awaitable):
            return result
        if isinstance(result, Delayed):
            exchange.forget()
            return result
        box: list[Message | Exception] = [result]
        result = None
        return (yield from exchange.parts_in_steps(box))
    except CloseConnection:
        raise
    except Exception as error:  # whatever it is, the client gets an answer
        return (yield from exchange.parts_in_steps([error]))


def frame_of(response: Message, route: Route, correlation_id: int) -> list[Part]:
    """
    The buffers of a whole response frame; those of records are not copied.

    Raises:
        TooManyEntries: it has to be encoded in steps.
    """
    return with_head(encode_parts(response, route.version, ENTRIES_AT_ONCE), route, correlation_id)


def with_head(parts: list[Buffer], route: Route, correlation_id: int) -> list[Part]:
    """
    The buffers of a whole response frame, of those of its body.
    """
    head = _TAGGED_HEAD if route.has_tags else _HEAD
    size = head.size - SIZE_BYTES + sum(map(len, parts))
    parts[0] = head.pack(size, correlation_id) + parts[0]
    return cast("list[Part]", parts)
