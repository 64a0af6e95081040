"""
The sums of what the threads of a cleaner have done since the start.
"""

from __future__ import annotations

import threading

from barnabas.storage.cleaner.stats import CleanerStats


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
