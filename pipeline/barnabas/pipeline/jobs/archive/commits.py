"""
What an archive has, as its commits say.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Final

from barnabas.pipeline.decoding.decode import Offsets
from barnabas.pipeline.errors import PipelineError
from barnabas.pipeline.jobs.output import (
    locked,
    make_durable_directory,
    paths_in,
)
from barnabas.pipeline.jobs.parquet_files import partition_directory
from barnabas.pipeline.logs.filesystems import local_path
from barnabas.storage.errors import InvalidLogDirectory
from barnabas.storage.fs.disk import DiskFiles
from barnabas.storage.fs.interface import TEMPORARY_SUFFIX, Files
from barnabas.storage.state_files.file_names import TopicPartition, parse_topic_partition_name

_COMMITS: Final = "_commits"
_DATA: Final = "data"
_COMMIT_SUFFIX: Final = ".json"


class ArchiveError(PipelineError):
    """
    An archive is not what it should be, or not of the log that it is compared with.
    """


@dataclass(frozen=True, kw_only=True)
class Commit:
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

    @property
    def topic_partition(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)

    @property
    def name(self) -> str:
        return range_name(Offsets(self.start_offset, self.end_offset))

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str | bytes) -> Commit:
        """
        Raises:
            ValueError: it is not one.
        """
        values = json.loads(text)
        names = {field.name for field in fields(cls)}
        if not isinstance(values, dict) or set(values) != names:
            raise ValueError(f"it should have {', '.join(sorted(names))}")
        return cls(**values)


def range_name(offsets: Offsets) -> str:
    """
    ``00000000000000000000-00000000000000001000``; names sort as the ranges do.
    """
    return f"{offsets.start:020d}-{offsets.end:020d}"


class Archive:
    """
    The directory of an archive.

    Invariants:

    1. The commits of a partition follow one another, each beginning where the one before ended.
    2. The file that a commit names was whole and durable before the commit was made.
    """

    def __init__(self, path: str | Path, files: Files | None = None) -> None:
        """
        Args:
            path: one of this machine, or a ``file:`` URL.

        Raises:
            InvalidOption: *path* is another URL.
        """
        self.path = local_path(path).absolute()
        self.files = files or DiskFiles()
        self._known: dict[TopicPartition, Sequence[Commit]] = {}

    # Reading.

    @classmethod
    def existing(cls, path: str | Path) -> Archive:
        """
        Raises:
            ArchiveError: there is none.
            InvalidOption: as above.
        """
        archive = cls(path)
        if not archive.files.is_directory(archive.path / _COMMITS):
            raise ArchiveError(f"There is no archive in {archive.path}.")
        return archive

    @cached_property
    def partitions(self) -> Sequence[TopicPartition]:
        """
        Those that have a directory of commits, sorted; it may still be empty.
        """
        return sorted(partition for partition, _ in self._commit_directories())

    @property
    def commits(self) -> Mapping[TopicPartition, Sequence[Commit]]:
        """
        Those of all partitions.

        Raises:
            ArchiveError: as ``commits_of``.
        """
        return {partition: self.commits_of(partition) for partition in self.partitions}

    def commits_of(self, partition: TopicPartition) -> Sequence[Commit]:
        """
        Those of a partition in their order, as they were when this was first asked for.

        Raises:
            ArchiveError: one cannot be read, or does not follow the one before it, or its file is
                not there in the size that it had.
        """
        if partition not in self._known:
            directory = self.path / _COMMITS / str(partition)
            self._known[partition] = self._commits_of(partition, directory)
        return self._known[partition]

    def commit_path(self, commit: Commit) -> Path:
        directory = self.path / _COMMITS / str(commit.topic_partition)
        return directory / f"{commit.name}{_COMMIT_SUFFIX}"

    def _commit_directories(self) -> Iterator[tuple[TopicPartition, Path]]:
        for path in paths_in(self.files, self.path / _COMMITS):
            try:
                yield parse_topic_partition_name(path), path
            except InvalidLogDirectory:
                continue

    def _commits_of(self, partition: TopicPartition, directory: Path) -> Sequence[Commit]:
        paths = [path for path in paths_in(self.files, directory) if path.suffix == _COMMIT_SUFFIX]
        commits = [self._commit(partition, path) for path in paths]
        for before, after in pairwise(commits):
            if before.end_offset != after.start_offset:
                what = "a gap" if before.end_offset < after.start_offset else "an overlap"
                raise ArchiveError(
                    f"{self.commit_path(after)} begins at offset {after.start_offset} of"
                    f" {partition}, and the commit before it ends at {before.end_offset}: the"
                    f" archive has {what} there."
                )
        return commits

    def _commit(self, partition: TopicPartition, path: Path) -> Commit:
        try:
            commit = Commit.from_json(self.files.read_bytes(path))
        except ValueError as error:
            raise ArchiveError(f"{path} is no commit: {error}.") from error
        if (commit.topic_partition, commit.name) != (partition, path.stem):
            raise ArchiveError(
                f"{path} speaks of offsets {commit.start_offset} to {commit.end_offset} of"
                f" {commit.topic_partition}, which is not what it is called after."
            )
        if commit.file is not None:
            self._check_file(commit, self.path / commit.file)
        return commit

    def _check_file(self, commit: Commit, file: Path) -> None:
        which = f"the file of offsets {commit.start_offset} to {commit.end_offset}"
        try:
            size = self.files.size(file)
        except FileNotFoundError as error:
            raise ArchiveError(f"{file} is gone, {which} of {commit.topic_partition}.") from error
        if size != commit.file_bytes:
            raise ArchiveError(
                f"{file}, {which} of {commit.topic_partition}, has {size} bytes and was written"
                f" with {commit.file_bytes}."
            )

    def leftovers(self) -> list[Path]:
        """
        The files of runs that were killed, which no commit names.
        """
        named = {
            self.path / commit.file
            for commits in self.commits.values()
            for commit in commits
            if commit.file is not None
        }
        left = [
            file
            for topic in paths_in(self.files, self.path / _DATA)
            for partition in paths_in(self.files, topic)
            for file in paths_in(self.files, partition)
            if file not in named
        ]
        for _, directory in self._commit_directories():
            left += [
                path for path in paths_in(self.files, directory) if path.suffix == TEMPORARY_SUFFIX
            ]
        return left

    # Writing, by who holds the lock.

    def locked(self) -> AbstractContextManager[None]:
        """
        Nobody else writes meanwhile. The directory is made if there is none.

        Raises:
            InUse: somebody else does.
        """
        return locked(self.files, self.path)

    def data_directory(self, partition: TopicPartition) -> Path:
        return partition_directory(self.path / _DATA, partition)

    def make_directories(self, partitions: Iterable[TopicPartition]) -> None:
        """
        Those of some partitions, so that they survive a crash; for none, those of an archive.
        """
        directories = [self.path / _COMMITS]
        for partition in partitions:
            directories += [self.data_directory(partition), self.path / _COMMITS / str(partition)]
        for directory in directories:
            make_durable_directory(self.files, self.path, directory)

    def add(self, commit: Commit) -> None:
        """
        Make *commit*, the next of its partition, in one step.
        """
        self.files.write_atomically(self.commit_path(commit), commit.to_json().encode())
