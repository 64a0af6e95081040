"""
Why a segment ended, in words.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from barnabas.protocol.records.batch import HEADER_SIZE
from barnabas.storage.config.log_config import LogConfig
from barnabas.storage.explain.endings import Cause, Ending
from barnabas.storage.explain.units import counted, duration, moment
from barnabas.storage.log.rolling import RollReason
from barnabas.storage.units import LONG_MAX


def ending_sentence(ending: Ending, config: LogConfig) -> str:
    """
    Args:
        config: of the topic, for the names of the settings that count.
    """
    return _SENTENCES[ending.cause](ending, config)


def _compacted(_ending: Ending, _config: LogConfig) -> str:
    return (
        "Compaction has written it, and decided where it ends (inferred: the cleaner has been"
        " here). Where the original segments ended is not stored."
    )


def _nothing_follows(_ending: Ending, _config: LogConfig) -> str:
    return (
        "Unknown: the next segment has no records, so what began it is not there. Retention begins"
        " a segment when all others are to go; or a batch was refused after it had begun one, as a"
        " duplicate is."
    )


def _by_the_clock(ending: Ending, config: LogConfig) -> str:
    return (
        "Probably its age by the clock (inferred): the first batch has no timestamp, so that the"
        f" clock of the broker counted, with {_limit_ms(config)}. No other rule explains it:"
        f" {_within(ending)}."
    )


def _unexplained(ending: Ending, _config: LogConfig) -> str:
    return (
        f"Unknown: under the settings of now it would have gone on, with {_within(ending)}. Either"
        " the settings were others then, or more was to be appended than the first batch that is"
        " in the next segment."
    )


def _rolled(ending: Ending, config: LogConfig) -> str:
    sentence = _by_rule(ending, config)
    return f"{sentence} That is under the settings supposed." if ending.is_supposed else sentence


def _by_rule(ending: Ending, config: LogConfig) -> str:
    batch, reason = ending.next_batch, ending.reason
    if reason is RollReason.OFFSET_INDEX_FULL:
        return (
            f"Its offset index was full: {ending.offset_entries:,} entries are all that"
            f" segment.index.bytes, {config.segment_index_bytes:,}, has room for."
        )
    if reason is RollReason.TIME_INDEX_FULL:
        return (
            f"Its time index was full: segment.index.bytes, {config.segment_index_bytes:,}, has"
            f" room for {ending.time_slots + 1:,} entries, of which one is kept for the end;"
            f" {ending.time_entries:,} were there."
        )
    assert batch is not None, "the other rules compare with a batch"
    following = f"the next batch (offset {batch.base_offset:,}, {counted(batch.size, 'byte')})"
    if reason is RollReason.SIZE:
        return (
            f"It was full: {ending.size:,} bytes and {following} are {ending.size + batch.size:,},"
            f" more than {_segment_bytes(config)}, {ending.segment_bytes:,}."
        )
    if reason is RollReason.TIME:
        assert ending.waited_ms is not None, "time explains it, so there are timestamps"
        return (
            f"It was old enough: {following} is of {moment(batch.max_timestamp)},"
            f" {duration(ending.waited_ms)} after the first batch here, more than"
            f" {_limit_ms(config)}."
        )
    return (
        f"Its offsets had come too far: {batch.last_offset:,} is too large for an index that counts"
        " from its base offset with 32 bits."
    )


def _jitter(ending: Ending, config: LogConfig) -> str:
    assert ending.next_batch is not None, "it was compared"
    assert ending.waited_ms is not None, "it was compared"
    least = ending.max_segment_ms - ending.waited_ms + 1
    return (
        f"Probably its age (inferred): the next batch (offset {ending.next_batch.base_offset:,})"
        f" is {duration(ending.waited_ms)} later than the first one here. {_limit_ms(config)},"
        f" less a jitter of {duration(least)} or more explains it. Each segment draws its jitter,"
        f" below segment.jitter.ms, {duration(ending.max_jitter_ms)}, and it is not stored."
    )


def _within(ending: Ending) -> str:
    """
    How far the segment was from each limit.
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
    assert room is not None, "there is room in the active segment, or none, but it is known"
    if ending.size == 0:
        return "It is the active segment, and empty: the next record goes here."
    if room.offset_entries == 0 or room.time_entries == 0:
        return "It is the active segment, and its index is full: any batch begins the next one."
    limits = [
        f"has more than {counted(max(0, room.size_bytes), 'byte')} ({_segment_bytes(config)})"
    ]
    if room.latest_timestamp is None:
        limits.append(f"comes {duration(config.max_segment_ms)} after it was opened (segment.ms)")
    elif room.latest_timestamp < LONG_MAX:
        jitter = ", less its jitter" if ending.max_jitter_ms else ""
        at = moment(room.latest_timestamp)
        limits.append(f"is of a time after {at} ({_limit_name(config)}{jitter})")
    listed = ", or ".join(limits)
    sentence = f"It is the active segment, and ends before a batch that {listed}."
    entries = min(room.offset_entries, room.time_entries)
    # An entry comes with so many bytes at least, a batch never has fewer.
    if entries * max(config.index_interval_bytes, HEADER_SIZE) < room.size_bytes:
        entries_left = counted(entries, "more entry")
        sentence += f" It also ends once an index has {entries_left} (segment.index.bytes)."
    return f"{sentence} Without a new record it never ends."


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
    Cause.COMPACTED: _compacted,
    Cause.NOTHING_FOLLOWS: _nothing_follows,
    Cause.UNEXPLAINED: _unexplained,
}
