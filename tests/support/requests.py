"""
Requests for handlers and the dispatcher, without a connection.
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

from barnabas.coordination.steps import finished
from barnabas.protocol.apis import API_VERSIONS
from barnabas.protocol.codec.codec import decode, encode
from barnabas.protocol.codec.schema import Message
from barnabas.protocol.errors import KafkaError
from barnabas.protocol.headers import RequestHeader
from barnabas.server.config import Listener
from barnabas.server.metrics import Counter
from barnabas.server.requests.client import Client
from barnabas.server.requests.context import RequestContext
from barnabas.server.requests.error_response import error_response
from barnabas.server.requests.registry import HANDLERS
from barnabas.server.requests.route import Route
from barnabas.server.scheduling.turns import Turns

LISTENER = Listener("PLAINTEXT", "127.0.0.1", 0, "127.0.0.1", 0)


def a_client(listener: Listener = LISTENER, address: str = "127.0.0.1") -> Client:
    """
    A client at that address and port 5 that has sent nothing.
    """
    return Client(listener, address, f"{address}:5")


def request_context(broker: Any, version: int, listener: Listener = LISTENER) -> RequestContext:
    """
    The context of a request of the client "client".

    Args:
        broker: has the parts that the handler uses.
    """
    header = RequestHeader(API_VERSIONS.key, version, 7, "client")
    route = Route(HANDLERS[API_VERSIONS.key], 0, Counter())
    return RequestContext(broker, a_client(listener), header, route)


async def handled(request: Message, context: RequestContext) -> Any:
    """
    The response of the handler of a request, from bytes to bytes; errors become responses as in a
    connection.
    """
    registration = HANDLERS[request.api.key]
    version = context.version
    received = decode(type(request), version, encode(request, version))
    try:
        answer: Any = registration.handler(received, context)
        if isinstance(answer, Coroutine):
            answer = await Turns().finish(answer)
    except KafkaError as error:
        answer = finished(error_response(registration, received, version, error.code, str(error)))
    assert isinstance(answer, registration.response)
    return decode(registration.response, version, encode(answer, version))
