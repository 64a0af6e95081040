"""
What a partition is, and what it goes by, in words.
"""

from __future__ import annotations

from collections.abc import Iterator

from barnabas.storage.explain.known import BrokerTimes
from barnabas.storage.explain.looking import Condition, LookedAt
from barnabas.storage.explain.units import counted, duration, rounded_size, size
from barnabas.storage.log.retention import UNLIMITED
from barnabas.storage.units import LONG_MAX

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


def partition_sentences(looked_at: LookedAt) -> list[str]:
    """
    How much of it there is, where, and in what condition.
    """
    log = looked_at.log
    start, end = log.log_start_offset, log.log_end_offset
    segments = counted(log.segments.number_of_segments, "segment")
    if end > start:
        held = f"Offsets {start:,} to {end - 1:,} in {segments}, {size(log.size)}."
    else:
        held = (
            f"No records; the next one gets offset {end:,}. There is {segments}, {size(log.size)}."
        )
    return [held, *_offsets(looked_at), f"{_condition(looked_at)}", *_waiting(looked_at)]


def _offsets(looked_at: LookedAt) -> Iterator[str]:
    log = looked_at.log
    base = log.first_segment_base_offset
    if log.log_start_offset > base:
        yield (
            f"The log start offset is {log.log_start_offset:,}: what is below, from {base:,} on, is"
            " on the disk and cannot be read any more."
        )
    elif base > 0:
        yield f"What was below offset {base:,} was deleted."
    if log.high_watermark < log.log_end_offset:
        yield f"The high watermark is {log.high_watermark:,}, as far as its checkpoint says."
    if log.last_stable_offset < log.high_watermark:
        yield (
            f"A transaction is open: the last stable offset is {log.last_stable_offset:,}, and who"
            " reads committed records only reads no further."
        )


def _condition(looked_at: LookedAt) -> str:
    sentence = f"It is in {looked_at.path}"
    if looked_at.condition is Condition.IN_USE:
        return f"{sentence}; a broker is running there."
    if looked_at.condition is Condition.STOPPED:
        return f"{sentence}; the broker was stopped properly."
    sentence += "; no broker is running there, and the last one was not stopped properly."
    if looked_at.was_recovered:
        return f"{sentence} The log is shown as the next start recovers it."
    return f"{sentence} The next start may cut off what was torn."


def _waiting(looked_at: LookedAt) -> Iterator[str]:
    if looked_at.waiting_files:
        files = counted(len(looked_at.waiting_files), "file")
        total = rounded_size(sum(looked_at.waiting_files.values()))
        yield f"{files} ({total}) of deleted segments wait to be removed."


def setting_rows(looked_at: LookedAt, times: BrokerTimes) -> Iterator[tuple[str, str, str]]:
    """
    Name, value and source of what decides about the log.
    """
    config = looked_at.settings.config
    names = [*_OF_ALL]
    if config.delete:
        names += _OF_DELETED
    if config.compact:
        names += _OF_COMPACTED
    if config.internal_segment_bytes is not None:
        names.remove("segment.bytes")
    for name in (*names, "file.delete.delay.ms"):
        if name in looked_at.settings.settings:
            _, value, source = looked_at.settings.settings[name]
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
