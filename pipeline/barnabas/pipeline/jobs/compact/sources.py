"""
Where the records of a partition come from. A worker gets one of these, pickled.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import pyarrow as pa

from barnabas.pipeline.jobs.archive.files import batches_in_order
from barnabas.pipeline.jobs.archive.store import DataStore
from barnabas.pipeline.jobs.archive.table import ArchivedFile
from barnabas.pipeline.options import ReadOptions
from barnabas.pipeline.reading.plan import Work
from barnabas.pipeline.reading.reader import read

_ROWS: Final = 65_536


class CompactionSource(Protocol):
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
    store: DataStore
    files: tuple[ArchivedFile, ...]

    @property
    def size(self) -> int:
        return sum(file.size for file in self.files)

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        return batches_in_order(self.store, self.files, columns, _ROWS)
