"""
What to read of log directories or from a broker, and how.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from barnabas.client.settings import ClientSettings
from barnabas.pipeline.decoding.decode import MAX_BATCH_BYTES
from barnabas.pipeline.schemas import CORRUPT_COLUMN, RowLevel
from barnabas.pipeline.storage import StorageOptions
from barnabas.storage.topic_partition import TopicPartition

MiB: Final = 1 << 20

LATEST: Final = -1
EARLIEST: Final = -2
"""What these mean in place of an offset, in the JSON of the connector."""


class Mode(Enum):
    """
    What becomes of a batch that cannot be read.
    """

    FAILFAST = "FAILFAST"
    DROPMALFORMED = "DROPMALFORMED"
    PERMISSIVE = "PERMISSIVE"


class IsolationLevel(Enum):
    """
    Whether records of aborted and of open transactions are rows.
    """

    READ_UNCOMMITTED = "read_uncommitted"
    READ_COMMITTED = "read_committed"


class ReadUpTo(Enum):
    """
    Where the end of a log is: where its high watermark was last noted, or at its last whole batch.
    """

    HIGH_WATERMARK = "highWatermark"
    LOG_END = "logEnd"


class NoSuchTime(Enum):
    """
    What a starting timestamp means that is later than all records.
    """

    ERROR = "error"
    LATEST = "latest"


@dataclass(frozen=True)
class TopicSelection:
    """
    Which partitions are read. Of nothing given, all but those of internal topics.
    """

    names: frozenset[str] | None = None
    pattern: re.Pattern[str] | None = None
    partitions: frozenset[TopicPartition] | None = None

    def has(self, partition: TopicPartition) -> bool:
        if self.names is not None:
            return partition.topic in self.names
        if self.pattern is not None:
            return self.pattern.fullmatch(partition.topic) is not None
        if self.partitions is not None:
            return partition in self.partitions
        return not partition.topic.startswith("__")


@dataclass(frozen=True)
class ReadBound:
    """
    Where the rows of each partition begin or end.

    A partition has at most one of a timestamp and an offset of its own; ``offset`` and
    ``timestamp_ms`` are those of all others.
    """

    offset: int | None = None
    """May be ``EARLIEST`` or ``LATEST``."""
    offsets: Mapping[TopicPartition, int] = field(default_factory=dict)
    timestamp_ms: int | None = None
    timestamps_ms: Mapping[TopicPartition, int] = field(default_factory=dict)


@dataclass(frozen=True)
class ReadOptions:
    """
    What to read, and how.
    """

    paths: tuple[str, ...]
    """Log directories, or directories of partitions; empty if a broker is asked."""
    client: ClientSettings | None = None
    """How to reach the broker that is asked, in place of paths."""
    storage: StorageOptions | None = None
    """How S3 and Azure are reached; None as the environment says."""
    topics: TopicSelection = TopicSelection()
    start: ReadBound = ReadBound(EARLIEST)
    end: ReadBound = ReadBound(LATEST)
    no_such_time: NoSuchTime = NoSuchTime.ERROR
    isolation_level: IsolationLevel = IsolationLevel.READ_UNCOMMITTED
    read_up_to: ReadUpTo = ReadUpTo.HIGH_WATERMARK
    level: RowLevel = RowLevel.RECORDS
    mode: Mode = Mode.FAILFAST
    corrupt_column: str = CORRUPT_COLUMN
    """Where ``PERMISSIVE`` says what is wrong."""
    fail_on_data_loss: bool = True
    include_headers: bool = False
    """Whether rows have headers if nobody chooses columns."""
    max_partition_bytes: int = 64 * MiB
    """Of segments, as they are stored; a task has as many as fit, or a part of one."""
    open_cost_bytes: int = MiB // 4
    """What a segment counts more than its bytes, when they are packed into tasks."""
    min_partitions: int | None = None
    chunk_bytes: int = 4 * MiB
    """Read and decoded together."""
    max_batch_bytes: int = MAX_BATCH_BYTES
    """Of one batch, decompressed."""
    max_bytes_per_trigger: int | None = None
    max_offsets_per_trigger: int | None = None
    max_records_per_partition: int | None = None
    """The offsets of a task, at most. Of a broker only."""

    @property
    def is_permissive(self) -> bool:
        return self.mode is Mode.PERMISSIVE
