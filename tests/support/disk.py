"""
File systems for tests: in memory, and misbehaving as real ones may.

* ``MemoryFiles`` does what it should.
* ``RecordingFiles`` tells what was done, in order.
* ``FailingFiles`` fails at a chosen operation, as a full or broken disk does.
* ``CrashableFiles`` stops at a chosen operation, and keeps any part of what was not synced.
"""

from __future__ import annotations

import errno as errors
from collections.abc import Callable
from pathlib import Path
from typing import Final

from tests.support.memory_disk import MemoryFiles, Node, storage_error

__all__ = ["CrashableFiles", "Crashed", "FailingFiles", "MemoryFiles", "RecordingFiles"]

READING: Final = frozenset({"open", "map", "read", "look", "list"})
"""Actions that change nothing. Making a file, when opening does so, is an action of its own."""


class RecordingFiles(MemoryFiles):
    """
    A file system that remembers what changed it: ``write 0.log @150 +75``, ``sync 0.log``.
    """

    def __init__(self, now_ms: Callable[[], int] = lambda: 0) -> None:
        super().__init__(now_ms)
        self.operations: list[str] = []

    def step(self, action: str, path: Path, position: int = 0, data: bytes = b"") -> None:
        if action in READING:
            return
        detail = f" @{position} +{len(data)}" if action == "write" else ""
        self.operations.append(f"{action} {path.name}{detail}")


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

    def fail(
        self,
        at: int = 0,
        *,
        errno: int = errors.EIO,
        only: frozenset[str] = frozenset(),
        forever: bool = False,
        written: int = 0,
    ) -> None:
        """
        Fail at the operation number *at* from now.

        Args:
            only: the actions that count; all if empty.
            forever: also at all later ones.
            written: so many bytes of a write that fails do get written.
        """
        self._countdown, self._errno, self._only = at, errno, only
        self._forever, self._written = forever, written

    def step(self, action: str, path: Path, position: int = 0, data: bytes = b"") -> None:
        if self._countdown is None or (self._only and action not in self._only):
            return
        if self._countdown > 0:
            self._countdown -= 1
            return
        if not self._forever:
            self._countdown = None
        if action == "write" and self._written and path in self.nodes:
            self.nodes[path].write(position, data[: self._written])
        raise storage_error(action, path, self._errno)


class Crashed(BaseException):
    """
    The machine has stopped. Nothing that runs may notice, so it is no ``Exception``.
    """


class CrashableFiles(MemoryFiles):
    """
    A file system on a machine that can crash.

    What was written to a file survives once the file is synced; that it was made, renamed or
    removed survives once its directory is. Of the rest, any part may: of each write as much as it
    likes, of the changes in a directory the first so many, as file systems keep them in order.
    Directories themselves survive.
    """

    def __init__(self, now_ms: Callable[[], int] = lambda: 0) -> None:
        super().__init__(now_ms)
        self._durable_names: dict[Path, Node] = {}
        self._pending_names: list[tuple[Path, Callable[[dict[Path, Node]], None]]] = []
        self._steps_left: int | None = None
        self.steps = 0
        """How many changes there were."""

    def crash_before(self, step: int) -> None:
        """
        Stop before the change number *step* from now, and refuse everything until ``crash``.
        """
        self._steps_left = step

    def step(self, action: str, path: Path, position: int = 0, data: bytes = b"") -> None:
        if action in READING and self._steps_left != 0:
            return
        self.steps += 1
        if self._steps_left is None:
            return
        if self._steps_left == 0:
            raise Crashed
        self._steps_left -= 1

    def crash(self, choose: Callable[[int], int] = lambda most: 0) -> None:
        """
        Be as after a restart of the machine.

        Args:
            choose: how many of so many survive, each time it matters. Nothing, unless given.
        """
        self._steps_left = None
        kept: dict[Path, int] = {}
        for directory, change in self._pending_names:
            if directory not in kept:
                kept[directory] = choose(
                    sum(other == directory for other, _ in self._pending_names)
                )
            if kept[directory]:
                kept[directory] -= 1
                change(self._durable_names)
        self._pending_names.clear()
        self.locked.clear()
        self.nodes = {}
        for path, node in self._durable_names.items():
            node.settle(choose)
            self.nodes[path] = Node(bytearray(node.durable), node.modified_ms, node.durable)
            self.directories.update(path.parents)
        self._durable_names = dict(self.nodes)

    def sync_directory(self, path: Path) -> None:
        super().sync_directory(path)
        self._settle_names(path)

    def _settle_names(self, directory: Path) -> None:
        pending, self._pending_names = self._pending_names, []
        for other, change in pending:
            if other == directory:
                change(self._durable_names)
            else:
                self._pending_names.append((other, change))

    def link(self, path: Path, node: Node) -> None:
        super().link(path, node)
        self._remember(path, lambda names: names.__setitem__(path, node))

    def unlink(self, path: Path) -> None:
        super().unlink(path)
        self._remember(path, lambda names: names.pop(path, None))

    def move(self, source: Path, target: Path) -> None:
        super().move(source, target)
        node = self.nodes[target]

        def change(names: dict[Path, Node]) -> None:
            names.pop(source, None)
            names[target] = node

        self._remember(target, change)

    def _rename_directory(self, source: Path, target: Path) -> None:
        self._settle_names(source)
        super()._rename_directory(source, target)
        self._settle_names(target)

    def _remember(self, path: Path, change: Callable[[dict[Path, Node]], object]) -> None:
        def apply(names: dict[Path, Node]) -> None:
            change(names)

        self._pending_names.append((path.parent, apply))
