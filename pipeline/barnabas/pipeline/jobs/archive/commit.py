"""
One step of an archive: a range of offsets that was written, on its way from a worker to the table.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass, fields
from typing import Final

from barnabas.pipeline.decoding.decode import OffsetRange
from barnabas.storage.topic_partition import TopicPartition

_FILE_NAME: Final = re.compile(r"(\d{20})-\d{20}-[0-9a-f]{32}\.parquet")


@dataclass(frozen=True, kw_only=True)
class ArchiveCommit:
    """
    A range of offsets of one partition, and the file with all records that it has.
    """

    topic: str
    partition: int
    start_offset: int
    end_offset: int
    """Not in the range."""
    records: int
    file: str | None
    """Its path from the archive's; None if the range has no records."""
    file_bytes: int
    crc32c: int
    """Of the file."""
    log_bytes: int
    """What the range takes in the log."""
    min_timestamp_ms: int | None
    max_timestamp_ms: int | None
    isolation_level: str
    """With which the log was read."""
    first_offset: int | None = None
    """That of the first record; None if there are no records, or an older version wrote this."""
    last_offset: int | None = None

    @property
    def topic_partition(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)

    @property
    def name(self) -> str:
        return range_name(OffsetRange(self.start_offset, self.end_offset))

    @property
    def start_name(self) -> str:
        """
        That of a commit where only one may begin at an offset.
        """
        return f"{self.start_offset:020d}"

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str | bytes) -> ArchiveCommit:
        """
        Raises:
            ValueError: it is not one.
        """
        values = json.loads(text)
        names = {field.name for field in fields(cls)}
        needed = names - {"first_offset", "last_offset"}
        if not isinstance(values, dict) or not needed <= set(values) <= names:
            raise ValueError(f"it should have {', '.join(sorted(names))}")
        return cls(**values)


def range_name(offsets: OffsetRange) -> str:
    """
    ``00000000000000000000-00000000000000001000``; names sort as the ranges do.
    """
    return f"{offsets.start:020d}-{offsets.end:020d}"


def parse_range_start(name: str) -> int | None:
    """
    Where the range begins whose file has that *name*; None if it is no file of an archive.
    """
    match = _FILE_NAME.match(name)
    return None if match is None else int(match[1])
