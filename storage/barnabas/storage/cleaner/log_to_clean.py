"""
What the cleaner is given to clean, and how it is told to stop.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.protocol.structs import struct

if TYPE_CHECKING:
    from barnabas.storage.log.log import Log
    from barnabas.storage.state_files.file_names import TopicPartition


class LogCleaningAborted(Exception):
    """
    Somebody needs the log that is being cleaned: to delete or truncate it, or to change its policy.
    """


class CleanerStopped(LogCleaningAborted):
    """
    The cleaner thread is to end.
    """


@struct(kw_only=True)
class LogToClean:
    """
    A log, and the part of it whose keys decide what stays (Kafka's class of that name).

    Invariants:

    1. ``uncleanable_offset`` is the base offset of a segment: whole segments are cleaned. It is
       below ``first_dirty_offset`` only if that lies in the segment which begins there.
    """

    log: Log
    first_dirty_offset: int
    """All below has been cleaned before."""
    uncleanable_offset: int
    """What is from here on stays as it is."""
    clean_bytes: int = 0
    """Of the segments that begin below the first dirty offset."""
    cleanable_bytes: int = 0
    """Of the segments from that of the first dirty offset on, up to the uncleanable one."""
    need_compaction_now: bool = False
    """Whether ``max.compaction.lag.ms`` asks for it, however little there is to clean."""

    @property
    def topic_partition(self) -> TopicPartition:
        return self.log.topic_partition

    @property
    def total_bytes(self) -> int:
        return self.clean_bytes + self.cleanable_bytes

    @property
    def cleanable_ratio(self) -> float:
        """
        How dirty the log is, from 0 to 1.
        """
        return self.cleanable_bytes / self.total_bytes if self.total_bytes else 0.0
