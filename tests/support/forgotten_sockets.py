"""
Closes the sockets that kafka-python forgets, without a warning.
"""

from __future__ import annotations

import socket
import sys
from typing import Any


class ForgottenSocket(socket.socket):
    """
    A socket that Python closes silently when nobody refers to it any more.
    """

    def __del__(self) -> None:
        self.close()


class _Sockets:
    """
    The module ``socket``, whose pairs may be forgotten.
    """

    def __getattr__(self, name: str) -> Any:
        return getattr(socket, name)

    def socketpair(self) -> tuple[ForgottenSocket, ForgottenSocket]:
        one, other = socket.socketpair()
        return ForgottenSocket(fileno=one.detach()), ForgottenSocket(fileno=other.detach())


def close_forgotten_sockets() -> None:
    """
    Make kafka-python, if it is imported, open sockets that may be forgotten.

    kafka-python 3.0.12 keeps the socket of a connection attempt that fails or is abandoned in a
    cycle of references, and so the pair by which a client that is refused wakes its thread. Python
    closes them at any later time, with a ResourceWarning that fails whatever test runs then.
    """
    if inet := sys.modules.get("kafka.net.inet"):
        inet.KafkaNetSocket.socket = staticmethod(ForgottenSocket)
    if selector := sys.modules.get("kafka.net.selector"):
        vars(selector)["socket"] = _Sockets()
