"""
One request: who sends it, what it asks for, and how its answer is written.

::

    frame --> header --> route --> decode --> handler --> encode --> buffers of the answer

A handler is a coroutine function that gets the message and its ``RequestContext``. It returns a
response, or None if there is no answer. It may await a ``checkpoint``, where other work runs once
the turn is over, and futures. It raises a ``KafkaError`` to have its code in every place that the
API has for one. An exception of another kind becomes UNKNOWN_SERVER_ERROR, with a traceback in the
log.

A handler that completes at once has its response encoded at once. ``Work`` drives all others in
turns of the event loop and without a task. The next request of the client starts when the handler
ends, or when it calls ``effects_done``.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from struct import Struct
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from barnabas.coordination.security.acl.bindings import CLUSTER_NAME, ResourceType
from barnabas.coordination.steps import InSteps
from barnabas.protocol.codec.primitives import ENTRIES_AT_ONCE, Buffer
from barnabas.protocol.codec.schema import Message
from barnabas.protocol.errors import (
    DecodeError,
    ErrorCode,
    KafkaError,
    TooManyEntries,
    without_frames,
)
from barnabas.server.requests.authorization import REFUSALS
from barnabas.server.requests.error_response import error_response
from barnabas.server.requests.errors import AnswerAndClose, CloseConnection
from barnabas.server.requests.release import released
from barnabas.server.requests.route import written_at_once
from barnabas.server.requests.timing import timed
from barnabas.server.scheduling.turns import Work

if TYPE_CHECKING:
    from barnabas.coordination.security.acl.permissions import Permission
    from barnabas.coordination.topics.creation import Charge
    from barnabas.protocol.headers import RequestHeader
    from barnabas.server.requests.answer_room import AnswerRoom
    from barnabas.server.requests.broker_parts import BrokerParts
    from barnabas.server.requests.client import Client
    from barnabas.server.requests.errors import Outcome
    from barnabas.server.requests.meter import Meter
    from barnabas.server.requests.route import Route

logger = logging.getLogger(__name__)

T = TypeVar("T")

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

_SIZE_BYTES: Final = 4
_HEAD: Final = Struct(">ii")
"""The size of the frame, the correlation id."""
_TAGGED_HEAD: Final = Struct(">iix")
"""Likewise, and no tagged fields."""


class Effects:
    """
    The answer to a request waits, though all that it changes is done.
    """

    __slots__ = ("hurry", "is_seen")

    def __init__(self, hurry: Callable[[], None] | None, *, is_seen: bool) -> None:
        self.hurry = hurry
        """Gives the answer that is possible now, because something waits behind it."""
        self.is_seen = is_seen
        """Whether others may see the effects before the request is answered."""


class RequestContext:
    """
    One request, from its header to the buffers of its answer (Kafka ``RequestContext``).

    ``held_bytes`` is about how much memory the request keeps until it is answered.
    """

    __slots__ = (
        "_room",
        "broker",
        "client",
        "client_id",
        "correlation_id",
        "effects",
        "frame_bytes",
        "held_bytes",
        "is_large",
        "meter",
        "on_answered",
        "on_effects",
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
        self._room: AnswerRoom | None = None
        self.is_large = False
        """Whether it has more than ``ENTRIES_AT_ONCE`` entries, or its answer has."""
        self.meter: Meter | None = None
        """Counts what it uses, if there are quotas."""
        self.effects: Effects | None = None
        """Set once its effects are done and only its answer waits."""
        self.on_effects: Callable[[], None] | None = None
        """Called when ``effects`` is set."""
        self.on_answered: Callable[[], None] | None = None
        """Called when an answer that has waited is made."""

    # The request

    def serve(self, frame: memoryview, position: int) -> list[Buffer] | Work[Any] | None:
        """
        Decode the request at *position* of *frame*, and handle it.

        Returns:
            The buffers of the answer, work that gives its outcome or them, or None where there is
            no answer.

        Raises:
            CloseConnection: the request cannot be answered.
        """
        route = self.route
        try:
            self.request, _ = route.request_codec.read(frame, position, ENTRIES_AT_ONCE)
        except TooManyEntries:
            self.is_large = True
        except DecodeError as error:
            raise CloseConnection(f"{route.name} is malformed: {error}") from None
        if self.is_large:
            self.held_bytes = FULL_REQUEST_WEIGHT * self.frame_bytes
            found = self._drive(self._decode_and_handle(frame, position))
        else:
            route.requests.value += 1
            answer: Any
            try:
                answer = route.handler(self.request, self)
            except Exception as error:  # that of a plain handler
                answer = error
            if answer is None or type(answer) is route.response or isinstance(answer, Exception):
                self.broker.turns.served += 1
                found = self.buffers(answer)
            else:
                found = self._drive(answer)
        if self._room is not None and (found is None or isinstance(found, list)):
            self.answered()
        return found

    def _drive(self, handling: Coroutine[Any, Any, Any]) -> list[Buffer] | Work[Any] | None:
        """
        Take the first turn, which is the last one of most.
        """
        turns = self.broker.turns
        if self.meter is not None and self.meter.is_timed:
            handling = timed(handling, self.meter)
        outcome: Any
        try:
            if self.is_large:
                outcome = turns.start(handling, self.frame_bytes, self.may_go_on)
            else:
                outcome = turns.begin(handling, self.may_go_on)
            if type(outcome) is Work:
                if not outcome.is_done:
                    if outcome.is_waiting:
                        turns.served += 1
                    return outcome
                outcome = outcome.result()
        except Exception as error:  # whatever it is, the client gets an answer
            outcome = error
        found = self.buffers(outcome)
        if found is None or isinstance(found, list):
            turns.served += 1
        return found

    async def _decode_and_handle(self, frame: memoryview, position: int) -> Message | None:
        """
        Decode a large request, and handle it.

        Raises:
            CloseConnection: the request cannot be answered.
        """
        route = self.route
        try:
            self.request, _ = await InSteps(
                route.request_codec.read_in_steps(frame, position, MOST_ENTRIES)
            )
        except TooManyEntries:
            raise CloseConnection(f"{route.name} has more than {MOST_ENTRIES} entries") from None
        except DecodeError as error:
            raise CloseConnection(f"{route.name} is malformed: {error}") from None
        route.requests.value += 1
        if self.client.is_closing:
            return None
        answer: Any = route.handler(self.request, self)
        response: Message | None
        if answer is None or type(answer) is route.response:
            response = answer
        else:
            response = await answer
        return response

    def effects_done(
        self, hurry: Callable[[], None] | None = None, *, is_seen: bool = True
    ) -> None:
        """
        Let the next request of the client start: this one changes nothing more, and only its answer
        waits. The handler is cancelled if its client leaves.

        Args:
            hurry: ends the wait with the answer that is possible then. It may be called before the
                wait begins.
            is_seen: others may see the effects before the request is answered.
        """
        forget = self.route.forget
        if forget is not None:
            forget(self.request)
            self.held_bytes = 0
        self.effects = Effects(hurry, is_seen=is_seen)
        if self.on_effects is not None:
            self.on_effects()

    async def committed(self, answer: T | asyncio.Future[T]) -> T:
        """
        The *answer* of a coordinator, once what it tells is committed.
        """
        if not isinstance(answer, asyncio.Future):
            return answer
        self.effects_done()
        return await answer

    # Authorization

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
        if self.meter is None:
            return None
        return self.meter.charge(is_strict=self.version >= strict_from, is_told=is_told)

    # The answer

    def room(self) -> AnswerRoom:
        """
        The counter of the answer's memory while the handler makes it. Each answer that can be much
        larger than its request uses one.
        """
        room = self._room
        if room is None:
            from barnabas.server.requests.answer_room import (  # noqa: PLC0415 - no start needs it
                AnswerRoom,
            )

            room = self._room = AnswerRoom(client=self.client)
        return room

    def may_go_on(self) -> bool:
        """
        Return whether the answer may grow: a large one waits while the broker's memory is used up.
        """
        room = self._room
        if room is None or not room.counted_bytes or self.client.is_closing:
            return True
        return self.client.budget.may_answer(self.broker.turns.resume)

    def answered(self) -> None:
        """
        The connection counts the memory of the answer from now on, or there is none.
        """
        room, self._room = self._room, None
        if room is not None:
            room.close()
        if self.on_answered is not None:
            self.on_answered()

    def buffers(self, outcome: Outcome) -> list[Buffer] | Work[Any] | None:
        """
        The buffers of the answer, None where there is none; later, if the answer is large.

        Raises:
            CloseConnection: the outcome is that, or the client cannot be told otherwise.
        """
        if isinstance(outcome, list):
            return outcome
        if self.meter is not None and not isinstance(outcome, Exception):
            outcome = self.meter.told(self, outcome)
        if outcome is None:
            return None
        if isinstance(outcome, AnswerAndClose):
            raise self._last(outcome)
        room = self._room
        if isinstance(outcome, CloseConnection) and (room is None or room.is_empty):
            raise without_frames(outcome)
        if room is not None and not isinstance(outcome, Exception):
            room.forget()
        if not (self.is_large or isinstance(outcome, Exception)):
            try:
                return frame_of(outcome, self.route, self.correlation_id)
            except TooManyEntries:
                self.is_large = True
            except ValueError as error:
                outcome = error
        # A large one does not begin within the turn in which the handler has ended.
        size = max(1, self.frame_bytes) if self.is_large else 0
        work = self.broker.turns.start(self._encoded([outcome]), size, self.may_go_on)
        return work.result() if work.is_done else work

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

    async def _encoded(self, box: list[Any]) -> list[Buffer]:
        """
        The buffers of an answer that may be large. If it is, or its request, the objects of both
        are freed.

        Args:
            box: has the outcome, and nobody else does: see ``released``.

        Raises:
            CloseConnection: as in ``buffers``.
        """
        try:
            return await self._encode(box)
        except CloseConnection:
            raise
        except Exception:
            logger.exception("the answer to %s of %s failed", self.route.name, self.client)
            raise CloseConnection("its answer cannot be written") from None

    async def _encode(self, box: list[Any]) -> list[Buffer]:
        codec = self.route.response_codec
        buffers: list[Buffer] | None = None
        while buffers is None:
            if isinstance(box[0], Exception):
                box[0] = await self._failed(box[0])
            try:
                buffers = written_at_once(codec, box[0])
                if buffers is None:
                    self.is_large = True
                    buffers = await InSteps(codec.write_in_steps(box[0]))
                buffers = _framed(buffers, self.route, self.correlation_id)
            except ValueError as error:
                box[0] = error
        if self.is_large:
            box.append(self.request)
            self.request = None
            await released(box)
        return buffers

    async def _failed(self, error: Exception) -> Message:
        """
        The response that carries *error*.
        """
        if isinstance(error, CloseConnection):
            without_frames(error)
            if self._room is not None:
                await self._room.emptied()
            raise error
        if isinstance(error, KafkaError):
            code, text = error.code, str(error) or None
        else:
            code, text = ErrorCode.UNKNOWN_SERVER_ERROR, None
            logger.error(
                "%s v%d of %s failed", self.route.name, self.version, self.client, exc_info=error
            )
        without_frames(error)
        self.broker.metrics.count_error(self.route.name, code)
        response = await error_response(
            self.route.registration, self.request, self.version, code, text
        )
        if self.meter is not None:
            response = self.meter.told(self, response, is_error=True) or response
        return response


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
