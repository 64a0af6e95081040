"""
Where the commits of an archive in Parquet are, and how one is made in one step.

::

    a local directory   <start>-<end>.json   renamed when it is durable, by the holder of the lock
    an object store     <start>.json         made only if there is none, so two runs that go on at
                                             the same offset cannot both add a range

Either name is read anywhere: an archive may be copied from one to the other, and goes on there.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from barnabas.pipeline.errors import InvalidOption, PipelineError
from barnabas.pipeline.jobs.archive.commit import ArchiveCommit
from barnabas.pipeline.jobs.output import make_durable_directory
from barnabas.pipeline.logs.filesystems import is_local, local_path, locate
from barnabas.pipeline.storage import StorageOptions
from barnabas.storage.fs.disk import DiskFiles
from barnabas.storage.fs.interface import Files
from barnabas.storage.topic_partition import TopicPartition

COMMITS: Final = "_commits"
"""The directory, from the base of the archive."""
SUFFIX: Final = ".json"

_SCHEMES: Final = ("s3", "s3a", "gs", "abfs", "abfss")
"""Those of stores that make an object only if there is none."""
_PROOF: Final = f"{COMMITS}/archive{SUFFIX}"
"""The object that is made twice, to see whether the second time is refused."""
_READS_AT_ONCE: Final = 16


class StoreError(PipelineError):
    """
    An object store refuses a request, or cannot be reached.
    """


class CommitStore(ABC):
    """
    The directories of commits, one for each partition, and the base that they share with the data.
    """

    base: str
    """A local directory or a URL."""
    files: Files
    """By which they are read."""
    path: Path
    """The base, as *files* takes it."""

    def refresh(self) -> None:  # noqa: B027  # a disk is looked at each time
        """
        Forget what was listed.
        """

    def name_of(self, path: Path) -> str:
        """
        What people call the file or directory at *path*.
        """
        return f"{self.base}/{path.relative_to(self.path)}"

    @abstractmethod
    def file_name(self, commit: ArchiveCommit) -> str:
        """
        That of the file of a new commit.
        """

    @abstractmethod
    def prepare(self, partitions: Iterable[TopicPartition]) -> None:
        """
        Make what is needed for commits of *partitions*; for none, what an archive has.
        """

    @abstractmethod
    def add(self, path: Path, data: bytes) -> bool:
        """
        Make the file at *path* in one step; false if another run has made one there.
        """

    @abstractmethod
    def remove(self, path: Path) -> None:
        """
        Remove a file, if it is there.
        """

    @abstractmethod
    def read(self, paths: Sequence[Path]) -> Iterable[bytes]:
        """
        The contents of files, in this order.
        """


class LocalCommits(CommitStore):
    """
    On a disk of this machine. A writer holds the lock of the archive.
    """

    def __init__(self, path: Path, files: Files | None = None) -> None:
        self.path = path
        self.base = str(path)
        self.files = files or DiskFiles()

    def file_name(self, commit: ArchiveCommit) -> str:
        return f"{commit.name}{SUFFIX}"

    def prepare(self, partitions: Iterable[TopicPartition]) -> None:
        commits = self.path / COMMITS
        for directory in (commits, *(commits / str(partition) for partition in partitions)):
            make_durable_directory(self.files, self.path, directory)

    def add(self, path: Path, data: bytes) -> bool:
        self.files.write_atomically(path, data)
        return True

    def remove(self, path: Path) -> None:
        path.unlink(missing_ok=True)

    def read(self, paths: Sequence[Path]) -> Iterable[bytes]:
        return map(self.files.read_bytes, paths)


class ObjectCommits(CommitStore):
    """
    In an object store, by obstore. There is no lock: of two runs that add a range at the same
    offset, the store refuses one.
    """

    def __init__(self, url: str, storage: StorageOptions) -> None:
        """
        Raises:
            InvalidOption: the store makes no objects in one step.
            ModuleNotFoundError: obstore is not installed.
        """
        if url.partition(":")[0].lower() not in _SCHEMES or "?" in url:
            raise InvalidOption(
                f"{url} cannot have an archive in Parquet: each commit is an object that is made"
                f" only if there is none, which is known to work at {', '.join(_SCHEMES)}."
            )
        self.base = url.rstrip("/")
        self._storage = storage
        self.refresh()
        self._objects = _objects_of(self.base, storage)

    def refresh(self) -> None:
        self.files, self.path = locate(self.base, self._storage)

    def file_name(self, commit: ArchiveCommit) -> str:
        return f"{commit.start_name}{SUFFIX}"

    def prepare(self, partitions: Iterable[TopicPartition]) -> None:
        """
        Raises:
            InvalidOption: the store replaces objects that it was to make only if there are none.
        """
        if self._create(_PROOF, b"{}") and self._create(_PROOF, b"{}"):
            raise InvalidOption(
                f"{self.base} cannot have an archive in Parquet: its store makes an object"
                " (If-None-Match: *) although there is one, so two runs at once could add a range"
                " twice."
            )

    def add(self, path: Path, data: bytes) -> bool:
        if self._create(str(path.relative_to(self.path)), data):
            return True
        # An answer that was lost is asked for again: what is there may be ours.
        try:
            return self.files.read_bytes(path) == data
        except FileNotFoundError:
            # S3 answers 409 while another run is making it.
            return False

    def remove(self, path: Path) -> None:
        from obstore import delete  # noqa: PLC0415  # an extra

        with _errors_of(self.base):
            delete(self._objects, str(path.relative_to(self.path)))

    def read(self, paths: Sequence[Path]) -> Iterable[bytes]:
        with ThreadPoolExecutor(_READS_AT_ONCE) as pool:
            return list(pool.map(self.files.read_bytes, paths))

    def _create(self, path: str, data: bytes) -> bool:
        from obstore import put  # noqa: PLC0415  # an extra
        from obstore.exceptions import AlreadyExistsError  # noqa: PLC0415  # an extra

        with _errors_of(self.base):
            try:
                put(self._objects, path, data, mode="create", use_multipart=False)
            except AlreadyExistsError:
                return False
        return True


def commit_store(path: str | Path, files: Files | None, storage: StorageOptions) -> CommitStore:
    """
    That of the archive at *path*, which may be a URL.

    Raises:
        InvalidOption: it can have no archive in Parquet.
        ModuleNotFoundError: the package that it needs is not installed.
    """
    if is_local(path):
        return LocalCommits(local_path(path).absolute(), files)
    return ObjectCommits(str(path), storage)


def _objects_of(url: str, storage: StorageOptions) -> Any:
    from obstore.store import from_url  # noqa: PLC0415  # an extra

    options = storage.for_obstore(url)
    with _errors_of(url):
        return from_url(url, **options)


@contextmanager
def _errors_of(url: str) -> Iterator[None]:
    """
    Raises:
        StoreError: in place of what obstore raises, whose text has many lines.
    """
    from obstore.exceptions import BaseError  # noqa: PLC0415  # an extra

    try:
        yield
    except (BaseError, OSError, ValueError) as error:
        raise StoreError(f"{url} cannot be written: {str(error).splitlines()[0]}.") from None
