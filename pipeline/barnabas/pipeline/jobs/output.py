"""
The directory that a job writes to.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar, Final, Self

from barnabas.pipeline.errors import PipelineError
from barnabas.pipeline.logs.filesystems import local_path
from barnabas.storage.fs.disk import DiskFiles
from barnabas.storage.fs.interface import Files

_LOCK: Final = ".lock"


class InUse(PipelineError):
    """
    Another run is writing to the same directory.
    """


class OutputDirectory:
    """
    A directory of this machine, and what proves that a job has written to it.
    """

    proof: ClassVar[str]
    """A directory in it."""
    nothing_there: ClassVar[tuple[type[PipelineError], str]]
    """What is raised if there is no proof, and the sentence without the path."""

    def __init__(self, path: str | Path, files: Files | None = None) -> None:
        """
        Args:
            path: one of this machine, or a ``file:`` URL.

        Raises:
            InvalidOption: *path* is another URL.
        """
        self.path = local_path(path).absolute()
        self.files = files or DiskFiles()

    @classmethod
    def existing(cls, path: str | Path) -> Self:
        """
        The one at *path*, to which a job has written.

        Raises:
            InvalidOption: as above.
            PipelineError: none has, as ``nothing_there`` says.
        """
        there = cls(path)
        if not there.files.is_directory(there.path / cls.proof):
            kind, sentence = cls.nothing_there
            raise kind(f"{sentence} in {there.path}.")
        return there


@contextmanager
def locked(files: Files, path: Path) -> Iterator[None]:
    """
    Nobody else writes to *path* meanwhile. The directory is made if there is none.

    Raises:
        InUse: somebody else does.
    """
    files.make_directory(path)
    lock = files.lock(path / _LOCK)
    if lock is None:
        raise InUse(f"Another run is writing to {path}.")
    try:
        yield
    finally:
        lock.release()


def make_durable_directory(files: Files, base: Path, directory: Path) -> None:
    """
    Make *directory*, which is below *base*, so that it survives a crash.
    """
    files.make_directory(directory)
    for above in directory.parents:
        files.sync_directory(above)
        if above == base:
            break


def paths_in(files: Files, directory: Path) -> list[Path]:
    """
    What is in a directory, by name; nothing if there is none.
    """
    if not files.is_directory(directory):
        return []
    return [directory / name for name in files.names(directory)]
