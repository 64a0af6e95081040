"""
A report in words.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from barnabas.pipeline.jobs.report.facts import (
    BatchCounts,
    KeyCounts,
    PartitionFacts,
    Pin,
    Producers,
    Report,
    SegmentFacts,
)
from barnabas.storage.config.log_config import LogConfig
from barnabas.storage.explain.units import duration, moment, rounded_size
from barnabas.storage.log.retention import UNLIMITED
from barnabas.storage.units import counted

_SHOWN: Final = 12
"""Segments of a partition that are told of one by one: the oldest and the newest of more."""
_KEY_WIDTH: Final = 40


def as_text(report: Report) -> str:
    """
    The whole report.
    """
    lines = [f"Report of {moment(report.now_ms)}", ""]
    for facts in report.partitions:
        lines += [f"{facts.partition}", *(f"  {line}" for line in partition_lines(facts)), ""]
    return "\n".join(lines)


def partition_lines(facts: PartitionFacts) -> Iterator[str]:
    """
    What there is to say of a partition.
    """
    counts = facts.counts
    yield (
        f"{counted(len(facts.segments), 'segment')}, {rounded_size(facts.size)},"
        f" {counted(counts.records, 'record')} in {counted(counts.batches, 'batch')}"
    )
    yield from _content(facts)
    if facts.producers is not None:
        yield _of_producers(facts.producers)
    if facts.keys is not None:
        yield _of_keys(facts.keys)
    yield f"retention: {limits(facts.config)}"
    yield f"life of a record: {lives(facts)}"
    yield from _of_segments(facts.segments)
    if facts.note:
        yield facts.note


def _content(facts: PartitionFacts) -> Iterator[str]:
    counts = facts.counts
    if counts.records:
        single = counts.fill.get(0, 0)
        yield (
            f"batch fill: {counts.records_per_batch:,.1f} records on average,"
            f" {counted(single, 'batch')} of one record"
        )
    if counts.codecs:
        yield "codecs: " + ", ".join(
            f"{codec} {size / sum(counts.codecs.values()):.0%}"
            for codec, size in sorted(counts.codecs.items(), key=lambda item: -item[1])
        )
    if counts.first_ms is not None and counts.last_ms is not None:
        yield f"timestamps: {moment(counts.first_ms)} to {moment(counts.last_ms)}, {order(facts)}"
    yield f"offsets: {gaps(counts)}"


def order(facts: PartitionFacts) -> str:
    """
    How far timestamps go up with offsets: of all records if they were read, else of batches.
    """
    if facts.disorder is not None:
        late, most_ms = counted(facts.disorder.late_records, "record"), facts.disorder.most_late_ms
    else:
        late, most_ms = counted(facts.counts.late_batches, "batch"), facts.counts.most_late_ms
    return f"{late} out of order, by up to {duration(most_ms)}" if most_ms else "in order"


def gaps(counts: BatchCounts) -> str:
    """
    Whether offsets are missing.
    """
    if not counts.gaps:
        return "no gaps"
    return f"{counted(counts.gaps, 'gap')}, {counted(counts.missing_offsets, 'offset')} missing"


def _of_producers(producers: Producers) -> str:
    parts = [counted(producers.producers, "idempotent producer")]
    if producers.repeated_batches:
        parts.append(
            f"{counted(producers.repeated_records, 'record')} repeated, most by producer"
            f" {producers.worst_producer_id}"
        )
    else:
        parts.append("nothing repeated")
    if producers.sequence_gaps:
        parts.append(counted(producers.sequence_gaps, "gap") + " in their sequences")
    if producers.unprotected_records:
        parts.append(f"{counted(producers.unprotected_records, 'record')} of others")
    return "producers: " + ", ".join(parts)


def _of_keys(keys: KeyCounts) -> str:
    parts = [f"{keys.distinct:,} different"]
    if keys.most:
        parts.append(f"the most frequent, {key_text(keys.most[0][0])}, in {keys.top_share:.1%}")
    if keys.without_key:
        parts.append(f"{counted(keys.without_key, 'record')} without one")
    return "keys: " + ", ".join(parts)


def key_text(key: bytes) -> str:
    """
    A key as people read it: as text if it is some, else in hexadecimal.
    """
    try:
        text = key.decode()
    except UnicodeDecodeError:
        text = ""
    shown = f'"{text}"' if text.isprintable() and (text or not key) else f"0x{key.hex()}"
    return shown if len(shown) <= _KEY_WIDTH else f"{shown[: _KEY_WIDTH - 3]}..."


def limits(config: LogConfig) -> str:
    """
    What the settings ask for.
    """
    if not config.delete:
        return "compaction" if config.compact else "none"
    time = "none" if config.retention_ms == UNLIMITED else duration(config.retention_ms)
    size = "none" if config.retention_bytes <= UNLIMITED else rounded_size(config.retention_bytes)
    compaction = ", and compaction" if config.compact else ""
    return f"retention.ms {time}, retention.bytes {size}{compaction}"


def lives(facts: PartitionFacts) -> str:
    """
    How long records can be read, beside what was asked for.
    """
    shortest, longest = facts.life.shortest_ms, facts.life.longest_ms
    if shortest is None and longest is None:
        return "nothing says how long"
    least = "at least " + duration(shortest) if shortest is not None else "nothing says how short"
    if longest is None:
        return f"{least}, without a bound"
    text = f"{least}, at most {duration(longest)}"
    limit = facts.config.retention_ms
    if limit > 0 and longest > limit:
        text += f": {duration(longest - limit)} longer than retention.ms"
    return text


def _of_segments(segments: Sequence[SegmentFacts]) -> Iterator[str]:
    shown = list(segments)
    if len(shown) > _SHOWN:
        half = _SHOWN // 2
        shown = [*segments[:half], *segments[-half:]]
    for number, segment in enumerate(shown):
        if len(shown) < len(segments) and number == len(shown) // 2:
            yield f"... {counted(len(segments) - len(shown), 'segment')} more ..."
        yield f"segment {segment.base_offset}: {rounded_size(segment.size)}, {leaving(segment)}"


def leaving(segment: SegmentFacts) -> str:
    """
    When a segment goes, and what keeps it.
    """
    lifetime = segment.lifetime
    if lifetime.goes_by is not None:
        return f"goes with the next check, by the {lifetime.goes_by.value} rule"
    earliest, latest = lifetime.unreadable
    pinned = because(segment)
    if earliest is None:
        return f"stays: {pinned}"
    until = "no bound" if latest is None else moment(latest)
    return f"readable until {moment(earliest)} at least, {until} at most: {pinned}"


def because(segment: SegmentFacts) -> str:
    """
    What keeps it, by name where that is another segment.
    """
    if segment.pin is Pin.OLDER_SEGMENT:
        return f"segment {segment.lifetime.due_with} is older, has later records, and goes first"
    return str(segment.pin.value)
