"""
What an archive has, as its commits say.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Final

from barnabas.pipeline.decoding.decode import OffsetRange
from barnabas.pipeline.jobs.archive.commit import ArchiveCommit, parse_range_start
from barnabas.pipeline.jobs.archive.commit_store import COMMITS, SUFFIX, commit_store
from barnabas.pipeline.jobs.archive.store import DataStore, data_files
from barnabas.pipeline.jobs.archive.table import (
    ArchivedFile,
    ArchivedPartition,
    ArchiveError,
    ArchiveTable,
    other_run,
    partition_of,
)
from barnabas.pipeline.jobs.output import paths_in
from barnabas.pipeline.jobs.parquet_files import COLUMNS, Checksum
from barnabas.pipeline.storage import StorageOptions
from barnabas.storage.errors import InvalidLogDirectory
from barnabas.storage.fs.interface import TEMPORARY_SUFFIX, Files
from barnabas.storage.state_files.file_names import parse_topic_partition_name
from barnabas.storage.topic_partition import TopicPartition

_DATA: Final = "data"


class Archive(ArchiveTable):
    """
    An archive in Parquet: a local directory, or the URL of an object store.

    Invariants:

    1. The commits of a partition follow one another, each beginning where the one before ended.
    2. The file that a commit names was whole and durable before the commit was made.
    """

    def __init__(
        self,
        path: str | Path,
        files: Files | None = None,
        *,
        storage: StorageOptions | None = None,
    ) -> None:
        """
        Args:
            path: a directory, or a URL.
            files: of a directory of this machine.
            storage: how S3 and Azure are reached; as the environment says by default.

        Raises:
            InvalidOption: *path* can have no archive.
            ModuleNotFoundError: the package that its store needs is not installed.
        """
        self.storage = StorageOptions.of() if storage is None else storage
        self._commits = commit_store(path, files, self.storage)
        self.store = DataStore(self._commits.base, _DATA, COLUMNS, self.storage)
        self._known: dict[TopicPartition, Sequence[ArchiveCommit]] = {}
        self._found: dict[ArchiveCommit, Path] = {}

    @property
    def name(self) -> str:
        return self._commits.base

    @property
    def files(self) -> Files:
        """
        By which it is read.
        """
        return self._commits.files

    @property
    def path(self) -> Path:
        """
        As *files* takes it.
        """
        return self._commits.path

    @property
    def exists(self) -> bool:
        return self.files.is_directory(self.path / COMMITS)

    # Reading.

    def refresh(self) -> None:
        self._commits.refresh()
        self._known.clear()
        self.__dict__.pop("partitions", None)

    @cached_property
    def partitions(self) -> Sequence[TopicPartition]:
        """
        Those that have a directory of commits, sorted; it may still be empty.
        """
        return sorted(partition for partition, _ in self._commit_directories())

    @property
    def commits(self) -> Mapping[TopicPartition, Sequence[ArchiveCommit]]:
        """
        Those of all partitions.

        Raises:
            ArchiveError: as ``commits_of``.
        """
        return {partition: self.commits_of(partition) for partition in self.partitions}

    def commits_of(self, partition: TopicPartition) -> Sequence[ArchiveCommit]:
        """
        Those of a partition in their order, as they were when this was first asked for.

        Raises:
            ArchiveError: one cannot be read, or does not follow the one before it, or its file is
                not there in the size that it had.
        """
        if partition not in self._known:
            directory = self.path / COMMITS / str(partition)
            self._known[partition] = self._commits_of(partition, directory)
        return self._known[partition]

    def commit_path(self, commit: ArchiveCommit) -> Path:
        """
        Where a commit was found, or where a new one goes.
        """
        directory = self.path / COMMITS / str(commit.topic_partition)
        return self._found.get(commit, directory / self._commits.file_name(commit))

    def commit_name(self, commit: ArchiveCommit) -> str:
        """
        What people call its file.
        """
        return self._commits.name_of(self.commit_path(commit))

    def _commit_directories(self) -> Iterator[tuple[TopicPartition, Path]]:
        for path in paths_in(self.files, self.path / COMMITS):
            try:
                yield parse_topic_partition_name(path), path
            except InvalidLogDirectory:
                continue

    def _commits_of(self, partition: TopicPartition, directory: Path) -> Sequence[ArchiveCommit]:
        paths = [path for path in paths_in(self.files, directory) if path.suffix == SUFFIX]
        texts = self._commits.read(paths)
        # Sizes of objects are known from this listing, which has the files of all these commits.
        paths_in(self.files, self.path / self.store.partition_path(partition))
        commits = [
            self._commit(partition, path, text) for path, text in zip(paths, texts, strict=True)
        ]
        for before, after in pairwise(commits):
            if before.end_offset != after.start_offset:
                what = "a gap" if before.end_offset < after.start_offset else "an overlap"
                raise ArchiveError(
                    f"{self.commit_name(after)} begins at offset {after.start_offset} of"
                    f" {partition}, and the commit before it ends at {before.end_offset}: the"
                    f" archive has {what} there."
                )
        return commits

    def _commit(self, partition: TopicPartition, path: Path, text: bytes) -> ArchiveCommit:
        name = self._commits.name_of(path)
        try:
            commit = ArchiveCommit.from_json(text)
        except ValueError as error:
            raise ArchiveError(f"{name} is no commit: {error}.") from error
        names = (commit.name, commit.start_name)
        if commit.topic_partition != partition or path.stem not in names:
            raise ArchiveError(
                f"{name} speaks of offsets {commit.start_offset} to {commit.end_offset} of"
                f" {commit.topic_partition}, which is not what it is called after."
            )
        self._found[commit] = path
        if commit.file is not None:
            self._check_file(commit, self.path / commit.file)
        return commit

    def _check_file(self, commit: ArchiveCommit, file: Path) -> None:
        which = f"the file of offsets {commit.start_offset} to {commit.end_offset}"
        name = self._commits.name_of(file)
        try:
            size = self.files.size(file)
        except FileNotFoundError as error:
            raise ArchiveError(f"{name} is gone, {which} of {commit.topic_partition}.") from error
        if size != commit.file_bytes:
            raise ArchiveError(
                f"{name}, {which} of {commit.topic_partition}, has {size} bytes and was written"
                f" with {commit.file_bytes}."
            )

    def archived(self, partition: TopicPartition) -> ArchivedPartition | None:
        commits = self.commits_of(partition)
        if not commits:
            return None
        files = [commit.file for commit in commits if commit.file is not None]
        return ArchivedPartition(
            OffsetRange(commits[0].start_offset, commits[-1].end_offset),
            commits[-1].isolation_level,
            self.commit_name(commits[-1]),
            files[-1] if files else None,
        )

    def files_of(self, partition: TopicPartition) -> Sequence[ArchivedFile]:
        return [
            ArchivedFile(
                partition,
                commit.file,
                self._commits.name_of(self.path / commit.file),
                OffsetRange(commit.start_offset, commit.end_offset),
                commit.file_bytes,
                commit.log_bytes,
                Checksum(commit.file_bytes, commit.crc32c),
            )
            for commit in self.commits_of(partition)
            if commit.file is not None
        ]

    def identity_of(self, partition: TopicPartition) -> str:
        return self.commits_of(partition)[0].to_json()

    def leftovers(self) -> list[str]:
        """
        The files of runs that were killed, which no commit names. Of an object store, those of
        offsets that are archived: another run may still need the ones behind.
        """
        named = {commit.file for commits in self.commits.values() for commit in commits}
        left = [
            file
            for file in data_files(self.files, self.path / _DATA)
            if str(file.relative_to(self.path)) not in named and self._is_left(file)
        ]
        for _, directory in self._commit_directories():
            left += [
                path for path in paths_in(self.files, directory) if path.suffix == TEMPORARY_SUFFIX
            ]
        return [*map(self._commits.name_of, left)]

    def _is_left(self, file: Path) -> bool:
        if self.store.is_local:
            return True
        archived = self.archived(partition_of(file))
        start = parse_range_start(file.name)
        return archived is not None and start is not None and start < archived.offsets.end

    def remove_leftover(self, name: str) -> None:
        self._commits.remove(self.path / name.removeprefix(f"{self.name}/"))

    # Writing, on a disk by who holds the lock.

    def data_directory(self, partition: TopicPartition) -> Path:
        return self.path / self.store.partition_path(partition)

    def prepare(self, partitions: Iterable[TopicPartition]) -> None:
        """
        Make the directories of *partitions*, so that they survive a crash; for none, those of an
        archive.

        Raises:
            InvalidOption: the object store does not make a commit in one step.
        """
        partitions = list(partitions)
        self._commits.prepare(partitions)
        self.store.make_directories(partitions)

    def add(self, commit: ArchiveCommit) -> None:
        if not self._commits.add(self.commit_path(commit), commit.to_json().encode()):
            raise other_run(commit, self.name)
