"""
The memory that coordinators take for what clients want them to keep.

Records make the state of a coordinator, and a client can cause any number of them. Each kind of
state has a budget, over all shards of a broker together: what does not fit is refused before its
records are written. State that is read from the log counts, too, but is never refused.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

from barnabas.protocol.errors import CoordinatorNotAvailable


class Held:
    """
    Bytes that count from the moment when this object is made until it is freed.

    The object that takes the memory refers to it, so that both end together on every path.
    """

    __slots__ = ("_memory", "size")

    def __init__(self, memory: MemoryBudget, size: int) -> None:
        self._memory = memory
        self.size = size
        memory.used_bytes += size

    def grow(self, more: int) -> None:
        """
        Count *more* bytes, or fewer if it is negative.
        """
        self.size += more
        self._memory.used_bytes += more

    def __del__(self) -> None:
        self._memory.used_bytes -= self.size


class MemoryBudget:
    """
    The memory for one kind of state. ``used_bytes`` is the sum of the sizes of all ``Held`` of it.
    """

    __slots__ = ("limit_bytes", "used_bytes", "what")

    def __init__(self, what: str, limit_bytes: int) -> None:
        """
        Args:
            what: what takes the memory, for the error text.
        """
        self.what = what
        self.limit_bytes = limit_bytes
        self.used_bytes = 0

    def has_room(self, size: int, replaced: Held | None = None) -> bool:
        """
        Whether *size* bytes may take the place of *replaced*. Less than before always may.
        """
        more = size - (0 if replaced is None else replaced.size)
        return more <= 0 or self.used_bytes + more <= self.limit_bytes

    def check_room(self, size: int) -> None:
        """
        See whether there is room for *size* more bytes.

        Raises:
            CoordinatorNotAvailable: there is none.
        """
        if not self.has_room(size):
            raise CoordinatorNotAvailable(
                f"{self.what} have taken the {self.limit_bytes / 2**20:,.0f} MiB for them."
            )

    def hold(self, size: int) -> Held:
        """
        Count *size* bytes.
        """
        return Held(self, size)
