"""
What waiting fetches want of a partition.
"""

from __future__ import annotations

from typing import Protocol


class Waiter(Protocol):
    """
    A fetch that waits.
    """

    def arrived(self, size: int, /) -> None:
        """
        So many more bytes can be read that count towards ``min_bytes``.
        """

    def wake(self) -> None:
        """
        Look again.
        """


class Watched(Protocol):
    """
    A partition that tells its watches of what can be read.
    """

    def add_watch(self, watch: Watch) -> None:
        """
        Notify *watch* of all bytes that become readable from now on.
        """

    def remove_watch(self, watch: Watch) -> None:
        """
        Notify *watch* no more.
        """


class Watch:
    """
    What one waiting fetch wants of one partition.

    ``available`` counts the readable bytes, never more than the partition's limit in the request:
    bytes beyond it would not be part of the answer, so they do not count towards ``min_bytes``
    (Kafka ``DelayedFetch.tryComplete``). ``segment`` is the base offset of the one the fetch would
    read from, -1 where that is not known.
    """

    __slots__ = ("available", "fetch", "limit", "partition", "read_committed", "segment")

    def __init__(
        self,
        fetch: Waiter,
        partition: Watched,
        *,
        available: int,
        limit: int,
        segment: int,
        read_committed: bool,
    ) -> None:
        self.fetch = fetch
        self.partition = partition
        self.available = available
        self.limit = limit
        self.segment = segment
        self.read_committed = read_committed

    def more(self, size: int) -> None:
        """
        That many more bytes can be read.
        """
        added = min(size, self.limit - self.available)
        if added > 0:
            self.available += added
            self.fetch.arrived(added)

    def changed(self) -> None:
        """
        The partition is not what it was: gone, offline, truncated. The fetch has to look again.
        """
        self.fetch.wake()
