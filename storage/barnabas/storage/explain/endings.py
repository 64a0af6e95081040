"""
Why a segment ended where it did.

What rolled a segment is not written anywhere. What is there is the segment as the next append found
it, and that append: the first batch of the following segment. So the question that the broker asked
then is asked again, of the same function. What is not there any more are the settings of then, the
jitter that the segment drew, and the clock; what depends on them is said to be inferred.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from barnabas.protocol.named_tuple import NamedTuple
from barnabas.protocol.structs import struct
from barnabas.storage.config.log_config import LogConfig
from barnabas.storage.explain.looking import LookedAt
from barnabas.storage.index.offset_index import OffsetIndex
from barnabas.storage.index.time_index import TimeIndex
from barnabas.storage.log.rolling import RollParams, RollReason, Room, reason_to_roll, room_in
from barnabas.storage.segment.records import BatchHeader
from barnabas.storage.segment.segment import LogSegment
from barnabas.storage.units import LONG_MAX


class Cause(Enum):
    """
    What there is to say about the end of a segment.
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
    How much of an explanation is read, and how much concluded.
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
    The end of a segment, with the numbers that the rules compare.
    """

    cause: Cause
    reason: RollReason | None = None
    size: int
    segment_bytes: int
    waited_ms: int | None = None
    """Between the first batch and the one that was to be appended; None if timestamps lack."""
    max_segment_ms: int
    max_jitter_ms: int = 0
    offset_entries: int
    offset_slots: int
    time_entries: int
    time_slots: int
    next_batch: BatchHeader | None = None
    is_supposed: bool = False
    """Whether the settings that explain it are only supposed."""
    room: Room | None = None
    """What the active segment can still take."""

    @property
    def certainty(self) -> Certainty:
        return _CERTAINTY[self.cause]


class _Slots(NamedTuple):
    """
    An index as it was before its segment ended: with room for as many entries as settings say.
    """

    entries: int
    full_at: int

    @property
    def is_full(self) -> bool:
        return self.entries >= self.full_at


class _AtItsEnd:
    """
    A segment as the append found it that went to the next one.
    """

    def __init__(self, segment: LogSegment, index_bytes: int, jitter_ms: int = 0) -> None:
        self._segment = segment
        self.base_offset = segment.base_offset
        self.size = segment.size
        self.roll_jitter_ms = jitter_ms
        offsets = segment.offset_index
        self.offset_index = _Slots(offsets.entries, OffsetIndex.slots_in(index_bytes))
        self.time_index = _Slots(
            segment.time_index.entries - _last_was_made_at_the_end(segment),
            TimeIndex.slots_in(index_bytes),
        )

    def time_waited_for_roll(self, now: int, message_timestamp: int) -> int:
        if self._segment.first_batch_timestamp() == LONG_MAX:
            # By the clock of then. No wait explains nothing, which is what is known of it.
            return 0
        return self._segment.time_waited_for_roll(now, message_timestamp)


def _last_was_made_at_the_end(segment: LogSegment) -> bool:
    """
    Whether the last time entry came when the segment ended: it is of a batch behind the last one
    that has an offset entry, and all others come together with one of these.
    """
    times, offsets = segment.time_index, segment.offset_index
    if not times.entries:
        return False
    return not offsets.entries or times.last_entry.offset > offsets.last_offset


def ending_of(looked_at: LookedAt, segment: LogSegment) -> Ending:
    """
    Why *segment* ended, or what it can still take.
    """
    log = looked_at.log
    following = log.segments.higher_segment(segment.base_offset)
    if following is None:
        return _active(segment, looked_at.settings.config)
    noted = looked_at.cleaner_checkpoint
    if log.config.compact and noted is not None and segment.base_offset < noted:
        config = looked_at.settings.stored
        return _described(segment, config, Cause.COMPACTED)
    batch = next(following.log.headers(), None)
    if batch is None:
        return _described(segment, looked_at.settings.stored, *_without_batch(segment, looked_at))
    ending = _rolled(segment, batch, looked_at.settings.stored)
    if ending is None and looked_at.settings.config != looked_at.settings.stored:
        ending = _rolled(segment, batch, looked_at.settings.config, is_supposed=True)
    if ending is not None:
        return ending
    by_clock = segment.first_batch_timestamp() == LONG_MAX
    cause = Cause.CLOCK if by_clock else Cause.UNEXPLAINED
    return _described(segment, looked_at.settings.stored, cause, batch=batch)


def _active(segment: LogSegment, config: LogConfig) -> Ending:
    params = RollParams(config.max_segment_ms, config.segment_size, -1, segment.base_offset, 0, 0)
    return _described(segment, config, Cause.ACTIVE, room=room_in(segment, params))


def _without_batch(segment: LogSegment, looked_at: LookedAt) -> tuple[Cause, RollReason | None]:
    config = looked_at.settings.stored
    end = _AtItsEnd(segment, config.segment_index_bytes)
    if end.offset_index.is_full:
        return Cause.ROLLED, RollReason.OFFSET_INDEX_FULL
    if end.time_index.is_full:
        return Cause.ROLLED, RollReason.TIME_INDEX_FULL
    return Cause.NOTHING_FOLLOWS, None


def _rolled(
    segment: LogSegment, batch: BatchHeader, config: LogConfig, *, is_supposed: bool = False
) -> Ending | None:
    params = RollParams(
        max_segment_ms=config.max_segment_ms,
        max_segment_bytes=config.segment_size,
        max_timestamp_in_messages=batch.max_timestamp,
        max_offset_in_messages=batch.last_offset,
        messages_size=batch.size,
        now=0,
    )
    # A jitter is drawn from 0 up to, not including, this.
    most = min(config.segment_jitter_ms, config.segment_ms)
    for jitter_ms, cause in ((0, Cause.ROLLED), (max(0, most - 1), Cause.JITTER)):
        end = _AtItsEnd(segment, config.segment_index_bytes, jitter_ms)
        reason = reason_to_roll(end, params)
        if reason is not None:
            return _described(segment, config, cause, reason, batch=batch, is_supposed=is_supposed)
    return None


def _described(
    segment: LogSegment,
    config: LogConfig,
    cause: Cause,
    reason: RollReason | None = None,
    *,
    batch: BatchHeader | None = None,
    room: Room | None = None,
    is_supposed: bool = False,
) -> Ending:
    end = _AtItsEnd(segment, config.segment_index_bytes)
    first = segment.first_batch_timestamp()
    times = segment.time_index.entries if cause is Cause.ACTIVE else end.time_index.entries
    return Ending(
        cause=cause,
        reason=reason,
        size=segment.size,
        segment_bytes=config.segment_size,
        waited_ms=None if batch is None or first == LONG_MAX else batch.max_timestamp - first,
        max_segment_ms=config.max_segment_ms,
        max_jitter_ms=min(config.segment_jitter_ms, config.segment_ms),
        offset_entries=end.offset_index.entries,
        offset_slots=end.offset_index.full_at,
        time_entries=times,
        time_slots=end.time_index.full_at,
        next_batch=batch,
        is_supposed=is_supposed,
        room=room,
    )
