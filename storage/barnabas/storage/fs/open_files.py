"""
The files of logs that are open at a time.

A broker may have more logs than a process may have descriptors, and uses few of them. A file that
was not used for long is closed, and opened again when it is needed. A read in progress keeps its
file open, also if that is given back, renamed or removed.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

from barnabas.storage.errors import KafkaStorageError

if TYPE_CHECKING:
    from barnabas.storage.fs.interface import File, Files

T = TypeVar("T")


class Holder(Protocol):
    """
    The owner of an open file.
    """

    was_used: bool
    """Set with each use, and reset when files to give back are searched."""

    def give_back(self) -> None:
        """
        Close the file. The next use opens it again.
        """


class OpenFiles:
    """
    The files that are open and may be given back: the least recently used go first, nearly. Each
    use sets a mark, which costs less than a list in order (the algorithm is known as second
    chance).

    Safe from any thread. A thread that renames a file holds ``lock`` until all know the name, so
    that nobody opens the file by the old one; a thread that renames a directory holds ``renaming``,
    so that others can wait for the end of that.
    """

    def __init__(self, limit: int | None = None) -> None:
        """
        Args:
            limit: how many files, at least the four that one append may need; None for no limit,
                and then none is given back.
        """
        self.limit = limit
        self.lock = threading.RLock()
        self.renaming = threading.Lock()
        self._holders: OrderedDict[int, Holder] = OrderedDict()

    def __len__(self) -> int:
        return len(self._holders)

    def set_limit(self, limit: int) -> None:
        """
        Have *limit* files open at most from now on; unless there is no limit.
        """
        if self.limit is None:
            return
        self.limit = limit
        if len(self._holders) > limit:
            with self.lock:
                self._shrink(limit)

    def add(self, holder: Holder) -> None:
        """
        Note that *holder* has opened its file.
        """
        limit = self.limit
        if limit is None:
            return
        with self.lock:
            self._holders[id(holder)] = holder
            self._shrink(limit)

    def discard(self, holder: Holder) -> None:
        """
        Forget *holder*, which keeps its file or has closed it.
        """
        with self.lock:
            self._holders.pop(id(holder), None)

    def give_back_half(self) -> bool:
        """
        Give half of the files back, as no descriptor is left; return whether there was one.
        """
        with self.lock:
            before = len(self._holders)
            self._shrink(before // 2)
            return before > 0

    def find(self, open_by_path: Callable[[], T]) -> T:
        """
        The result of *open_by_path*, which is tried again if a directory was being renamed. The
        caller does not hold ``lock``, for which the renaming thread may wait.

        Raises:
            FileNotFoundError: there is no file by either name.
        """
        try:
            return open_by_path()
        except FileNotFoundError:
            with self.renaming:
                pass
            return open_by_path()

    def _shrink(self, size: int) -> None:
        holders = self._holders
        while len(holders) > size:
            key, holder = holders.popitem(last=False)
            if holder.was_used:
                holder.was_used = False
                holders[key] = holder
            else:
                holder.give_back()


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
