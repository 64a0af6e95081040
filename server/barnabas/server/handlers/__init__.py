"""
Request handlers, one module per API or small family of APIs.

Registering a handler is what makes an API exist: ``ApiVersions`` answers from the same table, and a
key that is not in it closes the connection. A handler takes the decoded request and a ``Context``
and does one of four things:

* returns its response: it is written at once, without a task. What a plain ``def`` does that never
  has to wait, and what the path of a batch is made of;
* returns ``None``: there is no answer (Produce with ``acks=0``);
* returns a ``Delayed`` (``purgatory.py``): all that the request changes is done, only the answer
  has to wait. The connection goes on with its next request and keeps the answers in order;
* is an ``async def``: a task is made, and the next request of the same connection starts only when
  it has ended, as in Kafka, which takes one request of a connection at a time.

It may raise ``KafkaError`` (answered with its code in the error slots of that API) at any point.
Every other exception is answered with UNKNOWN_SERVER_ERROR and logged.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, TypeVar

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import RESPONSES
from barnabas.protocol.schema import Message
from barnabas.server.context import Context
from barnabas.server.purgatory import Delayed

Req = TypeVar("Req", bound=Message)
Answer: TypeAlias = "Message | Delayed | Awaitable[Message | None] | None"
Handler: TypeAlias = Callable[[Any, Context], Answer]
ErrorResponse: TypeAlias = Callable[[Any, int, ErrorCode, str | None], Message]
H = TypeVar("H", bound=Handler)


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration:
    """
    One API this broker serves.
    """

    key: int
    request: type[Message]
    response: type[Message]
    handler: Handler
    versions: range  # what is answered
    advertised: range  # what ApiVersions lists, which may be more: see Produce
    error_response: ErrorResponse | None  # (request, version, code, message) -> response

    @property
    def name(self) -> str:
        """
        The name of the API.
        """
        return self.request.__name__.removesuffix("Request")


HANDLERS: Final[dict[int, Registration]] = {}


def handles(
    request: type[Req],
    *,
    versions: range | None = None,
    error_response: Callable[[Req, int, ErrorCode, str | None], Message] | None = None,
) -> Callable[[H], H]:
    """
    Register the handler of an API.

    Args:
        versions: what is answered and listed, where that is not every version of the message.
        error_response: makes the answer that carries one code in every error slot of the request.
            Needed only where the generic one (``dispatch.error_response``), which fills the
            top-level ``error_code`` and leaves the rest at its defaults, would not be understood.
    """

    def register(handler: H) -> H:
        key = request.api.key
        assert key not in HANDLERS, f"two handlers for {request.__name__}"
        HANDLERS[key] = Registration(
            key=key,
            request=request,
            response=RESPONSES[key],
            handler=handler,
            versions=versions or request.api.versions,
            advertised=versions or request.api.advertised,
            error_response=error_response,
        )
        return handler

    return register


def load() -> dict[int, Registration]:
    """
    Import every handler module and return the table they have filled.
    """
    for module in pkgutil.iter_modules(__path__, __name__ + "."):
        importlib.import_module(module.name)
    return HANDLERS
