"""
An index that is opened when somebody needs it.

A log may have thousands of segments of which few are ever read. Also the *making* of the file
waits: a rolled segment gets its index files when they are first asked for (Kafka's LazyIndex).
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Generic, TypeVar

from barnabas.storage.errors import KafkaStorageError
from barnabas.storage.files import Files
from barnabas.storage.index import Index

AnyIndex = TypeVar("AnyIndex", bound=Index)


class LazyIndex(Generic[AnyIndex]):
    """
    The file of an index, and the index once it was asked for.

    ``get`` is safe from any thread. The rest belongs to the log that owns the segment.
    """

    __slots__ = (
        "_base_offset",
        "_files",
        "_guard",
        "_kind",
        "_max_size",
        "_path",
        "_removed",
        "index",
    )

    def __init__(
        self, kind: type[AnyIndex], files: Files, path: Path, base_offset: int, max_size: int
    ) -> None:
        self._kind = kind
        self._files = files
        self._path = path
        self._base_offset = base_offset
        self._max_size = max_size
        self._guard = threading.Lock()
        self._removed = False
        self.index: AnyIndex | None = None
        """None until it was asked for."""

    @property
    def path(self) -> Path:
        return self._path

    def get(self) -> AnyIndex:
        """
        The index, opened or made if need be.

        Raises:
            ValueError: ``segment.index.bytes`` is less than an entry.
        """
        with self._guard:
            if self.index is not None:
                return self.index
            if self._removed:
                # Somebody still reads the removed segment. Opening would make the file again.
                return self._without_file()
            try:
                self.index = self._kind.open(
                    self._files, self._path, self._base_offset, self._max_size
                )
            except KafkaStorageError as error:
                # The directory is being renamed at this moment, as its topic is deleted. Who reads
                # does well without an index: it only makes a search shorter.
                if not isinstance(error.__cause__, FileNotFoundError):
                    raise
                return self._without_file()
            return self.index

    def _without_file(self) -> AnyIndex:
        return self._kind.without_file(self._path, self._base_offset, self._max_size)

    def rename_to(self, path: Path) -> None:
        """
        Rename the file, if it was made already.
        """
        with self._guard:
            try:
                if self.index is not None or self._files.exists(self._path):
                    self._files.rename(self._path, path)
            finally:
                self._set_path(path)

    def update_parent_dir(self, directory: Path) -> None:
        """
        Somebody has renamed the directory.
        """
        with self._guard:
            self._set_path(directory / self._path.name)

    def _set_path(self, path: Path) -> None:
        self._path = path
        if self.index is not None:
            self.index.path = path

    def delete_if_exists(self) -> bool:
        """
        Remove the file; whether there was one. Who reads the index goes on doing so.
        """
        with self._guard:
            self._removed = True
            return self._files.remove(self._path)

    def close(self) -> None:
        with self._guard:
            if self.index is not None:
                self.index.close()

    def close_handler(self) -> None:
        with self._guard:
            if self.index is not None:
                self.index.close_handler()
