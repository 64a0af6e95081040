"""
The memory that one answer may take.

A request may name the same thing very often: a group with large members, a topic with all of its
configs. Each time is a copy in the answer, so that a request of 1 MB would get gigabytes.
"""

from __future__ import annotations

from typing import Final

from barnabas.server.requests.errors import CloseConnection

MOST_BYTES: Final = 256 * 1024 * 1024
ENTRY_BYTES: Final = 400
"""
About the memory of an entry of an answer: an object, its numbers, and its part of the encoding.
"""


class AnswerRoom:
    """
    Counts what an answer takes while it is made.
    """

    __slots__ = ("_left",)

    def __init__(self, most_bytes: int | None = None) -> None:
        self._left = MOST_BYTES if most_bytes is None else most_bytes

    def take(self, entries: int, size: int = 0) -> None:
        """
        Count *entries* of the answer that have *size* bytes of text or data together.

        Raises:
            CloseConnection: the answer would be too large.
        """
        self._left -= entries * ENTRY_BYTES + size
        if self._left < 0:
            raise CloseConnection(f"the answer would take more than {MOST_BYTES} bytes")
