"""
One request: who sends it, what it asks for, and how its answer is written.

::

    frame --> header --> route --> decode --> handler --> encode --> buffers of the answer
                                                |
                                 a response, nothing, or one of these:
                                 Delayed     the effects are done, the answer waits
                                 Awaitable   the next request of the client waits as well
                                 Steps       many entries: the event loop serves others in between

A handler gets the message and its ``RequestContext``. It returns a response or raises a
``KafkaError``, whose code goes into every place that the API has for one. An exception of another
kind becomes UNKNOWN_SERVER_ERROR, with a traceback in the log.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

import logging
from collections.abc import Awaitable, Generator
from struct import Struct
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias, cast

from barnabas.protocol.codec.primitives import ENTRIES_AT_ONCE, Buffer
from barnabas.protocol.codec.schema import Message
from barnabas.protocol.errors import (
    DecodeError,
    ErrorCode,
    KafkaError,
    TooManyEntries,
    without_frames,
)
from barnabas.server.purgatory import Delayed, Outcome
from barnabas.server.requests.authorization import REFUSALS
from barnabas.server.requests.error_response import error_response
from barnabas.server.requests.errors import AnswerAndClose, CloseConnection
from barnabas.server.requests.release import released
from barnabas.server.scheduling.turns import Steps
from barnabas.server.security.acl.bindings import CLUSTER_NAME, ResourceType

if TYPE_CHECKING:
    from asyncio import Future

    from barnabas.protocol.codec.codec import Codec
    from barnabas.protocol.headers import RequestHeader
    from barnabas.server.requests.broker_parts import BrokerParts
    from barnabas.server.requests.client import Client
    from barnabas.server.requests.registry import Answer, Later
    from barnabas.server.requests.route import Route
    from barnabas.server.scheduling.turns import Work
    from barnabas.server.security.acl.permissions import Permission
    from barnabas.server.topics.creation import Charge

logger = logging.getLogger(__name__)

Pending: TypeAlias = "Delayed | Awaitable[Outcome | Delayed]"
"""
An answer that is not there yet.
"""
Served: TypeAlias = "list[Buffer] | Delayed | Awaitable[Message | Delayed | None] | None"

REQUEST_WEIGHT: Final = 4
"""
How many times the size of its frame a request counts that waits for its answer: its objects are
larger than its bytes.
"""
FULL_REQUEST_WEIGHT: Final = 32
"""
The same for a request that is little else than entries of arrays.
"""
MOST_ENTRIES: Final = 1 << 18
"""
A request whose arrays have more entries, all together, closes its connection.
"""
MOST_OF_A_NAME: Final = 300
"""
How many characters of the name of a resource the log has.
"""

_DELAYED: Final = 1
_AWAITABLE: Final = 2
_STEPS: Final = 3
_KINDS: Final[dict[type, int]] = {}
"""
What objects of a class are that a handler has returned. To ask the abstract base classes each time
takes longer than to serve some requests.
"""

_SIZE_BYTES: Final = 4
_HEAD: Final = Struct(">ii")
"""The size of the frame, the correlation id."""
_TAGGED_HEAD: Final = Struct(">iix")
"""Likewise, and no tagged fields."""


class MeteredFetch(Protocol):
    """
    A Fetch whose bytes are counted.
    """

    def exempt(self) -> None:
        """
        The request is not counted: it is one of a broker.
        """

    def most_fetched_bytes(self) -> float | None:
        """
        How much a consumer that was quiet may fetch without having to wait for it; None if there
        is no limit. A larger answer would never go out.
        """

    def count_fetch(self, response: Message) -> Steps[int]:
        """
        Count a Fetch that is going to be answered so. If the client has to wait, its bytes do not
        count: return how long, and the answer has to be an empty one.
        """


class RequestContext:
    """
    One request, from its header to the buffers of its answer (Kafka ``RequestContext``).

    ``held_bytes`` is about how much memory the request keeps until it is answered.
    """

    __slots__ = (
        "broker",
        "client",
        "client_id",
        "correlation_id",
        "frame_bytes",
        "held_bytes",
        "is_large",
        "request",
        "route",
        "version",
    )

    def __init__(
        self,
        broker: BrokerParts,
        client: Client,
        header: RequestHeader,
        route: Route,
        frame_bytes: int = 0,
    ) -> None:
        self.broker = broker
        self.client = client
        self.client_id = header.client_id
        self.correlation_id = header.correlation_id
        self.version = header.api_version
        """The version of the API."""
        self.route = route
        self.request: Any = None
        """The message, once it is decoded."""
        self.frame_bytes = frame_bytes
        self.held_bytes = REQUEST_WEIGHT * frame_bytes
        self.is_large = False
        """Whether it has more than ``ENTRIES_AT_ONCE`` entries, or its answer has."""

    # The request

    def serve(self, frame: memoryview, position: int) -> list[Buffer] | Pending | None:
        """
        Decode the request at *position* of *frame*, and handle it.

        Returns:
            The buffers of the answer, what is going to give it, or None where there is none.

        Raises:
            CloseConnection: the request cannot be answered.
        """
        route = self.route
        try:
            self.request, _ = route.request_codec.read(frame, position, ENTRIES_AT_ONCE)
        except TooManyEntries:
            self.is_large = True
            self.held_bytes = FULL_REQUEST_WEIGHT * self.frame_bytes
            return self._begin(self._decode_and_serve(frame, position))
        except DecodeError as error:
            raise CloseConnection(f"{route.name} is malformed: {error}") from None
        route.requests.value += 1
        try:
            return self._now_or_later(route.handler(self.request, self))
        except Exception as error:  # whatever it is, the client gets an answer
            return self.buffers(error)

    def _now_or_later(self, answer: Answer) -> list[Buffer] | Pending | None:
        turns = self.broker.turns
        cls = type(answer)
        if answer is None or cls is self.route.response:
            made = None if answer is None else self.buffers(cast(Message, answer))
            if made is None or isinstance(made, list):
                turns.served += 1
            return made
        kind = _KINDS.get(cls) or _kind_of(cls)
        if kind != _STEPS:
            turns.served += 1
            if kind == _DELAYED:
                self._forget()
            return answer  # type: ignore[return-value]  # the kind says so
        steps = cast("Steps[Later]", answer)
        try:
            next(steps)
        except StopIteration as ended:  # most requests are served in one step
            return self._now_or_later(ended.value)
        return self._begin(self._serve_in_steps(steps))

    def _begin(self, steps: Steps[Served]) -> list[Buffer] | Pending | None:
        """
        Take the first turn of *steps*, which is the last one of most.
        """
        turns = self.broker.turns
        work = turns.start(steps, self.frame_bytes if self.is_large else 0)
        if not work.is_done:
            return _finished(work)
        turns.served += 1
        return work.result()

    def _decode_and_serve(self, frame: memoryview, position: int) -> Steps[Served]:
        """
        Decode a large request in steps, and handle it.

        Raises:
            CloseConnection: the request cannot be answered.
        """
        route = self.route
        try:
            self.request, _ = yield from route.request_codec.read_in_steps(
                frame, position, MOST_ENTRIES
            )
        except TooManyEntries:
            raise CloseConnection(f"{route.name} has more than {MOST_ENTRIES} entries") from None
        except DecodeError as error:
            raise CloseConnection(f"{route.name} is malformed: {error}") from None
        route.requests.value += 1
        if self.client.is_closing:
            return None
        return (yield from self._serve_in_steps(None))

    def _serve_in_steps(self, answer: Answer) -> Steps[Served]:
        """
        Let the handler and its answer take steps.

        Args:
            answer: what the handler has returned; None before it is called.
        """
        try:
            if answer is None:
                answer = self.route.handler(self.request, self)
            if isinstance(answer, Generator) and not isinstance(answer, Awaitable):
                answer = yield from answer
            if answer is None or isinstance(answer, Awaitable):
                return answer
            if isinstance(answer, Delayed):
                self._forget()
                return answer
            box: list[Message | Exception] = [answer]
            answer = None
            return (yield from self._buffers_in_steps(box))
        except CloseConnection:
            raise
        except Exception as error:  # whatever it is, the client gets an answer
            box = [error]
        return (yield from self._buffers_in_steps(box))

    def _forget(self) -> None:
        """
        Let go of what the answer does not need: the effects of the request are done.
        """
        forget = self.route.forget
        if forget is not None:
            forget(self.request)
            self.held_bytes = 0

    # What the client may do

    def metered(self) -> MeteredFetch | None:
        """
        Itself, if what it uses is counted: there are quotas.
        """
        return None

    def allows(self, permission: Permission, name: str) -> bool:
        """
        Whether the client may do this with the resource *name*; the log says if it may not.
        """
        if self.broker.authorizer is None or self.sees(permission, name):
            return True
        logger.info(
            "%s is denied %s %r for %s of %s",
            self.client.principal,
            permission,
            name[:MOST_OF_A_NAME],
            self.route.name,
            self.client,
        )
        self.broker.metrics.count_refusal(permission.resource_type.name, permission.operation.name)
        return False

    def sees(self, permission: Permission, name: str) -> bool:
        """
        Whether the client may do this with the resource *name*. It has not asked for it, and
        nothing is said if it may not.
        """
        authorizer = self.broker.authorizer
        if authorizer is None:
            return True
        client = self.client
        return authorizer.allows(client.principal, client.address, permission, name)

    def sees_any(self, permission: Permission) -> bool:
        """
        Whether the client may do this with some resource of the type.
        """
        authorizer = self.broker.authorizer
        if authorizer is None:
            return True
        client = self.client
        return authorizer.allows_any(client.principal, client.address, permission)

    def require(self, permission: Permission, name: str = CLUSTER_NAME) -> None:
        """
        Raises:
            KafkaError: the client may not do this with the resource *name*.
        """
        if self.allows(permission, name):
            return
        error = REFUSALS[permission.resource_type]
        if permission.resource_type == ResourceType.CLUSTER:
            raise error(f"{self.route.name} needs {permission}.")
        raise error

    def charge(self, strict_from: int, *, is_told: bool = True) -> Charge | None:
        """
        What counts the partitions that the request creates or deletes, before it does so; None if
        nobody counts.

        Args:
            strict_from: the first version of the API in which what is over a quota is refused.
            is_told: the answer says how long the client has to wait.
        """
        return None

    # The answer

    def buffers(self, outcome: Outcome) -> list[Buffer] | Future[list[Buffer]] | None:
        """
        The buffers of the answer, None where there is none; later, if the answer is large.

        Raises:
            CloseConnection: the outcome is that, or the client cannot be told otherwise.
        """
        if outcome is None or isinstance(outcome, list):
            return outcome
        if isinstance(outcome, AnswerAndClose):
            raise self._last(outcome)
        if not (self.is_large or isinstance(outcome, Exception)):
            try:
                return frame_of(outcome, self.route, self.correlation_id)
            except TooManyEntries:
                pass
            except ValueError as error:
                outcome = error
        work: Work[list[Buffer]] = self.broker.turns.start(self._buffers_in_steps([outcome]))
        return work.result() if work.is_done else work.future()

    def _last(self, outcome: AnswerAndClose) -> CloseConnection:
        response = outcome.response
        last = None if response is None else frame_of(response, self.route, self.correlation_id)
        return CloseConnection(str(outcome), last)

    def refuse(self, frame: memoryview, position: int, error: KafkaError, reason: str) -> None:
        """
        Answer the request at *position* of *frame* with an *error*, and close the connection.

        Raises:
            CloseConnection: always.
        """
        try:
            self.request, _ = self.route.request_codec.read(frame, position, ENTRIES_AT_ONCE)
            buffers = self.buffers(error)
        except (TooManyEntries, DecodeError):
            buffers = None
        raise CloseConnection(reason, buffers if isinstance(buffers, list) else None)

    def _buffers_in_steps(self, box: list[Message | Exception]) -> Steps[list[Buffer]]:
        """
        The buffers of an answer that may be large. If it is, or its request, the objects of both
        are freed.

        Args:
            box: has the outcome, and nobody else does: see ``released``.

        Raises:
            CloseConnection: as in ``buffers``.
        """
        buffers = yield from self._encoded(box)
        if self.is_large:
            box.append(self.request)
            self.request = None
            yield from released(box)
        return buffers

    def _encoded(self, box: list[Message | Exception]) -> Steps[list[Buffer]]:
        outcome = box[0]
        response: Message
        if isinstance(outcome, Exception):
            response = yield from self._failed(outcome)
        else:
            response = outcome
        box[0] = response
        codec = self.route.response_codec
        try:
            buffers = written_at_once(codec, response)
            if buffers is None:
                self.is_large = True
                buffers = yield from codec.write_in_steps(response)
            return _framed(buffers, self.route, self.correlation_id)
        except ValueError as error:
            box[0] = error
        return (yield from self._encoded(box))

    def _failed(self, error: Exception) -> Steps[Message]:
        """
        The response that carries *error*.
        """
        if isinstance(error, CloseConnection):
            raise without_frames(error)
        if isinstance(error, KafkaError):
            code, text = error.code, str(error) or None
        else:
            code, text = ErrorCode.UNKNOWN_SERVER_ERROR, None
            logger.error(
                "%s v%d of %s failed", self.route.name, self.version, self.client, exc_info=error
            )
        without_frames(error)
        self.broker.metrics.count_error(self.route.name, code)
        return error_response(self.route.registration, self.request, self.version, code, text)


def written_at_once(codec: Codec, response: Message) -> list[Buffer] | None:
    """
    The buffers of an answer; None if it is so large that it is written in steps.

    Raises:
        ValueError: a value cannot be written.
    """
    try:
        return codec.write(response, ENTRIES_AT_ONCE)
    except TooManyEntries:
        return None


def _kind_of(cls: type) -> int:
    if issubclass(cls, Delayed):
        kind = _DELAYED
    elif issubclass(cls, Awaitable):  # before generators: a compiled coroutine looks like one
        kind = _AWAITABLE
    else:
        assert issubclass(cls, Generator), f"{cls.__name__} is no answer"
        kind = _STEPS
    _KINDS[cls] = kind
    return kind


async def _finished(work: Work[Served]) -> Outcome | Delayed:
    served = await work.future()
    return await served if isinstance(served, Awaitable) else served


def frame_of(response: Message, route: Route, correlation_id: int) -> list[Buffer]:
    """
    The buffers of a whole response frame; those of records are not copied.

    Raises:
        TooManyEntries: the response has to be encoded in steps.
        ValueError: a value does not fit its type.
    """
    return _framed(route.response_codec.write(response, ENTRIES_AT_ONCE), route, correlation_id)


def _framed(buffers: list[Buffer], route: Route, correlation_id: int) -> list[Buffer]:
    head = _TAGGED_HEAD if route.has_tags else _HEAD
    size = head.size - _SIZE_BYTES
    for buffer in buffers:
        size += len(cast("Any", buffer))  # records may still be in a file
    buffers[0] = head.pack(size, correlation_id) + buffers[0]
    return buffers
