"""
The offsets between which a log may be read.

::

    log start     last stable offset        high watermark      log end
        |------------------|----------------------|----------------|
         all consumers      READ_UNCOMMITTED       none: not acknowledged yet
                            only
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

import logging
import threading
from enum import Enum

from barnabas.protocol.errors import OffsetOutOfRange
from barnabas.storage.log.local_log import LocalLog
from barnabas.storage.log.reads import find_offset
from barnabas.storage.producers.state import ProducerStateManager
from barnabas.storage.segment.offset_metadata import LogOffsetMetadata

logger = logging.getLogger(__name__)


class LogStartOffsetIncrementReason(Enum):
    """
    Why the log starts later than before.
    """

    SEGMENT_DELETION = "segment deletion"
    CLIENT_RECORD_DELETION = "client delete records request"
    SNAPSHOT_GENERATED = "snapshot generated"


class Watermarks:
    """
    The offsets of one log.

    Invariants:

    1. ``log_start_offset`` <= ``last_stable_offset`` <= ``high_watermark`` <= log end offset; but
       where a batch of an open transaction reaches over the start of the log, the last stable
       offset is that of the batch, as in Kafka.
    2. The recovery point is not below ``log_start_offset``: records there need no recovery.

    Reading needs no lock. To change them the log's lock is taken, or held already.
    """

    def __init__(
        self,
        local: LocalLog,
        producers: ProducerStateManager,
        lock: threading.RLock,
        *,
        log_start_offset: int,
        high_watermark: int,
    ) -> None:
        self._local = local
        self._producers = producers
        self._lock = lock
        self.log_start_offset = log_start_offset
        self._high_watermark = LogOffsetMetadata(log_start_offset)
        self._first_unstable_offset: LogOffsetMetadata | None = None
        """The start of the first transaction that is not decided, or whose marker is not below the
        high watermark."""
        self.start_at(log_start_offset)
        self.update_high_watermark(high_watermark)

    # The start.

    def start_at(self, offset: int) -> None:
        """
        Move the start of the log to *offset*.
        """
        self.log_start_offset = offset
        if self.high_watermark < offset:
            self.update_high_watermark(offset)
        self._local.raise_recovery_point(offset)

    def truncate_to(self, offset: int) -> None:
        """
        Follow the end of the log, which was truncated to *offset*.
        """
        self.log_start_offset = min(offset, self.log_start_offset)
        self.follow_log_end_offset()

    def restart_at(self, offset: int) -> None:
        """
        Start and end at *offset*: all records were removed.
        """
        self.log_start_offset = offset
        self.update_high_watermark(offset)

    # The high watermark.

    @property
    def high_watermark(self) -> int:
        return self._high_watermark.message_offset

    def update_high_watermark(self, offset: int) -> int:
        """
        Move the high watermark to *offset*, or to the start or end of the log if that is outside.

        Returns:
            Where it is now.
        """
        with self._lock:
            end = self._local.next_offset_metadata
            if offset >= end.message_offset:
                self._set_high_watermark(end)
            else:
                self._set_high_watermark(LogOffsetMetadata(max(offset, self.log_start_offset)))
            return self._high_watermark.message_offset

    def follow_log_end_offset(self) -> None:
        """
        Update the place of the high watermark after a roll or an append has moved the log's end.
        """
        end = self._local.next_offset_metadata
        if self._high_watermark.message_offset >= end.message_offset:
            self._set_high_watermark(end)

    def fetch_high_watermark_metadata(self, *, nowait: bool = False) -> LogOffsetMetadata:
        """
        The high watermark with its place in the log.

        Raises:
            WouldBlock: with *nowait*, the page cache lacks some of the bytes that are searched.
        """
        found = self._high_watermark
        if not found.message_offset_only:
            return found
        with self._lock:
            found = self._place(self._high_watermark.message_offset, nowait=nowait)
            self._high_watermark = found
        return found

    def _set_high_watermark(self, new: LogOffsetMetadata) -> None:
        offset = new.message_offset
        if offset < self._high_watermark.message_offset:
            logger.warning(
                "%s: non-monotonic update of high watermark from %s to %s",
                self._local.directory.topic_partition,
                self._high_watermark,
                new,
            )
        self._high_watermark = new
        self._producers.on_high_watermark_updated(offset)
        self.update_first_unstable_offset()

    # The last stable offset.

    @property
    def last_stable_offset(self) -> int:
        first, high_watermark = self._first_unstable_offset, self._high_watermark.message_offset
        if first is None or first.message_offset >= high_watermark:
            return high_watermark
        return first.message_offset

    def fetch_last_stable_offset_metadata(self, *, nowait: bool = False) -> LogOffsetMetadata:
        """
        The last stable offset with its place in the log; errors as that of the high watermark.
        """
        high_watermark = self.fetch_high_watermark_metadata(nowait=nowait)
        first = self._first_unstable_offset
        if first is None or first.message_offset >= high_watermark.message_offset:
            return high_watermark
        if not first.message_offset_only:
            return first
        with self._lock:
            found = self._place(first.message_offset, nowait=nowait)
            if self._first_unstable_offset is first:
                self._first_unstable_offset = found
        return found

    def update_first_unstable_offset(self) -> None:
        """
        Update the first unstable offset after transactions or the start of the log have changed.

        A transaction that began below the start of the log counts from the start on: the rest of
        it is not known to be decided.
        """
        first = self._producers.transactions.first_unstable_offset()
        if first is not None and (
            first.message_offset_only or first.message_offset < self.log_start_offset
        ):
            first = self._place(max(first.message_offset, self.log_start_offset))
        self._first_unstable_offset = first

    def _place(self, offset: int, *, nowait: bool = False) -> LogOffsetMetadata:
        try:
            return find_offset(
                self._local.segments, offset, self._local.next_offset_metadata, nowait=nowait
            )
        except OffsetOutOfRange:
            return LogOffsetMetadata(offset)
