"""
What is known about a log before its files are looked at.
"""

from __future__ import annotations

from enum import StrEnum

from barnabas.protocol.structs import struct


class DirectoryState(StrEnum):
    """
    How the broker of a log directory ended, as far as it did.
    """

    CLEAN = "stopped cleanly"
    CRASHED = "not stopped cleanly"
    IN_USE = "in use"
    """A broker has the lock: the end of a log grows, and files come and go."""
    UNKNOWN = "unknown"
    """It is no log directory, or somebody has copied a log out of one."""


@struct(kw_only=True)
class LogContext:
    """
    What lies beside the directory of a log says about it; None where nothing does.
    """

    state: DirectoryState = DirectoryState.UNKNOWN
    recovery_point: int | None = None
    log_start_offset: int | None = None
    high_watermark: int | None = None
    cleaner_offset: int | None = None
    may_be_compacted: bool = True
    """Whether batches may be missing in the middle."""
    preallocate: bool | None = None

    @property
    def live(self) -> bool:
        return self.state is DirectoryState.IN_USE
