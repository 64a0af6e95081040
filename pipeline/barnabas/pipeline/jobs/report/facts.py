"""
What a report tells, as data.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from barnabas.storage.config.log_config import LogConfig
from barnabas.storage.explain.retention import SegmentLifetime
from barnabas.storage.topic_partition import TopicPartition


class Pin(Enum):
    """
    What keeps a segment longer than the age of its own records would, or what lets it go.
    """

    NOTHING = "nothing: it goes with the next check"
    AGE = "its latest record is not old enough"
    ACTIVE = "records are still appended to it"
    OLDER_SEGMENT = "an older segment has later records and must go first"
    FUTURE = "it has records of the future"
    FILE_TIME = "no record has a timestamp: the time of the file counts"
    HIGH_WATERMARK = "it reaches beyond the high watermark"
    EMPTY = "it is empty and the last one"
    NO_LIMIT = "no limit of time is set"
    NOBODY_LOOKS = "the cleaner, which would look, is switched off"


@dataclass(frozen=True, slots=True)
class Life:
    """
    How long records of a segment can be read, from their timestamps on, in ms.

    ``None``: nothing says how long, or they have no timestamps.
    """

    shortest_ms: int | None
    """Of the latest record, if the first check that may take it comes as early as it can."""
    longest_ms: int | None
    """Of the oldest one, if that check comes as late as it can."""


_SUMS: Final = (
    "batches",
    "control_batches",
    "records",
    "size",
    "late_batches",
    "gaps",
    "missing_offsets",
)


@dataclass(slots=True)
class BatchCounts:
    """
    What the headers of some batches add up to.
    """

    batches: int = 0
    control_batches: int = 0
    records: int = 0
    size: int = 0
    first_ms: int | None = None
    """The earliest timestamp that a batch begins with."""
    last_ms: int | None = None
    late_batches: int = 0
    """Those that begin with a record which is older than one of an earlier batch."""
    most_late_ms: int = 0
    gaps: int = 0
    """Places where offsets are missing in front of a batch."""
    missing_offsets: int = 0
    codecs: Counter[str] = field(default_factory=Counter)
    """Bytes of batches by codec."""
    fill: Counter[int] = field(default_factory=Counter)
    """How many batches have from 2**n to 2**(n+1)-1 records, by n."""

    def add(self, other: BatchCounts) -> None:
        """
        Take in what else there is.
        """
        for name in _SUMS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        firsts = [ms for ms in (self.first_ms, other.first_ms) if ms is not None]
        lasts = [ms for ms in (self.last_ms, other.last_ms) if ms is not None]
        self.first_ms, self.last_ms = min(firsts, default=None), max(lasts, default=None)
        self.most_late_ms = max(self.most_late_ms, other.most_late_ms)
        self.codecs.update(other.codecs)
        self.fill.update(other.fill)

    @property
    def records_per_batch(self) -> float:
        """
        The mean over batches with records of users.
        """
        filled = self.batches - self.control_batches
        return self.records / filled if filled else 0.0


@dataclass(frozen=True, slots=True)
class Producers:
    """
    What the sequence numbers of a partition's producers show.
    """

    producers: int
    """Idempotent ones."""
    unprotected_records: int
    """Of producers without an id, where a repetition would leave no trace."""
    repeated_batches: int
    """Those whose sequence numbers the same producer had used before, in the same epoch."""
    repeated_records: int
    sequence_gaps: int
    """Places where numbers are missing; compaction and DeleteRecords leave some."""
    worst_producer_id: int | None
    """Of the most repetitions."""


@dataclass(frozen=True, slots=True)
class Disorder:
    """
    How far timestamps go back along a partition.
    """

    late_records: int
    """Those that are older than some record before them."""
    most_late_ms: int


@dataclass(frozen=True, slots=True)
class KeyCounts:
    """
    How often the keys of a partition occur.
    """

    records: int
    without_key: int
    distinct: int
    most: tuple[tuple[bytes, int], ...]
    """The most frequent ones with their numbers of records, the most frequent first."""

    @property
    def top_share(self) -> float:
        """
        The most frequent key's part of all records.
        """
        return self.most[0][1] / self.records if self.most else 0.0


@dataclass(frozen=True, slots=True)
class SegmentFacts:
    """
    One segment.
    """

    base_offset: int
    end_offset: int
    size: int
    counts: BatchCounts | None
    """None if it was rolled or removed while the report was made."""
    lifetime: SegmentLifetime
    life: Life
    pin: Pin


@dataclass(frozen=True, slots=True)
class PartitionFacts:
    """
    One partition.
    """

    partition: TopicPartition
    config: LogConfig
    note: str
    """Why its settings may be others; nothing if they are known."""
    segments: tuple[SegmentFacts, ...]
    counts: BatchCounts
    producers: Producers | None
    keys: KeyCounts | None
    """None if nobody asked for them, as that takes reading all records."""
    disorder: Disorder | None
    """None as above."""

    @property
    def size(self) -> int:
        return sum(segment.size for segment in self.segments)

    @property
    def life(self) -> Life:
        """
        The shortest and the longest of its segments; a longest of ``None`` has no bound.
        """
        lives = [segment.life for segment in self.segments if segment.size]
        shortest = [life.shortest_ms for life in lives if life.shortest_ms is not None]
        longest = [life.longest_ms for life in lives if life.longest_ms is not None]
        is_bound = lives and len(longest) == len(lives)
        return Life(min(shortest, default=None), max(longest) if is_bound else None)


@dataclass(frozen=True, slots=True)
class Report:
    """
    All partitions, by name.
    """

    now_ms: int
    partitions: tuple[PartitionFacts, ...]

    def by_topic(self) -> dict[str, list[PartitionFacts]]:
        """
        The same, topic by topic.
        """
        topics: dict[str, list[PartitionFacts]] = {}
        for facts in self.partitions:
            topics.setdefault(facts.partition.topic, []).append(facts)
        return topics
