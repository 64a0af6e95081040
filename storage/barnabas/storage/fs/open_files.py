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
from typing import Protocol, TypeVar

T = TypeVar("T")


class FileHolder(Protocol):
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
        self._holders: OrderedDict[int, FileHolder] = OrderedDict()

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

    def add(self, holder: FileHolder) -> None:
        """
        Note that *holder* has opened its file.
        """
        limit = self.limit
        if limit is None:
            return
        with self.lock:
            self._holders[id(holder)] = holder
            self._shrink(limit)

    def discard(self, holder: FileHolder) -> None:
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
