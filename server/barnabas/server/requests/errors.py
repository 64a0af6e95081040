"""
The outcome of a request: a response, or an end of the connection instead of one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from barnabas.protocol.codec.primitives import Buffer
    from barnabas.protocol.codec.schema import Message

Outcome: TypeAlias = "Message | list[Buffer] | Exception | None"
"""
A response, its bytes, the error that the request failed with, or that there is no answer.
"""


class CloseConnection(Exception):
    """
    A request ends its connection. The text is for the log.
    """

    def __init__(self, reason: str, last: list[Buffer] | None = None) -> None:
        """
        Args:
            last: the buffers of an answer that is sent before; None to answer nothing.
        """
        super().__init__(reason)
        self.last = last


class AnswerAndClose(Exception):
    """
    A request is answered, and its connection is closed. The text is for the log.
    """

    def __init__(self, reason: str, response: Message | None) -> None:
        super().__init__(reason)
        self.response = response
