"""
Requests as handlers and the dispatcher see them, without a connection.
"""

from __future__ import annotations

from typing import Any

from barnabas.protocol.apis import API_VERSIONS
from barnabas.protocol.headers import RequestHeader
from barnabas.server.config import Listener
from barnabas.server.metrics import Counter
from barnabas.server.requests.client import Client
from barnabas.server.requests.context import RequestContext
from barnabas.server.requests.registry import HANDLERS
from barnabas.server.requests.route import Route

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
