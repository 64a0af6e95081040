"""
What an archive has, as its commits say.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Final

from barnabas.pipeline.decoding.decode import Offsets
from barnabas.pipeline.jobs.archive.commit import Commit
from barnabas.pipeline.jobs.archive.store import DataStore
from barnabas.pipeline.jobs.archive.table import ArchivedPartition, ArchiveError, ArchiveTable
from barnabas.pipeline.jobs.output import OutputDirectory, make_durable_directory, paths_in
from barnabas.pipeline.jobs.parquet_files import COLUMNS
from barnabas.pipeline.logs.storage_options import StorageOptions
from barnabas.storage.errors import InvalidLogDirectory
from barnabas.storage.fs.interface import TEMPORARY_SUFFIX, Files
from barnabas.storage.state_files.file_names import TopicPartition, parse_topic_partition_name

_COMMITS: Final = "_commits"
_DATA: Final = "data"
_COMMIT_SUFFIX: Final = ".json"


class Archive(OutputDirectory, ArchiveTable):
    """
    The directory of an archive.

    Invariants:

    1. The commits of a partition follow one another, each beginning where the one before ended.
    2. The file that a commit names was whole and durable before the commit was made.
    """

    proof = _COMMITS
    nothing_there = (ArchiveError, "There is no archive")

    def __init__(self, path: str | Path, files: Files | None = None) -> None:
        """
        Raises:
            InvalidOption: *path* is a URL, and not of a file.
        """
        super().__init__(path, files)
        self.storage = StorageOptions.of()
        self.store = DataStore(str(self.path), _DATA, COLUMNS)
        self._known: dict[TopicPartition, Sequence[Commit]] = {}

    @property
    def name(self) -> str:
        return str(self.path)

    # Reading.

    def refresh(self) -> None:
        self._known.clear()
        self.__dict__.pop("partitions", None)

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

    def archived(self, partition: TopicPartition) -> ArchivedPartition | None:
        commits = self.commits_of(partition)
        if not commits:
            return None
        files = [commit.file for commit in commits if commit.file is not None]
        return ArchivedPartition(
            Offsets(commits[0].start_offset, commits[-1].end_offset),
            commits[-1].isolation_level,
            str(self.commit_path(commits[-1])),
            files[-1] if files else None,
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
        left = [file for file in self.store.local_files() if file not in named]
        for _, directory in self._commit_directories():
            left += [
                path for path in paths_in(self.files, directory) if path.suffix == TEMPORARY_SUFFIX
            ]
        return left

    # Writing, by who holds the lock.

    def data_directory(self, partition: TopicPartition) -> Path:
        return self.path / self.store.partition_path(partition)

    def prepare(self, partitions: Iterable[TopicPartition]) -> None:
        """
        Make the directories of *partitions*, so that they survive a crash; for none, those of an
        archive.
        """
        partitions = list(partitions)
        directories = [self.path / _COMMITS]
        directories += [self.path / _COMMITS / str(partition) for partition in partitions]
        for directory in directories:
            make_durable_directory(self.files, self.path, directory)
        self.store.make_directories(partitions)

    def add(self, commit: Commit) -> None:
        """
        Make *commit*, the next of its partition, in one step.
        """
        self.files.write_atomically(self.commit_path(commit), commit.to_json().encode())
