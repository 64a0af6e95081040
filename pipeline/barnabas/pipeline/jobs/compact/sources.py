"""
Where the records of a partition come from. A worker gets one of these, pickled.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

import pyarrow as pa

from barnabas.pipeline.jobs.archive.commit import Commit
from barnabas.pipeline.jobs.archive.commits import Archive
from barnabas.pipeline.jobs.archive.files import committed_batches
from barnabas.pipeline.options import ReadOptions
from barnabas.pipeline.reading.plan import Work
from barnabas.pipeline.reading.reader import read

_ROWS: Final = 65_536


class Source(Protocol):
    """
    The records of a range of offsets of one partition, those of aborted transactions left out.
    """

    @property
    def path(self) -> str:
        """
        The directory that errors name.
        """

    @property
    def size(self) -> int:
        """
        Bytes, as they are stored.
        """

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """
        Raises:
            ArchiveError, CorruptBatch, DataLoss: as reading does.
        """


@dataclass(frozen=True)
class LogSource:
    """
    A log, as it was when the plan was made.
    """

    path: str
    work: Work
    options: ReadOptions

    @property
    def size(self) -> int:
        return sum(piece.size for piece in self.work.ranges)

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        return read(self.work, columns, self.options)


@dataclass(frozen=True)
class ArchiveSource:
    """
    What an archive has of a log.
    """

    path: str
    commits: tuple[Commit, ...]

    @property
    def size(self) -> int:
        return sum(commit.file_bytes for commit in self.commits)

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        archive = Archive(Path(self.path))
        for commit in self.commits:
            yield from committed_batches(archive, commit, columns, _ROWS)
