"""
What was compacted, as its snapshots and notes say.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from barnabas.pipeline.errors import PipelineError
from barnabas.pipeline.jobs.output import (
    OutputDirectory,
    locked,
    make_durable_directory,
    paths_in,
)
from barnabas.pipeline.jobs.parquet_files import partition_directory
from barnabas.storage.fs.interface import TEMPORARY_SUFFIX
from barnabas.storage.topic_partition import TopicPartition

DATA: Final = "compacted"
_DONE: Final = "_done"
_SNAPSHOTS: Final = "_snapshots"
_SUFFIX: Final = ".json"


class CompactError(PipelineError):
    """
    What was compacted is not what it should be, or something cannot be compacted.
    """


@dataclass(frozen=True, kw_only=True)
class CompactedPartition:
    """
    What became of the records of one partition, and how that was asked for.
    """

    topic: str
    partition: int
    source: str
    """The directory of the log, or of the archive."""
    start_offset: int
    end_offset: int
    """Not in the range."""
    source_bytes: int
    keeps_tombstones: bool
    records_read: int
    without_key: int
    """Of those that were read; they did not stay."""
    tombstones: int
    """Keys whose latest record is one."""
    records: int
    file: str | None
    """Its path from that of the whole; None if there are no records."""
    file_bytes: int
    crc32c: int
    """Of the file."""

    @property
    def topic_partition(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)

    @classmethod
    def from_dict(cls, values: Any) -> CompactedPartition:
        """
        Raises:
            ValueError: it is not one.
        """
        names = {field.name for field in fields(cls)}
        if not isinstance(values, dict) or set(values) != names:
            raise ValueError(f"it should have {', '.join(sorted(names))}")
        return cls(**values)

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str | bytes) -> CompactedPartition:
        """
        Raises:
            ValueError: it is not one.
        """
        return cls.from_dict(json.loads(text))


class Snapshots(OutputDirectory):
    """
    The directory that compacted topics are in.

    Invariant: the files that a snapshot or a note names were whole and durable before it was made.
    """

    proof = _SNAPSHOTS
    nothing_there = (CompactError, "There are no compacted topics")

    # Reading.

    @cached_property
    def topics(self) -> Mapping[str, Sequence[CompactedPartition]]:
        """
        The partitions of each topic, as they were when this was first asked for.

        Raises:
            CompactError: a snapshot cannot be read, or a file that it names is not there in the
                size that it had.
        """
        return {path.stem: self._read(path) for path in self._json_in(_SNAPSHOTS)}

    @cached_property
    def done(self) -> Mapping[TopicPartition, CompactedPartition]:
        """
        The partitions that a run was done with before it was killed.

        Raises:
            CompactError: as above.
        """
        return {
            partition.topic_partition: partition
            for path in self._json_in(_DONE)
            for partition in self._read(path)
        }

    def leftovers(self) -> list[Path]:
        """
        What is of no use any more: files that neither a snapshot nor a note names.
        """
        known = [*self.done.values(), *(each for topic in self.topics.values() for each in topic)]
        named = {self.path / each.file for each in known if each.file is not None}
        left = [
            file
            for topic in paths_in(self.files, self.path / DATA)
            for partition in paths_in(self.files, topic)
            for file in paths_in(self.files, partition)
            if file not in named
        ]
        for name in (_DONE, _SNAPSHOTS):
            paths = paths_in(self.files, self.path / name)
            left += [path for path in paths if path.suffix == TEMPORARY_SUFFIX]
        return left

    def _json_in(self, name: str) -> Iterator[Path]:
        for path in paths_in(self.files, self.path / name):
            if path.suffix == _SUFFIX:
                yield path

    def _read(self, path: Path) -> Sequence[CompactedPartition]:
        try:
            partitions = [
                CompactedPartition.from_dict(each)
                for each in json.loads(self.files.read_bytes(path))
            ]
        except (TypeError, ValueError) as error:
            raise CompactError(f"{path} does not say what was compacted: {error}.") from error
        for partition in partitions:
            self._check_file(partition, path)
        return partitions

    def _check_file(self, partition: CompactedPartition, named_by: Path) -> None:
        if partition.file is None:
            return
        file = self.path / partition.file
        try:
            size = self.files.size(file)
        except FileNotFoundError as error:
            raise CompactError(f"{file} is gone, which {named_by} names.") from error
        if size != partition.file_bytes:
            raise CompactError(
                f"{file} has {size} bytes, and {named_by} says that it was written with"
                f" {partition.file_bytes}."
            )

    # Writing, by who holds the lock.

    def locked(self) -> AbstractContextManager[None]:
        """
        Nobody else writes meanwhile. The directory is made if there is none.

        Raises:
            InUse: somebody else does.
        """
        return locked(self.files, self.path)

    def data_directory(self, partition: TopicPartition) -> Path:
        return partition_directory(self.path / DATA, partition)

    def make_directories(self, partitions: Iterable[TopicPartition]) -> None:
        """
        Those of some partitions, and of what is noted about them.
        """
        data = [self.data_directory(partition) for partition in partitions]
        for directory in (self.path / _DONE, self.path / _SNAPSHOTS, *data):
            make_durable_directory(self.files, self.path, directory)

    def note(self, partition: CompactedPartition) -> None:
        """
        A partition is done.
        """
        self._write(self._note_path(partition.topic_partition), [partition])

    def publish(self, topic: str, partitions: Sequence[CompactedPartition]) -> None:
        """
        Make the snapshot of a topic in one step, in the place of the one there was.
        """
        path = self.path / _SNAPSHOTS / f"{topic}{_SUFFIX}"
        self._write(path, sorted(partitions, key=lambda each: each.partition))

    def forget(self, partition: TopicPartition) -> None:
        """
        That a partition is done says its snapshot now.
        """
        self.files.remove(self._note_path(partition))

    def _note_path(self, partition: TopicPartition) -> Path:
        return self.path / _DONE / f"{partition}{_SUFFIX}"

    def _write(self, path: Path, partitions: Iterable[CompactedPartition]) -> None:
        text = json.dumps([asdict(partition) for partition in partitions], indent=1)
        self.files.write_atomically(path, text.encode())
