"""
From the bytes of a request to the bytes of its answer.

::

    frame -> header -> registration of key and version -> decode -> handler -> encode -> parts

What goes wrong on the way is answered as Kafka does: what cannot be understood closes the
connection, what a handler refuses is an error code in that API's own slots, and what it did not
expect is UNKNOWN_SERVER_ERROR there, with a traceback in the log.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Mapping
from struct import Struct
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from barnabas.protocol.codec import decode_from, encode_parts
from barnabas.protocol.errors import DecodeError, ErrorCode, KafkaError
from barnabas.protocol.headers import decode_request_header, response_header
from barnabas.protocol.messages.api_versions import ApiVersionsRequest
from barnabas.protocol.schema import Message
from barnabas.server.context import CloseConnection, Context, Parts
from barnabas.server.error_response import error_response
from barnabas.server.handlers import Registration
from barnabas.server.handlers.api_versions import unsupported_version
from barnabas.server.purgatory import Delayed, Outcome

if TYPE_CHECKING:
    from barnabas.server.connection import Connection
    from barnabas.server.metrics import Counter
    from barnabas.server.sender import Part

logger = logging.getLogger(__name__)

Later: TypeAlias = "tuple[Exchange, Delayed | Awaitable[Message | None]]"

_SIZE = Struct(">i")
API_VERSIONS = ApiVersionsRequest.api.key


class Exchange:
    """
    A request whose answer is not there yet, and how that answer will be written.
    """

    __slots__ = ("_context", "_correlation_id", "_registration", "_request")

    def __init__(
        self, context: Context, registration: Registration, correlation_id: int, request: Any
    ) -> None:
        self._context = context
        self._registration = registration
        self._correlation_id = correlation_id
        self._request = request

    def parts(self, outcome: Outcome) -> list[Part]:
        """
        The bytes of the answer.

        Raises:
            CloseConnection: the outcome is that.
        """
        if outcome is None:
            return []
        if not isinstance(outcome, Exception):
            try:
                return self._frame_of(outcome)
            except ValueError as error:
                outcome = error
        return self._frame_of(self._error_response(outcome))

    def _frame_of(self, response: Message) -> list[Part]:
        version = self._context.version
        return frame_of(response, self._registration.key, version, self._correlation_id)

    def _error_response(self, error: Exception) -> Message:
        if isinstance(error, CloseConnection):
            raise error
        if isinstance(error, KafkaError):
            code, message = error.code, str(error) or None
        else:
            code, message = ErrorCode.UNKNOWN_SERVER_ERROR, None
            logger.error(
                "%s v%d of %s failed",
                self._registration.name,
                self._context.version,
                self._context.connection,
                exc_info=error,
            )
        self._context.metrics.count_error(self._registration.name, code)
        return error_response(
            self._registration, self._request, self._context.version, code, message
        )


class Dispatcher:
    """
    Calls the handlers.
    """

    def __init__(self, handlers: Mapping[int, Registration], parts: Parts) -> None:
        self._parts = parts
        self._handlers = dict(handlers)
        self._requests: dict[int, Counter] = {
            key: parts.metrics.counter("requests", "Requests received.", api=handler.name)
            for key, handler in self._handlers.items()
        }

    def __call__(self, frame: memoryview, connection: Connection) -> list[Part] | Later | None:
        """
        Handle one request.

        Returns:
            The bytes of the answer; or what is going to give it; or None where there is none.

        Raises:
            CloseConnection: the request is not one that can be answered.
        """
        try:
            header, position = decode_request_header(frame)
        except DecodeError as error:
            raise CloseConnection(f"the header of a request is malformed: {error}") from None
        connection.client_id = header.client_id
        version = header.api_version
        registration = self._handlers.get(header.api_key)
        if registration is None:
            raise CloseConnection(f"API key {header.api_key} is unknown")
        if version not in registration.versions:
            return self._unsupported(registration, version, header.correlation_id)
        try:
            request, _ = decode_from(registration.request, version, frame, position)
        except DecodeError as error:
            raise CloseConnection(
                f"{registration.request.__name__} v{version} is malformed: {error}"
            ) from None
        self._requests[registration.key].value += 1
        context = Context(self._parts, version, header.client_id, connection)
        try:
            result = registration.handler(request, context)
            if isinstance(result, registration.response):
                return frame_of(result, registration.key, version, header.correlation_id)
            if result is None:
                return None
            assert isinstance(result, Delayed | Awaitable), f"{result!r} is no answer"
            return Exchange(context, registration, header.correlation_id, request), result
        except Exception as error:  # whatever it is, the client gets an answer
            exchange = Exchange(context, registration, header.correlation_id, request)
            return exchange.parts(error)

    def _unsupported(
        self, registration: Registration, version: int, correlation_id: int
    ) -> list[Part]:
        """
        Clients ask for the newest ApiVersions first and take the range from the refusal (KIP-511);
        for every other API they know the range already, and Kafka closes the connection.
        """
        if registration.key == API_VERSIONS:
            return frame_of(unsupported_version(registration), API_VERSIONS, 0, correlation_id)
        raise CloseConnection(
            f"{registration.request.__name__} v{version} is not supported,"
            f" only v{registration.versions[0]} to v{registration.versions[-1]}"
        )


def frame_of(response: Message, key: int, version: int, correlation_id: int) -> list[Part]:
    """
    The buffers of a whole response frame; those of records are not copied.
    """
    parts = encode_parts(response, version)
    head = response_header(key, version, correlation_id)
    size = len(head) + sum(map(len, parts))
    parts[0] = b"".join((_SIZE.pack(size), head, parts[0]))
    return cast("list[Part]", parts)
