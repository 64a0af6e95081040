"""
Closes the sockets that kafka-python forgets, without a warning.
"""

from __future__ import annotations

import socket
import sys


class ForgottenSocket(socket.socket):
    """
    A socket that Python closes silently when nobody refers to it any more.
    """

    def __del__(self) -> None:
        self.close()


def close_forgotten_sockets() -> None:
    """
    Make kafka-python, if it is imported, open sockets that may be forgotten.

    kafka-python 3.0.12 keeps the socket of a connection attempt that fails or is abandoned in a
    cycle of references. Python closes it at any later time, with a ResourceWarning that fails
    whatever test runs then.
    """
    if inet := sys.modules.get("kafka.net.inet"):
        inet.KafkaNetSocket.socket = staticmethod(ForgottenSocket)
