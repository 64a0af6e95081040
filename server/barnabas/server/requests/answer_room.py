"""
The memory of one answer while it is made.

A request may name the same thing very often: a group with large members, a topic with all of its
configs. Each time is a copy in the answer, so that a request of 1 MB would get gigabytes. And many
clients may ask at a time. So an answer has a limit of its own, and counts in the budget of the
broker from the first ``FREE_BYTES`` on, until its bytes do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from barnabas.server.requests.errors import CloseConnection
from barnabas.server.requests.release import released

if TYPE_CHECKING:
    from barnabas.server.requests.client import Client

MOST_BYTES: Final = 256 * 1024 * 1024
ENTRY_BYTES: Final = 400
"""
About the memory of an entry of an answer: an object, its numbers, and its part of the encoding.
"""
FREE_BYTES: Final = 16 * 1024
"""
The size of an answer that does not count in the budget, and of the pieces in which larger ones do.
"""


class AnswerRoom:
    """
    Counts what an answer takes while it is made.
    """

    __slots__ = ("_client", "_free", "_kept", "_left", "_most_bytes", "counted_bytes")

    def __init__(self, most_bytes: int | None = None, client: Client | None = None) -> None:
        """
        Args:
            client: the one that asks, in whose name the budget counts.
        """
        self._most_bytes = MOST_BYTES if most_bytes is None else most_bytes
        self._left = self._most_bytes
        self._client = client
        self._free = FREE_BYTES
        self.counted_bytes = 0
        """Bytes that the budget counts."""
        self._kept: list[list[Any]] = []

    def list(self) -> list[Any]:
        """
        A new list for parts of the answer, which is freed in steps if the answer is refused.
        """
        kept: list[Any] = []
        self._kept.append(kept)
        return kept

    def forget(self) -> None:
        """
        Let go of those lists: the answer has all that is in them.
        """
        self._kept.clear()

    async def emptied(self) -> None:
        """
        Free those lists: the answer is refused.
        """
        for kept in self._kept:
            await released(kept)
        self._kept.clear()

    @property
    def is_empty(self) -> bool:
        """
        Whether there are no such lists, or they are freed.
        """
        return not self._kept

    def take(self, entries: int, size: int = 0) -> None:
        """
        Count *entries* of the answer that have *size* bytes of text or data together.

        Raises:
            CloseConnection: the answer would be too large, or its client has left.
        """
        taken = entries * ENTRY_BYTES + size
        self._left -= taken
        if self._left < 0:
            raise CloseConnection(f"the answer would take more than {self._most_bytes} bytes")
        self._free -= taken
        if self._free < 0 and self._client is not None:
            if self._client.is_closing:
                raise CloseConnection("its client has left")
            size, self._free = FREE_BYTES - self._free, FREE_BYTES
            self.counted_bytes += size
            self._client.budget.count_answer(size)

    def close(self) -> None:
        """
        The answer counts no more: its bytes do, or there is none.
        """
        counted, self.counted_bytes = self.counted_bytes, 0
        if counted and self._client is not None:
            self._client.budget.count_answer(-counted)
