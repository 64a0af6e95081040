"""
A file system in memory, that knows what of it would survive a crash.
"""

from __future__ import annotations

import errno as errors
import os
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Final
from weakref import WeakSet

from barnabas.protocol.codec.primitives import Buffer
from barnabas.storage.errors import KafkaError
from barnabas.storage.fs import disk
from barnabas.storage.fs.interface import File, Files, WouldBlock

SHARED_SURVIVORS: Final = 4


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
    durable: bytes = b""
    pending: list[Write | Cut] | None = field(default_factory=list)
    """None if nobody asks for survivors: a second copy of all bytes."""
    is_synced: bool = False
    survivors: deque[bytes] = field(default_factory=lambda: deque(maxlen=SHARED_SURVIVORS))
    """The latest ones, which equal ones share: many images of a disk have the same files."""

    @property
    def may_survive(self) -> bool:
        """
        Whether its name may survive a crash without the changes before that.
        """
        return self.is_synced

    def copied(self) -> Node:
        pending = None if self.pending is None else list(self.pending)
        return Node(bytearray(self.data), self.modified_ms, self.durable, pending, self.is_synced)

    def write(self, position: int, data: bytes) -> None:
        _overwrite(self.data, position, data)
        if self.pending is not None:
            self.pending.append(Write(position, data))

    def cut(self, size: int) -> None:
        # Another bytearray: somebody may have the old one mapped.
        self.data = _resized(self.data, size)
        if self.pending is not None:
            self.pending.append(Cut(size))

    def sync(self) -> None:
        self.is_synced = True
        if self.pending:
            self.durable = bytes(self.data)
            self.pending.clear()

    def survivor(self, choose: Callable[[int], int]) -> bytes:
        """
        What is left after a crash, if of what is pending only some has reached the disk: of each
        write its beginning, and behind that nothing, or zeros where the file had grown already.
        """
        if not self.pending:
            return self.durable
        content = bytearray(self.durable)
        for change in self.pending:
            if isinstance(change, Cut):
                if choose(1):
                    content = _resized(content, change.size)
                continue
            size = len(change.data)
            if kept := choose(size):
                _overwrite(content, change.position, change.data[:kept])
            end = change.position + size
            if kept < size and len(content) < end and choose(1):
                content.extend(bytes(end - len(content)))
        for known in self.survivors:
            if known == content:
                return known
        survivor = bytes(content)
        self.survivors.append(survivor)
        return survivor


def _overwrite(content: bytearray, position: int, data: bytes) -> None:
    if position > len(content):
        content.extend(bytes(position - len(content)))
    content[position : position + len(data)] = data


def _resized(content: bytearray, size: int) -> bytearray:
    result = bytearray(size)
    kept = min(size, len(content))
    result[:kept] = content[:kept]
    return result


class MemoryFile(File):
    """
    A file that is open.
    """

    def __init__(self, files: MemoryFiles, path: Path, node: Node, read_only: bool) -> None:
        self.path = path
        self._files = files
        self._node = node
        self._read_only = read_only
        self._closed = False
        files.in_use.add(self)

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
        self._files.in_use.discard(self)

    def _touch(self) -> None:
        self._node.modified_ms = self._files.now_ms()

    def _check_open(self) -> None:
        if self._closed:
            raise storage_error("use", self.path, errors.EBADF)

    def _check_writable(self) -> None:
        self._check_open()
        if self._read_only:
            raise storage_error("write", self.path, errors.EBADF)


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
        self._is_writing = False
        self._is_dirty = created
        files.in_use.add(self)

    def open_for_writing(self) -> None:
        if not self._is_writing:
            self._files.step("open", self.path)
            self._is_writing = True

    def give_back(self) -> None:
        self._is_writing = False

    def put(self, position: int, data: bytes) -> None:
        self.open_for_writing()
        self._files.step("write", self.path, position, data)
        if position + len(data) > len(self._node.data):
            raise AssertionError(f"{self.path} is mapped, it does not grow by writing")
        self._node.write(position, data)
        self._is_dirty = True
        self._node.modified_ms = self._files.now_ms()

    def resize(self, size: int) -> None:
        self._files.step("open", self.path)
        self._is_writing = False
        self._files.step("truncate", self.path, size)
        self._node.cut(size)
        self._is_dirty = True
        self.view = memoryview(self._node.data).toreadonly()

    def flush(self) -> None:
        # As on a real disk, what was not changed through this map is not synced.
        if self._is_dirty:
            self._files.step("sync", self.path)
            self._node.sync()
            self._is_dirty = False

    def close(self) -> None:
        self._is_dirty = False
        self.view = memoryview(b"")
        self._files.in_use.discard(self)


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


