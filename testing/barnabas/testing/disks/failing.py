"""
A disk in memory that fails at a chosen operation, as a full or broken disk does, that is slow, or
that forgets.
"""

from __future__ import annotations

import errno as errors
from collections.abc import Callable, Set
from pathlib import Path
from random import Random
from typing import NamedTuple

from barnabas.storage.clock import sleep
from barnabas.testing.disks.memory import MemoryFiles, storage_error


class Rot(NamedTuple):
    """
    A bit that a disk has turned over.
    """

    path: Path
    position: int
    bit: int


class FailingFiles(MemoryFiles):
    """
    A file system that fails at one operation, or from one on; that takes its time; or that rots.
    """

    def __init__(self, now_ms: Callable[[], int] = lambda: 0) -> None:
        super().__init__(now_ms)
        self._countdown: int | None = None
        self._only: frozenset[str] = frozenset()
        self._errno = 0
        self._forever = False
        self._written = 0
        self._under: Path | None = None
        self._delay_s = 0.0
        self._delayed: frozenset[str] = frozenset()

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

    def delay(self, seconds: float, *, only: Set[str] = frozenset({"sync"})) -> None:
        """
        Take so many seconds of real time for some actions, from now on.

        Args:
            only: the actions, such as ``{"write", "sync"}``; all if empty.
        """
        self._delay_s, self._delayed = seconds, frozenset(only)

    def rot(self, pattern: str = "*.log", *, seed: int = 0) -> Rot:
        """
        Turn over one bit of one file, which chance chooses.

        Args:
            pattern: of the names of files: ``"*.log"`` for records, ``"orders-0/*.index"``.

        Raises:
            FileNotFoundError: no file that matches has any bytes.
        """
        found = [path for path, node in self.nodes.items() if node.data and path.match(pattern)]
        if not found:
            raise FileNotFoundError(errors.ENOENT, "no file has bytes to rot", pattern)
        random = Random(seed)
        path = random.choice(sorted(found))
        node = self.nodes[path]
        rot = Rot(path, random.randrange(len(node.data)), random.randrange(8))
        node.data[rot.position] ^= 1 << rot.bit
        return rot

    def heal(self) -> None:
        """
        Fail no more, and be quick. What has rotted stays.
        """
        self._countdown = None
        self._delay_s = 0.0

    def step(self, action: str, path: Path, position: int = 0, data: bytes = b"") -> None:
        super().step(action, path, position, data)
        if self._delay_s and (not self._delayed or action in self._delayed):
            sleep(self._delay_s)
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
