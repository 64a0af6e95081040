"""
File systems for tests: in memory, and misbehaving as real ones may.

* ``MemoryFiles`` does what it should.
* ``RecordingFiles`` tells what was done, in order.
* ``FailingFiles`` fails at a chosen operation, as a full or broken disk does.
* ``CrashableFiles`` stops at a chosen operation, and keeps any part of what was not synced.
"""

from __future__ import annotations

import errno as errors
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from barnabas.storage.errors import KafkaStorageError
from barnabas.storage.files import Buffer, Files, WouldBlock

READING: Final = frozenset({"open", "map", "read", "look", "list"})
"""Actions that change nothing. Making a file, when opening does so, is an action of its own."""


@dataclass(slots=True)
class Write:
    """
    Bytes that were written and not synced.
    """

    position: int
    data: bytes


@dataclass(slots=True)
class Cut:
    """
    A change of a file's length that was not synced.
    """

    size: int


@dataclass(slots=True, eq=False)
class Node:
    """
    A file whatever its name: what it holds, and what it would hold after a crash.
    """

    data: bytearray = field(default_factory=bytearray)
    modified_ms: int = 0
    durable: bytearray = field(default_factory=bytearray)
    pending: list[Write | Cut] = field(default_factory=list)

    def write(self, position: int, data: bytes) -> None:
        _overwrite(self.data, position, data)
        self.pending.append(Write(position, data))

    def cut(self, size: int) -> None:
        # Another bytearray: somebody may have the old one mapped.
        self.data = _resized(self.data, size)
        self.pending.append(Cut(size))

    def sync(self) -> None:
        self.settle(lambda most: most)

    def settle(self, choose: Callable[[int], int]) -> None:
        """
        Let some of what is pending reach the disk, and the rest be lost.
        """
        for change in self.pending:
            if isinstance(change, Cut):
                if choose(1):
                    self.durable = _resized(self.durable, change.size)
            elif kept := choose(len(change.data)):
                _overwrite(self.durable, change.position, change.data[:kept])
        self.pending.clear()


def _overwrite(content: bytearray, position: int, data: bytes) -> None:
    if position > len(content):
        content.extend(bytes(position - len(content)))
    content[position : position + len(data)] = data


def _resized(content: bytearray, size: int) -> bytearray:
    result = bytearray(size)
    kept = min(size, len(content))
    result[:kept] = content[:kept]
    return result


class MemoryFile:
    """
    A file that is open.
    """

    def __init__(self, files: MemoryFiles, path: Path, node: Node, read_only: bool) -> None:
        self.path = path
        self._files = files
        self._node = node
        self._read_only = read_only
        self._closed = False

    def append(self, data: Buffer) -> None:
        self.write_at(len(self._node.data), data)

    def write_at(self, position: int, data: Buffer) -> None:
        self._check_writable()
        content = bytes(data)
        self._files.step("write", self.path, position, content)
        self._node.write(position, content)
        self._touch()

    def read(self, position: int, size: int, *, nowait: bool = False) -> bytes:
        self._check_open()
        self._files.step("read", self.path)
        if nowait and self._files.is_cold:
            raise WouldBlock
        return bytes(self._node.data[position : position + size])

    def truncate(self, size: int) -> None:
        self._check_writable()
        self._files.step("truncate", self.path, size)
        self._node.cut(size)
        self._touch()

    def size(self) -> int:
        self._check_open()
        return len(self._node.data)

    def sync(self) -> None:
        self._check_open()
        self._files.step("sync", self.path)
        self._node.sync()

    def close(self) -> None:
        self._closed = True

    def _touch(self) -> None:
        self._node.modified_ms = self._files.now_ms()

    def _check_open(self) -> None:
        if self._closed:
            raise _storage_error("use", self.path, errors.EBADF)

    def _check_writable(self) -> None:
        self._check_open()
        if self._read_only:
            raise _storage_error("write", self.path, errors.EBADF)


class MemoryMap:
    """
    A file that is mapped.
    """

    def __init__(self, files: MemoryFiles, path: Path, node: Node, created: bool) -> None:
        self.path = path
        self.created = created
        self.view = memoryview(node.data).toreadonly()
        self._files = files
        self._node = node

    def put(self, position: int, data: bytes) -> None:
        self._files.step("write", self.path, position, data)
        if position + len(data) > len(self._node.data):
            raise AssertionError(f"{self.path} is mapped, it does not grow by writing")
        self._node.write(position, data)
        self._node.modified_ms = self._files.now_ms()

    def resize(self, size: int) -> None:
        self._files.step("truncate", self.path, size)
        self._node.cut(size)
        self.view = memoryview(self._node.data).toreadonly()

    def flush(self) -> None:
        self._files.step("sync", self.path)
        self._node.sync()

    def close(self) -> None:
        self.view = memoryview(b"")


class MemoryLock:
    """
    A lock that is held.
    """

    def __init__(self, files: MemoryFiles, path: Path) -> None:
        self._files = files
        self._path = path
        self._held = True

    def release(self) -> None:
        if self._held:
            self._held = False
            self._files.locked.discard(self._path)
            self._files.remove(self._path)


