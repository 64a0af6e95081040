"""
A disk in memory that fails at a chosen operation, as a full or broken disk does.
"""

from __future__ import annotations

import errno as errors
from collections.abc import Callable, Set
from pathlib import Path

from barnabas.testing.disks.memory import MemoryFiles, storage_error


class FailingFiles(MemoryFiles):
    """
    A file system that fails at one operation, or from one on.
    """

    def __init__(self, now_ms: Callable[[], int] = lambda: 0) -> None:
        super().__init__(now_ms)
        self._countdown: int | None = None
        self._only: frozenset[str] = frozenset()
        self._errno = 0
        self._forever = False
        self._written = 0
        self._under: Path | None = None

    def fail(
        self,
        at: int = 0,
        *,
        errno: int = errors.EIO,
        only: Set[str] = frozenset(),
        under: Path | None = None,
        forever: bool = False,
        written: int = 0,
    ) -> None:
        """
        Fail at the operation number *at* from now.

        Args:
            errno: the error, such as ``errno.ENOSPC``.
            only: the actions that count, such as ``{"write", "sync"}``; all if empty.
            under: the directory whose files count; all if there is none.
            forever: also at all later ones.
            written: so many bytes of a write that fails do get written.
        """
        self._countdown, self._errno, self._only = at, errno, frozenset(only)
        self._forever, self._written, self._under = forever, written, under

    def heal(self) -> None:
        """
        Fail no more.
        """
        self._countdown = None

    def step(self, action: str, path: Path, position: int = 0, data: bytes = b"") -> None:
        if self._countdown is None or (self._only and action not in self._only):
            return
        if self._under is not None and not path.is_relative_to(self._under):
            return
        if self._countdown > 0:
            self._countdown -= 1
            return
        if not self._forever:
            self._countdown = None
        if action == "write" and self._written and path in self.nodes:
            self.nodes[path].write(position, data[: self._written])
        raise storage_error(action, path, self._errno)