class MemoryFiles(Files):
    """
    A file system in memory. It has the directory ``/`` and those that are made.
    """

    can_crash: ClassVar[bool] = False
    """Whether its files remember which bytes are not synced."""

    def __init__(self, now_ms: Callable[[], int] = lambda: 0) -> None:
        self.now_ms = now_ms
        self.is_cold = False
        """Whether the page cache has nothing, so that every read with ``nowait`` would block."""
        self.locked: set[Path] = set()
        self.in_use: WeakSet[MemoryFile | MemoryMap] = WeakSet()
        """What was opened and not closed, as long as somebody has it."""
        self.directories: set[Path] = {Path("/")}
        self.nodes: dict[Path, Node] = {}

    def kill(self) -> Callable[[], None]:
        """
        Remember all that is written, synced or not, as a process leaves it to the system when it is
        killed. The function that is returned puts it in place of what was done since.
        """
        put_back = self._remember({})

        def restore() -> None:
            self.locked.clear()
            put_back()

        return restore

    def _remember(self, copies: dict[object, Any]) -> Callable[[], None]:
        """
        Copy everything. The function that is returned puts the copies in place.

        Args:
            copies: those of files and directories that are copied already.
        """
        nodes = {
            path: copies.setdefault(node, node.copied()) for path, node in dict(self.nodes).items()
        }
        directories = set(self.directories)

        def put_back() -> None:
            self.nodes, self.directories = nodes, directories

        return put_back

    def _clear(self) -> None:
        self.nodes, self.directories = {}, {Path("/")}

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
            raise storage_error("open", path, errors.ENOENT)
        self.step("create", path)
        node = Node(modified_ms=self.now_ms(), pending=[] if self.can_crash else None)
        self.link(path, node)
        return node

    # The changes of names, for a subclass to remember.

    def link_directory(self, path: Path) -> None:
        self.directories.add(path)

    def unlink_directory(self, path: Path) -> None:
        self.directories.remove(path)

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
        for directory in (*reversed(path.parents), path):
            if directory not in self.directories:
                self.link_directory(directory)

    def rename(self, source: Path, target: Path) -> None:
        self.step("rename", source)
        if source in self.directories:
            self._rename_directory(source, target)
        elif source not in self.nodes or target.parent not in self.directories:
            raise storage_error(f"rename to {target.name}", source, errors.ENOENT)
        else:
            self.move(source, target)

    def _rename_directory(self, source: Path, target: Path) -> None:
        for path in [path for path in tuple(self.nodes) if source in path.parents]:
            self.nodes[target / path.relative_to(source)] = self.nodes.pop(path)
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
        inside = (other for other in self.directories if other == path or path in other.parents)
        for directory in sorted(inside, reverse=True):
            self.unlink_directory(directory)

    def sync_directory(self, path: Path) -> None:
        self.step("sync directory", path)
        if path not in self.directories:
            raise storage_error("sync directory", path, errors.ENOENT)

    def read_bytes(self, path: Path) -> bytes:
        self.step("open", path)
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

    def is_locked(self, path: Path) -> bool:
        return path in self.locked

    def usable_bytes(self, path: Path) -> int:
        return 1 << 40

    def total_bytes(self, path: Path) -> int:
        return 1 << 41


def storage_error(action: str, path: Path, number: int) -> KafkaError:
    """
    What a real disk raises, with the system's error as its cause.
    """
    cause = OSError(number, os.strerror(number), str(path))
    error = disk.storage_error(action, path, cause)
    error.__cause__ = cause
    return error
