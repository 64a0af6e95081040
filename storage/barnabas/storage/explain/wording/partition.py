"""
The state of a partition and its settings, in words.
"""

from __future__ import annotations

from collections.abc import Iterator

from barnabas.storage.explain.known import BrokerTimes
from barnabas.storage.explain.logs import Condition, ReadOnlyLog
from barnabas.storage.explain.units import duration, rounded_size, size
from barnabas.storage.log.retention import UNLIMITED
from barnabas.storage.units import LONG_MAX, counted

_OF_ALL = (
    "cleanup.policy",
    "segment.bytes",
    "internal.segment.bytes",
    "segment.ms",
    "segment.jitter.ms",
    "segment.index.bytes",
    "index.interval.bytes",
)
_OF_DELETED = ("retention.ms", "retention.bytes")
_OF_COMPACTED = (
    "min.cleanable.dirty.ratio",
    "min.compaction.lag.ms",
    "max.compaction.lag.ms",
    "delete.retention.ms",
)


def partition_sentences(opened: ReadOnlyLog) -> list[str]:
    """
    Its offsets and size, its place, and the state of its log directory.
    """
    log = opened.log
    start, end = log.log_start_offset, log.log_end_offset
    segments = counted(log.segments.number_of_segments, "segment")
    if end > start:
        held = f"Offsets {start:,} to {end - 1:,} in {segments}, {size(log.size)}."
    else:
        held = f"No records; the next one gets offset {end:,}. It has {segments}, {size(log.size)}."
    return [held, *_offsets(opened), f"{_condition(opened)}", *_waiting(opened)]


def _offsets(opened: ReadOnlyLog) -> Iterator[str]:
    log = opened.log
    base = log.first_segment_base_offset
    if log.log_start_offset > base:
        yield (
            f"The log start offset is {log.log_start_offset:,}: offsets from {base:,} up to it are"
            " on the disk but can no longer be read."
        )
    elif base > 0:
        yield f"Offsets below {base:,} were deleted."
    if log.high_watermark < log.log_end_offset:
        yield f"The high watermark in the checkpoint is {log.high_watermark:,}."
    if log.last_stable_offset < log.high_watermark:
        yield (
            f"A transaction is open: the last stable offset is {log.last_stable_offset:,}, and"
            " read_committed consumers read up to it."
        )


def _condition(opened: ReadOnlyLog) -> str:
    sentence = f"It is in {opened.path}"
    if opened.condition is Condition.IN_USE:
        return f"{sentence}; a broker is running there."
    if opened.condition is Condition.STOPPED:
        return f"{sentence}; the broker was stopped cleanly."
    sentence += "; no broker is running there, and the last one was not stopped cleanly."
    if opened.was_recovered:
        return f"{sentence} This is the log after the recovery of the next start."
    return f"{sentence} The next start may cut off a torn end."


def _waiting(opened: ReadOnlyLog) -> Iterator[str]:
    if opened.waiting_files:
        files = counted(len(opened.waiting_files), "file")
        total = rounded_size(sum(opened.waiting_files.values()))
        yield f"{files} ({total}) of deleted segments are not removed yet."


def setting_rows(opened: ReadOnlyLog, times: BrokerTimes) -> Iterator[tuple[str, str, str]]:
    """
    Name, value and source of the settings that apply to the log.
    """
    config = opened.settings.config
    names = [*_OF_ALL]
    if config.delete:
        names += _OF_DELETED
    if config.compact:
        names += _OF_COMPACTED
    if config.internal_segment_bytes is not None:
        names.remove("segment.bytes")
    for name in (*names, "file.delete.delay.ms"):
        if name in opened.settings.settings:
            _, value, source = opened.settings.settings[name]
            yield name, _with_unit(name, value), source
    if not config.compact:
        names = ["log.retention.check.interval.ms"]
    else:
        names = ["log.cleaner.backoff.ms"] if times.cleaner_enabled else ["log.cleaner.enable"]
    for name in names:
        _, value, source = times.settings[name]
        yield name, _with_unit(name, value), source


def _with_unit(name: str, value: str) -> str:
    if name.endswith(".ms"):
        if int(value) == UNLIMITED:
            return f"{value} (no limit)"
        if int(value) == 0:
            return value
        return "forever" if int(value) >= LONG_MAX else f"{value} ({duration(int(value))})"
    if name.endswith(".bytes"):
        if int(value) == UNLIMITED:
            return f"{value} (no limit)"
        return f"{value} ({rounded_size(int(value))})" if int(value) >= 1024 else value
    return value or "(empty)"
