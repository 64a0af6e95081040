"""
The memory that members of groups take, in all groups of a broker together.

A member stays for as long as its session, up to ``group.max.session.timeout.ms``, after its client
has left. Without a limit one client could fill the memory of the broker with members.
"""

from __future__ import annotations

from typing import Final

MOST_BYTES: Final = 128 * 1024 * 1024


class Held:
    """
    Bytes that count from the moment when this object is made until it is freed.

    The object that takes the memory refers to it, so that both end together on every path.
    """

    __slots__ = ("_memory", "size")

    def __init__(self, memory: MemberMemory, size: int) -> None:
        self._memory = memory
        self.size = size
        memory.used_bytes += size

    def __del__(self) -> None:
        self._memory.used_bytes -= self.size


class MemberMemory:
    """
    The budget. ``used_bytes`` is the sum of the sizes of all ``Held`` of it.
    """

    __slots__ = ("limit_bytes", "used_bytes")

    def __init__(self, limit_bytes: int = MOST_BYTES) -> None:
        self.limit_bytes = limit_bytes
        self.used_bytes = 0

    def has_room(self, size: int, replaced: Held | None = None) -> bool:
        """
        Whether *size* bytes may take the place of *replaced*. Less than before always may.
        """
        more = size - (0 if replaced is None else replaced.size)
        return more <= 0 or self.used_bytes + more <= self.limit_bytes

    def hold(self, size: int) -> Held:
        """
        Count *size* bytes.
        """
        return Held(self, size)
