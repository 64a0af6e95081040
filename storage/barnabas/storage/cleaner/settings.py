"""
The settings of the cleaner.
"""

from __future__ import annotations

import sys

from barnabas.protocol.structs import struct
from barnabas.storage.cleaner.offset_map import BYTES_PER_ENTRY
from barnabas.storage.units import INT_MAX, KiB, MiB


@struct(kw_only=True)
class CleanerSettings:
    """
    The ``log.cleaner.*`` options that are not defaults of a topic's (Kafka's CleanerConfig).

    Memory is shared evenly among the threads.
    """

    enabled: bool = True
    threads: int = 1
    dedupe_buffer_bytes: int = 128 * MiB
    """For the offset maps of all threads."""
    load_factor: float = 0.9
    """The part of the slots of a map that may be taken."""
    io_buffer_bytes: int = 512 * KiB
    """For the reads and writes of all threads at a time."""
    max_message_bytes: int = 1 * MiB + 12
    """Batches up to this size are expected where a topic allows less."""
    max_io_bytes_per_second: float = sys.float_info.max
    """The limit for reads and writes of all threads together."""
    backoff_ms: int = 15_000
    """How long a thread rests when no log was due."""

    @property
    def map_bytes(self) -> int:
        """
        For the offset map of each thread: at most 2 GiB, however much more there is.
        """
        return min(self.dedupe_buffer_bytes // max(1, self.threads), INT_MAX)

    @property
    def room(self) -> float:
        """
        The number of keys that each of these maps may hold.
        """
        return self.map_bytes // BYTES_PER_ENTRY * self.load_factor

    @property
    def read_buffer_bytes(self) -> int:
        """
        The bytes that each thread reads at a time; it writes as many.
        """
        return self.io_buffer_bytes // max(1, self.threads) // 2

    def check(self) -> None:
        """
        Raises:
            ValueError: not a single key has room.
        """
        if not self.room > 1:  # NaN is refused as well
            raise ValueError(
                "offset map is too small to fit in even a single message, so log cleaning will"
                " never make progress. You can increase log.cleaner.dedupe.buffer.size or decrease"
                " log.cleaner.threads"
            )

    def check_change(self, new: CleanerSettings) -> None:
        """
        Raises:
            ValueError: *new* may not be put in the place of these while the broker runs.
        """
        new.check()
        if new.threads < 1:
            raise ValueError("Log cleaner threads should be at least 1")
        if new.threads < self.threads // 2:
            raise ValueError(
                "Log cleaner threads cannot be reduced to less than half the current value"
                f" {self.threads}"
            )
        if new.threads > self.threads * 2:
            raise ValueError(
                "Log cleaner threads cannot be increased to more than double the current value"
                f" {self.threads}"
            )
