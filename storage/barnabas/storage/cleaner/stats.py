"""
The numbers of one cleaning, and the sums of all since the start.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

import threading
from typing import Final

from barnabas.storage.clock import Clock

_STEP: Final = 1024


class CleanerStats:
    """
    Counters of one cleaning, and how long its two passes took (Kafka's class of that name).

    Sizes are bytes, messages are records. One thread counts.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._started = clock.monotonic()
        self._mapped = self._ended = self._started
        self.map_bytes_read = 0
        self.map_messages_read = 0
        self.bytes_read = 0
        self.messages_read = 0
        self.invalid_messages_read = 0
        """Records without a key, which a compacted log cannot keep."""
        self.bytes_written = 0
        self.messages_written = 0
        self.buffer_utilization = 0.0
        """The part of the offset map that was taken, from 0 to 1."""

    def index_done(self) -> None:
        """
        Note that the first pass has ended.
        """
        self._mapped = self._ended = self._clock.monotonic()

    def all_done(self) -> None:
        self._ended = self._clock.monotonic()

    @property
    def elapsed_secs(self) -> float:
        return self._ended - self._started

    @property
    def elapsed_index_secs(self) -> float:
        """
        Of the first pass, which reads the dirty part.
        """
        return self._mapped - self._started

    @property
    def size_reduction(self) -> float:
        """
        The part of the bytes that was removed, from 0 to 1.
        """
        return 1 - self.bytes_written / self.bytes_read if self.bytes_read else 0.0

    def __str__(self) -> str:
        """
        All of it in one line, as it stands in the server's log.
        """
        rewriting = self.elapsed_secs - self.elapsed_index_secs
        invalid = self.invalid_messages_read
        return (
            f"in {self.elapsed_secs:.1f} s: "
            f"read {_rate(self.map_bytes_read, self.elapsed_index_secs)} of dirty batches with "
            f"{self.map_messages_read:,d} records, offset map {self.buffer_utilization:.1%} full; "
            f"rewrote {_rate(self.bytes_read, rewriting)} with {self.messages_read:,d} records to "
            f"{_size(self.bytes_written)} with {self.messages_written:,d}, "
            f"{self.size_reduction:.1%} less"
            + (f"; {invalid:,d} records had no key" if invalid else "")
        )


class CleanerTotals:
    """
    Cleanings, the bytes that they read and wrote, and segments that retention has deleted.

    Safe from any thread.
    """

    def __init__(self) -> None:
        self.cleanings = 0
        self.bytes_read = 0
        self.bytes_written = 0
        self.deleted_segments = 0
        self._lock = threading.Lock()

    def add_cleaning(self, stats: CleanerStats) -> None:
        """
        Count a cleaning that has ended.
        """
        with self._lock:
            self.cleanings += 1
            self.bytes_read += stats.bytes_read
            self.bytes_written += stats.bytes_written

    def add_deleted(self, segments: int) -> None:
        """
        Count segments of compacted logs that retention has deleted.
        """
        with self._lock:
            self.deleted_segments += segments


def _size(count: float) -> str:
    for unit in ("B", "KiB", "MiB"):
        if count < _STEP:
            return f"{count:,.1f} {unit}".replace(".0 B", " B")
        count /= _STEP
    return f"{count:,.1f} GiB"


def _rate(size: int, seconds: float) -> str:
    return f"{_size(size)} ({_size(size / seconds)}/s)" if seconds > 0 else _size(size)
