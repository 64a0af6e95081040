"""
Requests as handlers and the dispatcher see them, without a connection.
"""

from __future__ import annotations

import inspect
from typing import Any, cast

from barnabas.protocol.apis import API_VERSIONS
from barnabas.protocol.codec.codec import decode, encode
from barnabas.protocol.codec.schema import Message
from barnabas.protocol.errors import KafkaError
from barnabas.protocol.headers import RequestHeader
from barnabas.server.config import Listener
from barnabas.server.metrics import Counter
from barnabas.server.purgatory import Delayed
from barnabas.server.requests.client import Client
from barnabas.server.requests.context import RequestContext
from barnabas.server.requests.error_response import error_response
from barnabas.server.requests.registry import HANDLERS
from barnabas.server.requests.route import Route
from barnabas.server.scheduling.turns import Steps, finished

LISTENER = Listener("PLAINTEXT", "127.0.0.1", 0, "127.0.0.1", 0)


def a_client(listener: Listener = LISTENER, address: str = "127.0.0.1") -> Client:
    """
    A client at that address, port 5, that has sent nothing.
    """
    return Client(listener, address, f"{address}:5")


def request_context(broker: Any, version: int, listener: Listener = LISTENER) -> RequestContext:
    """
    The context of a request of the client "client", which only a handler uses.

    Args:
        broker: has the parts that the handler uses.
    """
    header = RequestHeader(API_VERSIONS.key, version, 7, "client")
    route = Route(HANDLERS[API_VERSIONS.key], 0, Counter())
    return RequestContext(broker, a_client(listener), header, route)


async def handled(request: Message, context: RequestContext) -> Any:
    """
    The answer of the handler of a request, from bytes to bytes; errors as connections answer them.
    """
    registration = HANDLERS[request.api.key]
    version = context.version
    received = decode(type(request), version, encode(request, version))
    try:
        answer: Any = registration.handler(received, context)
        if inspect.isgenerator(answer):
            answer = finished(cast(Steps[Any], answer))
        if inspect.isawaitable(answer):
            answer = await answer
    except KafkaError as error:
        answer = finished(error_response(registration, received, version, error.code, str(error)))
    if isinstance(answer, Delayed):
        heard: list[Any] = []
        answer.then(heard.append)
        (answer,) = heard
    assert isinstance(answer, registration.response)
    return decode(registration.response, version, encode(answer, version))
