"""
The reason why a segment ended at its last batch.

No file says why a segment was rolled. But the segment is there as the next append found it, and so
is that append: the first batch of the following segment. So the broker's own function decides
again. The settings of that time, the jitter of the segment and the clock are lost: a reason that
depends on them is marked as inferred.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from barnabas.protocol.structs import struct
from barnabas.storage.config.log_config import LogConfig
from barnabas.storage.explain.logs import ReadOnlyLog
from barnabas.storage.index.offset_index import OffsetIndex
from barnabas.storage.index.time_index import TimeIndex
from barnabas.storage.log.rolling import (
    RollParams,
    RollReason,
    SegmentEnd,
    SegmentRoom,
    reason_to_roll,
    room_in,
)
from barnabas.storage.segment.records import BatchHeader
from barnabas.storage.segment.segment import LogSegment
from barnabas.storage.units import LONG_MAX


class Cause(Enum):
    """
    The kinds of reasons.
    """

    ACTIVE = "it has not ended: records are appended to it"
    ROLLED = "a rule explains it"
    JITTER = "segment.ms explains it, with a jitter that is not stored"
    CLOCK = "nothing explains it but segment.ms by the clock, which leaves no trace"
    COMPACTED = "compaction wrote it; where the original segments ended is not stored"
    NOTHING_FOLLOWS = "the batch that began the next segment is not there"
    UNEXPLAINED = "no rule explains it under the settings of now"


class Certainty(Enum):
    """
    Whether a reason was read from the files or concluded.
    """

    CERTAIN = "certain"
    INFERRED = "inferred"
    UNKNOWN = "unknown"


_CERTAINTY: Final = {
    Cause.ACTIVE: Certainty.CERTAIN,
    Cause.ROLLED: Certainty.CERTAIN,
    Cause.JITTER: Certainty.INFERRED,
    Cause.CLOCK: Certainty.INFERRED,
    Cause.COMPACTED: Certainty.INFERRED,
    Cause.NOTHING_FOLLOWS: Certainty.UNKNOWN,
    Cause.UNEXPLAINED: Certainty.UNKNOWN,
}


@struct(kw_only=True)
class Ending:
    """
    The reason for the end of a segment, with the numbers that the rules compare.
    """

    cause: Cause
    reason: RollReason | None = None
    size: int
    segment_bytes: int
    waited_ms: int | None = None
    """From the first batch to the next append; None without timestamps."""
    max_segment_ms: int
    max_jitter_ms: int = 0
    offset_entries: int
    offset_slots: int
    time_entries: int
    time_slots: int
    next_batch: BatchHeader | None = None
    is_supposed: bool = False
    """Whether the reason needs the settings of ``--set``."""
    room: SegmentRoom | None = None
    """The room that is left in the active segment."""

    @property
    def certainty(self) -> Certainty:
        return _CERTAINTY[self.cause]


def _at_its_end(segment: LogSegment) -> SegmentEnd:
    """
    A segment at the time of the append that rolled it. The clock of that time is unknown; a wait of
    0 ms rolls nothing.
    """
    end = SegmentEnd.of(segment)
    end.created_ms = 0
    end.time_entries -= _last_was_made_at_the_end(segment)
    return end


def _with_room(end: SegmentEnd, config: LogConfig, jitter_ms: int = 0) -> SegmentEnd:
    """
    The same with the room of the settings in its indexes.
    """
    end.roll_jitter_ms = jitter_ms
    end.offset_full_at = OffsetIndex.slots_in(config.segment_index_bytes)
    end.time_full_at = TimeIndex.slots_in(config.segment_index_bytes)
    return end


def _last_was_made_at_the_end(segment: LogSegment) -> bool:
    """
    Whether the last time entry was added at the end of the segment: its batch is behind that of
    the last offset entry, and all other time entries come together with an offset entry.
    """
    times, offsets = segment.time_index, segment.offset_index
    if not times.entries:
        return False
    return not offsets.entries or times.last_entry.offset > offsets.last_offset


def ending_of(opened: ReadOnlyLog, segment: LogSegment) -> Ending:
    """
    Why *segment* ended, or the room that is left in it.
    """
    log = opened.log
    following = log.segments.higher_segment(segment.base_offset)
    if following is None:
        return _active(segment, opened.settings.config)
    stored, supposed = opened.settings.stored, opened.settings.config
    noted = opened.cleaner_checkpoint
    if log.config.compact and noted is not None and segment.base_offset < noted:
        return _described(_at_its_end(segment), stored, Cause.COMPACTED)
    end, batch = _end_of(opened, segment, following)
    if batch is None:
        return _described(end, stored, *_without_batch(_with_room(end, stored)))
    ending = _rolled(end, batch, stored)
    if ending is None and supposed is not stored:
        ending = _rolled(end, batch, supposed, is_supposed=True)
    if ending is not None:
        return ending
    cause = Cause.CLOCK if end.first_timestamp == LONG_MAX else Cause.UNEXPLAINED
    return _described(end, stored, cause, batch=batch)


def _end_of(
    opened: ReadOnlyLog, segment: LogSegment, following: LogSegment
) -> tuple[SegmentEnd, BatchHeader | None]:
    """
    A segment at its end, and the first batch of the next one. They take several looks at files, and
    do not change as long as the log is open.
    """
    known = opened.ends.get(segment.base_offset)
    if known is None:
        known = _at_its_end(segment), next(following.log.headers(), None)
        opened.ends[segment.base_offset] = known
    return known


def _active(segment: LogSegment, config: LogConfig) -> Ending:
    params = RollParams(config.max_segment_ms, config.segment_size, -1, segment.base_offset, 0, 0)
    end = SegmentEnd.of(segment)
    return _described(end, config, Cause.ACTIVE, room=room_in(end, params))


def _without_batch(end: SegmentEnd) -> tuple[Cause, RollReason | None]:
    if end.offset_entries >= end.offset_full_at:
        return Cause.ROLLED, RollReason.OFFSET_INDEX_FULL
    if end.time_entries >= end.time_full_at:
        return Cause.ROLLED, RollReason.TIME_INDEX_FULL
    return Cause.NOTHING_FOLLOWS, None


def _rolled(
    end: SegmentEnd, batch: BatchHeader, config: LogConfig, *, is_supposed: bool = False
) -> Ending | None:
    params = RollParams(
        max_segment_ms=config.max_segment_ms,
        max_segment_bytes=config.segment_size,
        max_timestamp_in_messages=batch.max_timestamp,
        max_offset_in_messages=batch.last_offset,
        messages_size=batch.size,
        now=0,
    )
    # The jitter is a random number below this.
    most = min(config.segment_jitter_ms, config.segment_ms)
    for jitter_ms, cause in ((0, Cause.ROLLED), (max(0, most - 1), Cause.JITTER)):
        reason = reason_to_roll(_with_room(end, config, jitter_ms), params)
        if reason is not None:
            return _described(end, config, cause, reason, batch=batch, is_supposed=is_supposed)
    return None


def _described(
    end: SegmentEnd,
    config: LogConfig,
    cause: Cause,
    reason: RollReason | None = None,
    *,
    batch: BatchHeader | None = None,
    room: SegmentRoom | None = None,
    is_supposed: bool = False,
) -> Ending:
    end = _with_room(end, config)
    first = end.first_timestamp
    return Ending(
        cause=cause,
        reason=reason,
        size=end.size,
        segment_bytes=config.segment_size,
        waited_ms=None if batch is None or first == LONG_MAX else batch.max_timestamp - first,
        max_segment_ms=config.max_segment_ms,
        max_jitter_ms=min(config.segment_jitter_ms, config.segment_ms),
        offset_entries=end.offset_entries,
        offset_slots=end.offset_full_at,
        time_entries=end.time_entries,
        time_slots=end.time_full_at,
        next_batch=batch,
        is_supposed=is_supposed,
        room=room,
    )
