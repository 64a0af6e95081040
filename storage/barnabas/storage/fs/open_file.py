"""
A file that may be given back while nobody uses it: one of ``OpenFiles``.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

from pathlib import Path

from barnabas.storage.errors import KafkaStorageError
from barnabas.storage.fs.interface import File, Files


class OpenFile:
    """
    A file that is open while it is used.

    Invariants:

    1. The file that ``get`` returns can be read while there is a reference to it.
    2. A file that was removed stays open while there is a reference to this object, for late
       readers.

    Safe from any thread. ``path`` is changed with the lock of ``OpenFiles`` held.
    """

    __slots__ = ("_file", "_files", "_is_closed", "_read_only", "path", "was_used")

    def __init__(self, files: Files, path: Path, *, create: bool, read_only: bool) -> None:
        """
        Raises:
            FileNotFoundError: there is no file, and none may be made.
        """
        self.path = path
        self.was_used = False
        self._files = files
        self._read_only = read_only
        self._is_closed = False
        self._file: File | None = files.open(path, create=create, read_only=read_only)
        if not read_only:
            files.open_files.add(self)

    def get(self) -> File:
        """
        The file, opened if need be.

        Raises:
            TooManyOpenFiles: there is no descriptor for it.
            KafkaStorageError: it is gone, or was closed.
        """
        self.was_used = True
        file = self._file
        return self._open_again() if file is None else file

    def size_at_first(self) -> int:
        """
        Bytes of the file, which was just opened. It does not count as a use.
        """
        file = self.get()
        self.was_used = False
        return file.size()

    def _open_again(self) -> File:
        try:
            return self._files.open_files.find(self._open_now)
        except FileNotFoundError as error:
            raise KafkaStorageError(f"{self.path} is gone") from error

    def _open_now(self) -> File:
        open_files = self._files.open_files
        with open_files.lock:
            file = self._file
            if file is None:
                if self._is_closed:
                    raise KafkaStorageError(f"{self.path} is closed")
                file = self._file = self._reopened()
                open_files.add(self)
            return file

    def _reopened(self) -> File:
        return self._files.open(self.path, create=False, read_only=self._read_only)

    def give_back(self) -> None:
        # Not closed: a reader may have it.
        self._file = None

    def set_path(self, path: Path) -> None:
        """
        Follow the file or its directory, which was renamed.
        """
        with self._files.open_files.lock:
            self.path = path
            if self._file is not None:
                self._file.path = path

    def rename_to(self, path: Path) -> None:
        """
        Rename the file.
        """
        with self._files.open_files.lock:
            try:
                self._files.rename(self.path, path)
            finally:
                self.set_path(path)

    def delete_if_exists(self) -> bool:
        """
        Remove the file; return whether there was one. Later reads find it.
        """
        open_files = self._files.open_files
        with open_files.lock:
            open_files.discard(self)
            if self._file is None and not self._is_closed and self._files.exists(self.path):
                self._file = self._reopened()
            return self._files.remove(self.path)

    def close(self) -> None:
        """
        Close the file for good: later calls, also of readers, fail.
        """
        with self._files.open_files.lock:
            self._is_closed = True
            self._files.open_files.discard(self)
            if self._file is not None:
                self._file.close()
