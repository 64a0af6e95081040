"""
When an append begins a new segment, and why.

::

    reason               the active segment, and the append
    segment.bytes        together would be larger than that
    segment.ms           are further apart than that, less the jitter of the segment
    offset index full    every slot of ``segment.index.bytes`` has an entry
    time index full      every slot but the last has one
    offset too large     the last offset is too far from the base to be written as an int32

The rules apply before an append, and at no other time: without appends nothing rolls. The appender
and ``explain`` call the same function (Kafka's LogSegment.shouldRoll).
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

from enum import Enum

from barnabas.protocol.structs import struct
from barnabas.storage.index.base import LARGEST_RELATIVE_OFFSET
from barnabas.storage.segment.segment import LogSegment
from barnabas.storage.units import LONG_MAX


class RollReason(Enum):
    """
    Why an append begins a new segment.
    """

    SIZE = "segment.bytes"
    TIME = "segment.ms"
    OFFSET_INDEX_FULL = "offset index full"
    TIME_INDEX_FULL = "time index full"
    OFFSET_OVERFLOW = "offset too large"


class RollParams:
    """
    The facts of an append that decide whether it begins a new segment.

    The appender changes one object again and again.
    """

    __slots__ = (
        "max_offset_in_messages",
        "max_segment_bytes",
        "max_segment_ms",
        "max_timestamp_in_messages",
        "messages_size",
        "now",
    )

    def __init__(  # noqa: PLR0917 - they are its fields
        self,
        max_segment_ms: int,
        max_segment_bytes: int,
        max_timestamp_in_messages: int,
        max_offset_in_messages: int,
        messages_size: int,
        now: int,
    ) -> None:
        self.max_segment_ms = max_segment_ms
        self.max_segment_bytes = max_segment_bytes
        self.max_timestamp_in_messages = max_timestamp_in_messages
        self.max_offset_in_messages = max_offset_in_messages
        self.messages_size = messages_size
        self.now = now


class SegmentEnd:
    """
    The facts of a segment that decide whether an append begins a new one.

    The appender fills one object again and again.
    """

    __slots__ = (
        "base_offset",
        "created_ms",
        "first_timestamp",
        "offset_entries",
        "offset_full_at",
        "roll_jitter_ms",
        "size",
        "time_entries",
        "time_full_at",
    )

    def __init__(self) -> None:
        self.base_offset = 0
        self.size = 0
        self.roll_jitter_ms = 0
        self.first_timestamp = LONG_MAX
        """The largest timestamp of the first batch, ``LONG_MAX`` if it has none."""
        self.created_ms = 0
        self.offset_entries = 0
        self.offset_full_at = 0
        self.time_entries = 0
        self.time_full_at = 0

    @staticmethod
    def of(segment: LogSegment) -> SegmentEnd:
        """
        The facts of *segment* as it is now.
        """
        end = SegmentEnd()
        end.fill(segment)
        return end

    def fill(self, segment: LogSegment) -> None:
        """
        Take the facts of *segment* as it is now.
        """
        self.base_offset = segment.base_offset
        self.size = segment.size
        self.roll_jitter_ms = segment.roll_jitter_ms
        self.first_timestamp = segment.first_batch_timestamp() if self.size else LONG_MAX
        self.created_ms = segment.created_ms
        offsets, times = segment.offset_index, segment.time_index
        self.offset_entries = offsets.entries
        self.offset_full_at = offsets.full_at
        self.time_entries = times.entries
        self.time_full_at = times.full_at

    def waited_ms(self, now_ms: int, message_timestamp: int) -> int:
        """
        The age of the segment, by the timestamps of its first batch and of the next one. If the
        first batch has none, by the clock since the segment was opened.
        """
        if self.first_timestamp != LONG_MAX:
            return message_timestamp - self.first_timestamp
        return now_ms - self.created_ms


def reason_to_roll(end: SegmentEnd, params: RollParams) -> RollReason | None:
    """
    Why an append begins a new segment; None if it is written to this one.
    """
    if end.size > params.max_segment_bytes - params.messages_size:
        return RollReason.SIZE
    if end.size > 0:
        waited_ms = end.waited_ms(params.now, params.max_timestamp_in_messages)
        if waited_ms > params.max_segment_ms - end.roll_jitter_ms:
            return RollReason.TIME
    if end.offset_entries >= end.offset_full_at:
        return RollReason.OFFSET_INDEX_FULL
    if end.time_entries >= end.time_full_at:
        return RollReason.TIME_INDEX_FULL
    if not 0 <= params.max_offset_in_messages - end.base_offset <= LARGEST_RELATIVE_OFFSET:
        return RollReason.OFFSET_OVERFLOW
    return None


@struct
class SegmentRoom:
    """
    The room in a segment: an append that exceeds any of its fields begins the next one.
    """

    size_bytes: int
    """The largest append that fits."""
    latest_timestamp: int | None
    """The latest time, in ms, that a record may have; None if records do not say, or are none."""
    offset_entries: int
    time_entries: int
    last_offset: int


def room_in(end: SegmentEnd, params: RollParams) -> SegmentRoom:
    """
    The room that is left in a segment; of *params* only the limits matter.
    """
    latest: int | None = None
    if end.size > 0 and end.first_timestamp != LONG_MAX:
        latest = params.max_segment_ms - end.roll_jitter_ms + end.first_timestamp
    return SegmentRoom(
        params.max_segment_bytes - end.size,
        latest,
        max(0, end.offset_full_at - end.offset_entries),
        max(0, end.time_full_at - end.time_entries),
        end.base_offset + LARGEST_RELATIVE_OFFSET,
    )
