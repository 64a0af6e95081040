"""
What jobs ask of an archive, whatever format its table has: `archive`, `replay` and `compact`.

::

    parquet    commits.py    files of commits beside the data
    delta      delta.py      the log of a Delta table
    iceberg    iceberg.py    snapshots of an Iceberg table, in a catalog
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from barnabas.pipeline.decoding.decode import OffsetRange
from barnabas.pipeline.errors import InvalidOption, PipelineError
from barnabas.pipeline.jobs.archive.commit import ArchiveCommit, parse_range_start
from barnabas.pipeline.jobs.archive.store import DataStore
from barnabas.pipeline.jobs.output import InUse, locked
from barnabas.pipeline.jobs.parquet_files import Checksum
from barnabas.pipeline.logs.filesystems import local_path
from barnabas.pipeline.storage import StorageOptions
from barnabas.storage.fs.disk import DiskFiles
from barnabas.storage.topic_partition import TopicPartition


class ArchiveError(PipelineError):
    """
    An archive is not what it should be, or not of the log that it is compared with.
    """


@dataclass(frozen=True)
class ArchivedPartition:
    """
    What an archive has of one partition.
    """

    offsets: OffsetRange
    isolation_level: str | None
    """With which the log was read; None if no run has noted it, as in a clone of a table."""
    named_by: str
    """What says so, for people."""
    last_file: str | None
    """The file with the last record, as ``DataStore.open`` takes it; None if that is not known."""


class Noted(NamedTuple):
    """
    How far a run has archived a partition, as it notes it in a table that has versions.

    A restore of an earlier version, or a deletion, changes the records and leaves the note.
    """

    end_offset: int
    isolation_level: str | None
    records_end: int | None
    """The offset behind the last record that the table had by then, 0 without records."""


def resumed(noted: Sequence[Noted], records: OffsetRange | None) -> Noted | None:
    """
    Return how far a partition is archived; None if it begins at the start of its log.

    A note counts if the table has the records that it was written with: behind the last record may
    be offsets that have none. Otherwise the table continues behind the last record that it has.

    Args:
        noted: by earlier runs, at most one for each isolation level.
        records: from the first to the last record in the table; None if it has none.
    """
    records_end = 0 if records is None else records.end
    still_true = [each for each in noted if each.records_end == records_end]
    if len(still_true) == 1:
        return still_true[0]
    if records is None:
        return None
    level = noted[0].isolation_level if len(noted) == 1 else None
    return Noted(records.end, level, records.end)


@dataclass(frozen=True)
class ArchivedFile:
    """
    A file with records of one partition.
    """

    topic_partition: TopicPartition
    path: str
    """As ``DataStore.open`` takes it."""
    name: str
    """What people call it."""
    offsets: OffsetRange
    """In which those of its records are."""
    size: int
    """Bytes of the file."""
    log_bytes: int
    """What its records took in the log; the file's size, if that is not known."""
    checksum: Checksum | None = None
    """None if that is not known."""


class Merged(NamedTuple):
    """
    What became of small files.
    """

    files: int
    """That were merged."""
    into: int
    """Files that have their records now."""


class ArchiveTable(ABC):
    """
    The table of an archive.

    Invariants:

    1. The ranges of a partition follow one another, each beginning where the one before ended.
    2. A range and the file with its records become part of the table in one step, after the file
       is whole and durable.
    3. Of two runs that add the same range, one is refused.
    """

    store: DataStore
    """Known when the table is there: while ``locked``."""
    storage: StorageOptions
    """With which object stores are reached, those of logs too."""

    @property
    @abstractmethod
    def name(self) -> str:
        """
        What people call it.
        """

    @property
    def missing_columns(self) -> Sequence[str]:
        """
        The columns that ``prepare`` adds to the table, which an older version has made.
        """
        return ()

    @property
    @abstractmethod
    def exists(self) -> bool:
        """
        Whether there is an archive.
        """

    @property
    @abstractmethod
    def partitions(self) -> Sequence[TopicPartition]:
        """
        Those of which there may be something, sorted.
        """

    @abstractmethod
    def files_of(self, partition: TopicPartition) -> Sequence[ArchivedFile]:
        """
        The files with its records, by their first offsets.

        Raises:
            ArchiveError: the archive is not whole, or the table has rows that are deleted.
        """

    @abstractmethod
    def identity_of(self, partition: TopicPartition) -> str:
        """
        What tells this archive of a partition, of which there is something, from any other one for
        as long as it lives.
        """

    @abstractmethod
    def archived(self, partition: TopicPartition) -> ArchivedPartition | None:
        """
        None if nothing of it is there.

        Raises:
            ArchiveError: the archive is not whole.
        """

    @abstractmethod
    def prepare(self, partitions: Iterable[TopicPartition]) -> None:
        """
        Make the table, if there is none, and what the files of *partitions* need.
        """

    @abstractmethod
    def add(self, commit: ArchiveCommit) -> None:
        """
        Make *commit*, the next range of its partition, part of the table.

        Raises:
            InUse: another run has added to the partition meanwhile.
        """

    def leftovers(self) -> Sequence[str]:
        """
        Files of runs that were killed, which no reader has ever seen: those of ranges behind the
        end of their partition that no version of the table has. Those of object stores are not
        looked for, where another run may still need them.
        """
        left = []
        for file in self.store.local_files():
            start = parse_range_start(file.name)
            if start is not None and start >= self.noted_end(partition_of(file)):
                left.append(str(file))
        if left:
            kept = self.files_of_versions()
            left = [file for file in left if file not in kept]
        return left

    def noted_end(self, partition: TopicPartition) -> int:
        """
        Return the offset behind all files of *partition* that runs have added, 0 without any. A
        version that was restored may end before it.
        """
        archived = self.archived(partition)
        return 0 if archived is None else archived.offsets.end

    def files_of_versions(self) -> frozenset[str]:
        """
        The local files of all versions of the table that can still be read.
        """
        return frozenset()

    def remove_leftover(self, name: str) -> None:
        """
        Remove one of ``leftovers``.
        """
        Path(name).unlink(missing_ok=True)

    def merge_small_files(self, below_bytes: int) -> Merged:
        """
        Write the records of files that are smaller than *below_bytes* into files of about that
        size, partition by partition. Earlier versions of the table keep their files.

        Raises:
            InUse: another writer has changed the same files meanwhile.
            InvalidOption: this format has no versions.
        """
        raise InvalidOption(
            f"{self.name} is an archive in Parquet, whose commits name their files for ever: only"
            " those of Delta and Iceberg tables can be merged."
        )

    @abstractmethod
    def refresh(self) -> None:
        """
        Look again at what is there.
        """

    @contextmanager
    def locked(self) -> Iterator[None]:
        """
        No other run on this machine writes meanwhile, and what they wrote before is known. An
        object store has no locks, there only ``add`` refuses a second one.

        Raises:
            InUse: another run does.
        """
        lock = (
            locked(DiskFiles(), local_path(self.store.base))
            if self.store.is_local
            else nullcontext()
        )
        with lock:
            self.refresh()
            yield


def partition_of(file: Path) -> TopicPartition:
    """
    The partition whose directory a data file is in.
    """
    topic, number = (part.partition("=")[2] for part in file.parts[-3:-1])
    return TopicPartition(topic, int(number))


def other_run(commit: ArchiveCommit, name: str) -> InUse:
    """
    The error of a *commit* to the table called *name* that came too late.
    """
    return InUse(
        f"Another run has added to {commit.topic_partition} in {name} meanwhile, at offset"
        f" {commit.start_offset}. What it added is whole; run this one again."
    )
