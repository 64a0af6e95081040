"""
Opening and reading single files.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from barnabas.storage.fs.interface import File, Files


@contextmanager
def opened(files: Files, path: Path) -> Iterator[File]:
    """
    The file *path*, open until the end of the ``with`` block and never written to.

    Raises:
        FileNotFoundError: there is no such file.
    """
    file = files.open(path, create=False, read_only=True)
    try:
        yield file
    finally:
        file.close()


def read_if_exists(files: Files, path: Path) -> bytes | None:
    """
    All bytes of the file *path*; None if there is no such file.
    """
    try:
        return files.read_bytes(path)
    except FileNotFoundError:
        return None
