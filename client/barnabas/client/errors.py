"""
Errors of a client of a cluster.

::

    ClientError
    ├── InvalidOption        an option is unknown, or its value cannot be used
    ├── BrokerError          a broker refuses a request
    └── Disconnected         a broker cannot be reached, or the connection to it was lost
        └── NotABroker           another program answers at the address

Spark pickles them on their way from a worker to the driver, so each keeps its arguments as given.
"""

from __future__ import annotations

from typing import Self

from barnabas.protocol.errors import ErrorCode


class ClientError(Exception):
    """
    Base of all errors of the client.
    """


class InvalidOption(ClientError, ValueError):
    """
    An option is unknown, or its value cannot be used.
    """


class BrokerError(ClientError):
    """
    A broker refuses a request.

    Args:
        code: the number of the error on the wire.
    """

    def __init__(self, code: int, sentence: str) -> None:
        super().__init__(code, sentence)
        self.code, self.sentence = code, sentence

    @classmethod
    def of(cls, code: int, what: str, message: str | None = None) -> Self:
        """
        The error of a response: *what* failed, the name of the code, and the broker's *message* or
        else the usual sentence of the code.
        """
        try:
            known = ErrorCode(code)
        except ValueError:
            return cls(code, f"{what}: error {code}. {message or ''}".rstrip())
        return cls(code, f"{what}: {known.name}. {message or known.sentence}")

    def __str__(self) -> str:
        return self.sentence


class Disconnected(ClientError):
    """
    A broker cannot be reached, or the connection to it was lost.
    """


class NotABroker(Disconnected):
    """
    Another program answers at the address. A retry does not help.
    """
