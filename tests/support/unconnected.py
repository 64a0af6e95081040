"""
A connection as handlers and the dispatcher see it: a real one, with nobody at its other end.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from barnabas.server.clock import SystemClock
from barnabas.server.config import BrokerConfig, Listener
from barnabas.server.metrics import Metrics
from barnabas.server.network.connection import Connection
from barnabas.server.network.registry import Connections

LISTENER = Listener("PLAINTEXT", "127.0.0.1", 0, "127.0.0.1", 0)


def unconnected(listener: Listener = LISTENER, address: str = "127.0.0.1") -> Connection:
    """
    A connection of a peer at that address, port 5, which has sent nothing.
    """
    connections = Connections(
        BrokerConfig.parse({}), SystemClock(), ThreadPoolExecutor(1), lambda *_: None, Metrics()
    )
    connection = Connection(connections, listener)
    connection.address = address
    connection.peer = f"{address}:5"
    return connection
