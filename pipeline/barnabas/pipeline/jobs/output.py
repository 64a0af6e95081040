"""
The directory that a job writes to.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from barnabas.pipeline.errors import PipelineError
from barnabas.storage.fs.interface import Files

_LOCK: Final = ".lock"


class InUse(PipelineError):
    """
    Another run is writing to the same directory.
    """


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
