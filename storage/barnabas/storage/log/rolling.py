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
from typing import Protocol

from barnabas.protocol.structs import struct
from barnabas.storage.index.base import LARGEST_RELATIVE_OFFSET, Fillable


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


class Rollable(Protocol):
    """
    The facts of the active segment that the rules use.
    """

    @property
    def base_offset(self) -> int: ...

    @property
    def size(self) -> int: ...

    @property
    def roll_jitter_ms(self) -> int: ...

    @property
    def offset_index(self) -> Fillable: ...

    @property
    def time_index(self) -> Fillable: ...

    def time_waited_for_roll(self, now: int, message_timestamp: int) -> int: ...


def reason_to_roll(segment: Rollable, params: RollParams) -> RollReason | None:
    """
    Why an append begins a new segment; None if it is written to this one.
    """
    size = segment.size
    if size > params.max_segment_bytes - params.messages_size:
        return RollReason.SIZE
    if size > 0:
        waited = segment.time_waited_for_roll(params.now, params.max_timestamp_in_messages)
        if waited > params.max_segment_ms - segment.roll_jitter_ms:
            return RollReason.TIME
    index = segment.offset_index
    if index.entries >= index.full_at:
        return RollReason.OFFSET_INDEX_FULL
    index = segment.time_index
    if index.entries >= index.full_at:
        return RollReason.TIME_INDEX_FULL
    if not 0 <= params.max_offset_in_messages - segment.base_offset <= LARGEST_RELATIVE_OFFSET:
        return RollReason.OFFSET_OVERFLOW
    return None


@struct
class Room:
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


def room_in(segment: Rollable, params: RollParams) -> Room:
    """
    The room that is left in *segment*; of *params* only the limits matter.
    """
    latest: int | None = None
    if segment.size > 0:
        # By the clock the wait does not depend on the timestamp that is asked about.
        first, second = (segment.time_waited_for_roll(0, timestamp) for timestamp in (0, 1))
        if first != second:
            latest = params.max_segment_ms - segment.roll_jitter_ms - first
    return Room(
        params.max_segment_bytes - segment.size,
        latest,
        _free_entries(segment.offset_index),
        _free_entries(segment.time_index),
        segment.base_offset + LARGEST_RELATIVE_OFFSET,
    )


def _free_entries(index: Fillable) -> int:
    return max(0, index.full_at - index.entries)