class MemoryFiles(Files):
    """
    A file system in memory. It has the directory ``/`` and those that are made.
    """

    def __init__(self, now_ms: Callable[[], int] = lambda: 0) -> None:
        self.now_ms = now_ms
        self.is_cold = False
        """Whether the page cache has nothing, so that every read with ``nowait`` would block."""
        self.locked: set[Path] = set()
        self.directories: set[Path] = {Path("/")}
        self.nodes: dict[Path, Node] = {}

    def step(self, action: str, path: Path, position: int = 0, data: bytes = b"") -> None:
        """
        Called before everything that is done. Subclasses do not always come back.
        """

    def open(self, path: Path, *, create: bool = True, read_only: bool = False) -> MemoryFile:
        self.step("open", path)
        node = self.nodes.get(path)
        if node is None:
            if not create or read_only:
                raise FileNotFoundError(errors.ENOENT, os.strerror(errors.ENOENT), str(path))
            node = self._create(path)
        return MemoryFile(self, path, node, read_only)

    def map(self, path: Path, size: int | None, *, read_only: bool = False) -> MemoryMap:
        self.step("map", path)
        node = self.nodes.get(path)
        if node is not None:
            return MemoryMap(self, path, node, created=False)
        if size is None:
            raise FileNotFoundError(errors.ENOENT, os.strerror(errors.ENOENT), str(path))
        node = self._create(path)
        node.cut(size)
        return MemoryMap(self, path, node, created=True)

    def _create(self, path: Path) -> Node:
        if path.parent not in self.directories:
            raise _storage_error("open", path, errors.ENOENT)
        self.step("create", path)
        node = Node(modified_ms=self.now_ms())
        self.link(path, node)
        return node

    # The three changes of names, for a subclass to remember.

    def link(self, path: Path, node: Node) -> None:
        self.nodes[path] = node

    def unlink(self, path: Path) -> None:
        del self.nodes[path]

    def move(self, source: Path, target: Path) -> None:
        self.nodes[target] = self.nodes.pop(source)

    def exists(self, path: Path) -> bool:
        self.step("look", path)
        return path in self.nodes or path in self.directories

    def is_directory(self, path: Path) -> bool:
        self.step("look", path)
        return path in self.directories

    def names(self, directory: Path) -> list[str]:
        self.step("list", directory)
        if directory not in self.directories:
            raise FileNotFoundError(errors.ENOENT, os.strerror(errors.ENOENT), str(directory))
        here = [*self.nodes, *self.directories]
        return sorted(path.name for path in here if path.parent == directory and path.name)

    def make_directory(self, path: Path) -> None:
        self.step("make directory", path)
        self.directories.update((path, *path.parents))

    def rename(self, source: Path, target: Path) -> None:
        self.step("rename", source)
        if source in self.directories:
            self._rename_directory(source, target)
        elif source not in self.nodes or target.parent not in self.directories:
            raise _storage_error(f"rename to {target.name}", source, errors.ENOENT)
        else:
            self.move(source, target)

    def _rename_directory(self, source: Path, target: Path) -> None:
        for path in [path for path in self.nodes if source in path.parents]:
            self.move(path, target / path.relative_to(source))
        moved = {path for path in self.directories if path == source or source in path.parents}
        self.directories -= moved
        self.directories |= {target / path.relative_to(source) for path in moved}

    def remove(self, path: Path) -> bool:
        self.step("remove", path)
        if path not in self.nodes:
            return False
        self.unlink(path)
        return True

    def remove_tree(self, path: Path) -> None:
        self.step("remove", path)
        for file in [file for file in self.nodes if path in file.parents]:
            self.unlink(file)
        self.directories = {
            other for other in self.directories if other != path and path not in other.parents
        }

    def sync_directory(self, path: Path) -> None:
        self.step("sync directory", path)
        if path not in self.directories:
            raise _storage_error("sync directory", path, errors.ENOENT)

    def read_bytes(self, path: Path) -> bytes:
        self.step("read", path)
        return bytes(self._node(path).data)

    def size(self, path: Path) -> int:
        return len(self._node(path).data)

    def modified_ms(self, path: Path) -> int:
        return self._node(path).modified_ms

    def set_modified_ms(self, path: Path, ms: int) -> None:
        self._node(path).modified_ms = ms

    def _node(self, path: Path) -> Node:
        node = self.nodes.get(path)
        if node is None:
            raise FileNotFoundError(errors.ENOENT, os.strerror(errors.ENOENT), str(path))
        return node

    def lock(self, path: Path) -> MemoryLock | None:
        if path in self.locked:
            return None
        self.open(path).close()
        self.locked.add(path)
        return MemoryLock(self, path)

    def usable_bytes(self, path: Path) -> int:
        return 1 << 40

    def total_bytes(self, path: Path) -> int:
        return 1 << 41


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
        raise _storage_error(action, path, self._errno)


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


def _storage_error(action: str, path: Path, number: int) -> KafkaStorageError:
    cause = OSError(number, os.strerror(number), str(path))
    error = KafkaStorageError(f"Cannot {action} {path}: {cause.strerror}")
    error.__cause__ = cause
    return error
