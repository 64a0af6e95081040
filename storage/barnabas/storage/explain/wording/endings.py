"""
The reason for the end of a segment, in words.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from barnabas.protocol.records.batch import HEADER_SIZE
from barnabas.storage.config.log_config import LogConfig
from barnabas.storage.explain.endings import Cause, Ending
from barnabas.storage.explain.units import duration, moment
from barnabas.storage.log.rolling import RollReason
from barnabas.storage.units import LONG_MAX, counted

_COMPACTED: Final = (
    "Compaction wrote it and chose its end (inferred: it is below the cleaner's checkpoint). The"
    " ends of the original segments are not stored."
)
_NOTHING_FOLLOWS: Final = (
    "Unknown: the next segment has no records. Retention begins a new segment before it deletes all"
    " others; or a batch began one and was then refused, for example as a duplicate."
)


def ending_sentence(ending: Ending, config: LogConfig) -> str:
    """
    Args:
        config: the configuration of the topic, for the names of the settings.
    """
    return _SENTENCES[ending.cause](ending, config)


def _by_the_clock(ending: Ending, config: LogConfig) -> str:
    return (
        "Probably its age by the clock (inferred): the first batch has no timestamp, so the clock"
        f" of the broker counted, with {_limit_ms(config)}. No other rule explains it:"
        f" {_within(ending)}."
    )


def _unexplained(ending: Ending, _config: LogConfig) -> str:
    return (
        f"Unknown: no limit of today's settings was reached, with {_within(ending)}. Either the"
        " settings have changed, or the append that rolled it was larger than the first batch of"
        " the next segment."
    )


def _rolled(ending: Ending, config: LogConfig) -> str:
    sentence = _by_rule(ending, config)
    return f"{sentence} The settings of --set were used." if ending.is_supposed else sentence


def _by_rule(ending: Ending, config: LogConfig) -> str:
    batch, reason = ending.next_batch, ending.reason
    if reason is RollReason.OFFSET_INDEX_FULL:
        return (
            f"Its offset index was full: segment.index.bytes, {config.segment_index_bytes:,}, has"
            f" room for {ending.offset_entries:,} entries."
        )
    if reason is RollReason.TIME_INDEX_FULL:
        return (
            f"Its time index was full: segment.index.bytes, {config.segment_index_bytes:,}, has"
            f" room for {ending.time_slots + 1:,} entries, one of them reserved for the end;"
            f" {ending.time_entries:,} were in use."
        )
    assert batch is not None, "the other rules compare with a batch"
    following = f"the next batch (offset {batch.base_offset:,}, {counted(batch.size, 'byte')})"
    if reason is RollReason.SIZE:
        return (
            f"It was full: its {ending.size:,} bytes and {following} are"
            f" {ending.size + batch.size:,}, more than {_segment_bytes(config)},"
            f" {ending.segment_bytes:,}."
        )
    if reason is RollReason.TIME:
        assert ending.waited_ms is not None, "time explains it, so there are timestamps"
        return (
            f"It was too old: {following} is of {moment(batch.max_timestamp)},"
            f" {duration(ending.waited_ms)} after the first batch of the segment, more than"
            f" {_limit_ms(config)}."
        )
    return (
        f"Its range of offsets was full: {batch.last_offset:,} is too far from its base offset for"
        " the 32 bits of an index entry."
    )


def _jitter(ending: Ending, config: LogConfig) -> str:
    assert ending.next_batch is not None, "it was compared"
    assert ending.waited_ms is not None, "it was compared"
    least = ending.max_segment_ms - ending.waited_ms + 1
    return (
        f"Probably its age (inferred): the next batch (offset {ending.next_batch.base_offset:,})"
        f" is {duration(ending.waited_ms)} later than the first one of the segment."
        f" {_limit_ms(config)}, less a jitter of {duration(least)} or more explains it. Each"
        f" segment draws a jitter below segment.jitter.ms, {duration(ending.max_jitter_ms)}, which"
        " is not stored."
    )


def _within(ending: Ending) -> str:
    """
    The size of the segment in each measure, beside its limit.
    """
    batch = ending.next_batch
    together = ending.size + (0 if batch is None else batch.size)
    parts = [f"{together:,} of {ending.segment_bytes:,} bytes"]
    if ending.waited_ms is not None:
        parts.append(f"{duration(ending.waited_ms)} of {duration(ending.max_segment_ms)}")
    parts.append(f"{ending.offset_entries:,} of {ending.offset_slots:,} offset index entries")
    parts.append(f"{ending.time_entries:,} of {ending.time_slots:,} time index entries")
    return ", ".join(parts[:-1]) + f" and {parts[-1]}"


def _active(ending: Ending, config: LogConfig) -> str:
    room = ending.room
    assert room is not None, "the room of the active segment is known"
    if ending.size == 0:
        return "It is the active segment, and empty: the next record is appended here."
    if room.offset_entries == 0 or room.time_entries == 0:
        return "It is the active segment, and its index is full: any batch begins the next segment."
    limits = [
        f"has more than {counted(max(0, room.size_bytes), 'byte')} ({_segment_bytes(config)})"
    ]
    if room.latest_timestamp is None:
        limits.append(f"comes {duration(config.max_segment_ms)} after its opening (segment.ms)")
    elif room.latest_timestamp < LONG_MAX:
        jitter = ", less its jitter" if ending.max_jitter_ms else ""
        at = moment(room.latest_timestamp)
        limits.append(f"is later than {at} ({_limit_name(config)}{jitter})")
    listed = ", or ".join(limits)
    sentence = f"It is the active segment. It ends before a batch that {listed}."
    entries = min(room.offset_entries, room.time_entries)
    # At least so many bytes are between two entries: no batch is smaller.
    if entries * max(config.index_interval_bytes, HEADER_SIZE) < room.size_bytes:
        entries_left = counted(entries, "more entry")
        sentence += f" It also ends after {entries_left} in an index (segment.index.bytes)."
    return f"{sentence} Without a new record it does not end."


def _limit_name(config: LogConfig) -> str:
    return "segment.ms" if config.max_segment_ms == config.segment_ms else "max.compaction.lag.ms"


def _limit_ms(config: LogConfig) -> str:
    return f"{_limit_name(config)}, {duration(config.max_segment_ms)}"


def _segment_bytes(config: LogConfig) -> str:
    return "segment.bytes" if config.internal_segment_bytes is None else "internal.segment.bytes"


_SENTENCES: Final[Mapping[Cause, Callable[[Ending, LogConfig], str]]] = {
    Cause.ACTIVE: _active,
    Cause.ROLLED: _rolled,
    Cause.JITTER: _jitter,
    Cause.CLOCK: _by_the_clock,
    Cause.COMPACTED: lambda _ending, _config: _COMPACTED,
    Cause.NOTHING_FOLLOWS: lambda _ending, _config: _NOTHING_FOLLOWS,
    Cause.UNEXPLAINED: _unexplained,
}
