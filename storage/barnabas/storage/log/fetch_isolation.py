"""
How far a read of the log may go.
"""

from __future__ import annotations

from enum import Enum


class FetchIsolation(Enum):
    """
    The bound of a read.
    """

    LOG_END = "log end"
    """Nothing: replicas, and coordinators that load their state."""
    HIGH_WATERMARK = "high watermark"
    """Up to the acknowledged records: consumers that read uncommitted records."""
    TXN_COMMITTED = "last stable offset"
    """Up to the last stable offset: consumers that read committed records, with the transactions
    that were aborted."""
