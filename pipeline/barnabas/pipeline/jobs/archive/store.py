"""
Where the data files of an archive are: a local directory, or the URL of an object store.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import crc32c
import pyarrow as pa
from pyarrow import parquet as pq

from barnabas.pipeline.jobs.output import make_durable_directory, paths_in
from barnabas.pipeline.jobs.parquet_files import (
    Checksum,
    checksum,
    partition_directory,
    write_durably,
    write_parquet,
)
from barnabas.pipeline.logs.filesystems import (
    file_system_of,
    is_local,
    is_url,
    local_path,
)
from barnabas.pipeline.schemas import ARCHIVED, project
from barnabas.pipeline.storage import StorageOptions
from barnabas.storage.fs.disk import DiskFiles
from barnabas.storage.fs.interface import Files
from barnabas.storage.topic_partition import TopicPartition


class DataFile(NamedTuple):
    """
    A file that was written whole.
    """

    path: str
    """From the base of its store."""
    checksum: Checksum


@dataclass(frozen=True)
class DataStore:
    """
    Where workers write the files of an archive. It is pickled on its way to them.
    """

    base: str
    """A local directory, or a URL."""
    directory: str
    """Below the base, in which the directories of topics are; may be empty."""
    columns: tuple[str, ...]
    """Of the files."""
    storage: StorageOptions = field(default_factory=StorageOptions)

    @property
    def is_local(self) -> bool:
        return is_local(self.base)

    def partition_path(self, partition: TopicPartition) -> Path:
        """
        The directory of a partition, from the base.
        """
        return partition_directory(Path(self.directory), partition)

    def make_directories(self, partitions: Iterable[TopicPartition]) -> None:
        """
        Those of *partitions*, so that they survive a crash. An object store has none.
        """
        if not self.is_local:
            return
        base, files = local_path(self.base), DiskFiles()
        for partition in partitions:
            make_durable_directory(files, base, base / self.partition_path(partition))

    def write(
        self, partition: TopicPartition, name: str, batches: Iterable[pa.RecordBatch]
    ) -> DataFile | None:
        """
        Write a file of records of *partition*; it is whole and durable, or not there.

        Returns:
            None if there were no rows, and so is no file.
        """
        path = self.partition_path(partition) / name
        schema = project(ARCHIVED, self.columns)
        if self.is_local:
            file = local_path(self.base) / path
            is_there = write_durably(DiskFiles(), file, batches, schema)
            return DataFile(str(path), checksum(file)) if is_there else None
        system, target = file_system_of(f"{self.base}/{path}", self.storage)
        written = _Upload(system, target)
        try:
            is_there = write_parquet(written.open, batches, schema)
        except BaseException:
            written.give_up()
            raise
        return DataFile(str(path), written.checksum) if is_there else None

    @contextmanager
    def open(self, path: str) -> Iterator[pq.ParquetFile]:
        """
        The file at *path* from the base, at an absolute path, or at a URL.
        """
        system, target = self._found(path)
        with pq.ParquetFile(target, filesystem=system) as file:
            yield file

    def read(self, path: str) -> pa.Buffer:
        """
        The bytes of the same file, which are not in memory if it is on a local disk.
        """
        system, target = self._found(path)
        if system is None:
            return pa.memory_map(target).read_buffer()
        with system.open_input_file(target) as file:
            return file.read_buffer()

    def _found(self, path: str) -> tuple[Any, str]:
        """
        The file system of pyarrow and the path in it; None is the local disk.
        """
        whole = is_url(path) or Path(path).is_absolute()
        url = path if whole else f"{self.base}/{path}"
        if is_local(url):
            return None, str(local_path(url))
        return file_system_of(url, self.storage)

    def local_files(self) -> list[Path]:
        """
        The files of all partitions; nothing of an object store.
        """
        if not self.is_local:
            return []
        return data_files(DiskFiles(), local_path(self.base) / self.directory)


def data_files(files: Files, directory: Path) -> list[Path]:
    """
    The files of all partitions, whose directories are those below *directory*.
    """
    return [
        file
        for topic in paths_in(files, directory)
        if topic.name.startswith("topic=")
        for partition in paths_in(files, topic)
        for file in paths_in(files, partition)
    ]


class _Upload:
    """
    A file of an object store, which is there as soon as it is closed, and its checksum.
    """

    def __init__(self, system: Any, path: str) -> None:
        self._system = system
        self._path = path
        self._stream: Any = None
        self._size = 0
        self._crc = 0
        self.closed = False

    @property
    def checksum(self) -> Checksum:
        return Checksum(self._size, self._crc)

    def open(self) -> pa.PythonFile:
        if self._system.type_name == "hdfs":
            self._system.create_dir(str(Path(self._path).parent), recursive=True)
        self._stream = self._system.open_output_stream(self._path)
        return pa.PythonFile(self, mode="w")

    def give_up(self) -> None:
        """
        Remove what is there: closing has made it a file.
        """
        if self._stream is not None:
            self._stream.close()
            self._system.delete_file(self._path)

    # What pyarrow wants of a file.

    def write(self, data: Any) -> int:
        view = memoryview(data)
        self._crc = crc32c.crc32c(view, self._crc)
        self._size += view.nbytes
        self._stream.write(data)
        return view.nbytes

    def flush(self) -> None:
        """
        Nothing is there before it is closed.
        """

    def close(self) -> None:
        self._stream.close()
        self.closed = True
