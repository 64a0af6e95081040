"""
The figures of a report that are kept, so that later ones can be compared with them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from barnabas.pipeline.jobs.report.facts import PartitionFacts, SegmentFacts
from barnabas.pipeline.schemas import TIMESTAMP
from barnabas.storage.topic_partition import TopicPartition

DELETIONS: Final = "deletions"
"""The column that readers may leave out."""
_DELETION: Final = pa.struct(
    [
        ("baseOffset", pa.int64()),
        ("nextOffset", pa.int64()),
        ("size", pa.int64()),
        ("unreadableEarliest", TIMESTAMP),
        ("unreadableLatest", TIMESTAMP),
    ]
)
SCHEMA: Final = pa.schema(
    [
        ("at", TIMESTAMP),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("segments", pa.int32()),
        ("size", pa.int64()),
        ("records", pa.int64()),
        ("firstTimestamp", TIMESTAMP),
        ("lastTimestamp", TIMESTAMP),
        ("retentionMs", pa.int64()),
        ("retentionBytes", pa.int64()),
        ("shortestLifeMs", pa.int64()),
        ("longestLifeMs", pa.int64()),
        ("dueSegments", pa.int32()),
        ("dueBytes", pa.int64()),
        (DELETIONS, pa.list_(_DELETION)),
    ]
)
"""The columns of a snapshot. Names and units are those of the frames of a report."""

_LATEST_MS: Final = (2**63 - 1) // 1000
"""Arrow counts in us."""


@dataclass(frozen=True, slots=True)
class ExpectedDeletion:
    """
    A segment that retention is going to delete.
    """

    base_offset: int
    next_offset: int
    size: int
    earliest_ms: int
    """From when on its records cannot be read: that of the report if the next check takes it."""
    latest_ms: int | None
    """None if nothing says until when."""


@dataclass(frozen=True, slots=True)
class Figures:
    """
    One partition at one moment.
    """

    partition: TopicPartition
    segments: int
    size: int
    records: int
    first_ms: int | None
    """The time of the oldest record, as headers tell it; None if there are no timestamps."""
    last_ms: int | None
    retention_ms: int
    retention_bytes: int
    shortest_life_ms: int | None
    longest_life_ms: int | None
    due_segments: int
    """Those that the next check deletes."""
    due_bytes: int
    deletions: tuple[ExpectedDeletion, ...]
    """Segments whose time is known, oldest first, those of the next check among them."""

    @classmethod
    def of(cls, facts: PartitionFacts) -> Figures:
        """
        Those that a report has found.
        """
        due = [segment for segment in facts.segments if segment.lifetime.goes_by is not None]
        return cls(
            facts.partition,
            len(facts.segments),
            facts.size,
            facts.counts.records,
            facts.counts.first_ms,
            facts.counts.last_ms,
            facts.config.retention_ms,
            facts.config.retention_bytes,
            facts.life.shortest_ms,
            facts.life.longest_ms,
            len(due),
            sum(segment.size for segment in due),
            tuple(_deletions(facts.segments)),
        )

    def age_ms(self, at_ms: int) -> int | None:
        """
        How old the oldest record is at that moment; None if no record has a timestamp.
        """
        return None if self.first_ms is None else max(0, at_ms - self.first_ms)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """
    The figures of one run.
    """

    at_ms: int
    partitions: tuple[Figures, ...]
    """By name."""


def as_table(snapshot: Snapshot) -> pa.Table:
    """
    One row for each partition.
    """
    rows = [_row(snapshot.at_ms, figures) for figures in snapshot.partitions]
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def snapshot_of(table: pa.Table) -> Snapshot:
    """
    What ``as_table`` was made of, without deletions if that column is left out. Times that Arrow
    does not have are the latest that it has.
    """
    # Times go as numbers, for a datetime ends with the year 9999.
    plain = pa.schema([field.with_type(_without_times(field.type)) for field in table.schema])
    rows = table.cast(plain).to_pylist()
    figures = sorted(map(_figures, rows), key=lambda each: each.partition)
    return Snapshot(rows[0]["at"] // 1000, tuple(figures))


def _deletions(segments: Iterable[SegmentFacts]) -> Iterable[ExpectedDeletion]:
    for segment in segments:
        earliest, latest = segment.lifetime.unreadable
        if earliest is not None:
            yield ExpectedDeletion(
                segment.base_offset, segment.end_offset, segment.size, earliest, latest
            )


def _row(at_ms: int, figures: Figures) -> dict[str, Any]:
    return {
        "at": _us(at_ms),
        "topic": figures.partition.topic,
        "partition": figures.partition.partition,
        "segments": figures.segments,
        "size": figures.size,
        "records": figures.records,
        "firstTimestamp": _us(figures.first_ms),
        "lastTimestamp": _us(figures.last_ms),
        "retentionMs": figures.retention_ms,
        "retentionBytes": figures.retention_bytes,
        "shortestLifeMs": figures.shortest_life_ms,
        "longestLifeMs": figures.longest_life_ms,
        "dueSegments": figures.due_segments,
        "dueBytes": figures.due_bytes,
        DELETIONS: [
            {
                "baseOffset": each.base_offset,
                "nextOffset": each.next_offset,
                "size": each.size,
                "unreadableEarliest": _us(each.earliest_ms),
                "unreadableLatest": _us(each.latest_ms),
            }
            for each in figures.deletions
        ],
    }


def _figures(row: dict[str, Any]) -> Figures:
    return Figures(
        TopicPartition(row["topic"], row["partition"]),
        row["segments"],
        row["size"],
        row["records"],
        _ms(row["firstTimestamp"]),
        _ms(row["lastTimestamp"]),
        row["retentionMs"],
        row["retentionBytes"],
        row["shortestLifeMs"],
        row["longestLifeMs"],
        row["dueSegments"],
        row["dueBytes"],
        tuple(
            ExpectedDeletion(
                each["baseOffset"],
                each["nextOffset"],
                each["size"],
                each["unreadableEarliest"] // 1000,
                _ms(each["unreadableLatest"]),
            )
            for each in row.get(DELETIONS, ())
        ),
    )


def _us(ms: int | None) -> int | None:
    return None if ms is None else min(ms, _LATEST_MS) * 1000


def _ms(us: int | None) -> int | None:
    return None if us is None else us // 1000


def _without_times(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(kind):
        return pa.int64()
    if kind == pa.list_(_DELETION):
        return pa.list_(
            pa.struct([field.with_type(_without_times(field.type)) for field in _DELETION])
        )
    return kind
