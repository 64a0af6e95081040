"""
A file system whose changes stay in memory.

A tool that does not own a log directory opens logs with the code of the broker, so that it gets the
same log. Opening a log writes: it removes left-overs, lengthens indexes and takes snapshots. None
of these changes reaches the disk.

A broker may run on the directory. Each file has the size of its first use, and appends after that
are not seen. The index of an active segment has its full length with a hole behind its entries, as
only its owner knows their number; the hole is left out.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final, Generic, TypeVar

from barnabas.storage.fs.disk import SMALL_FILE, storage_error
from barnabas.storage.fs.interface import Buffer, File, Files, MappedFile
from barnabas.storage.index.offset_index import OffsetIndex
from barnabas.storage.index.time_index import TimeIndex
from barnabas.storage.state_files.file_names import INDEX_SUFFIX, LOG_SUFFIX, TIME_INDEX_SUFFIX

_ENTRY_SIZES: Final = {
    INDEX_SUFFIX: OffsetIndex.entry_size,
    TIME_INDEX_SUFFIX: TimeIndex.entry_size,
}

_MOST_OPEN: Final = 16

F = TypeVar("F", bound=File | MappedFile)


class _Sources(Generic[F]):
    """
    The files on the disk that were read last, kept open. A log may have thousands of files.
    """

    def __init__(self, open_file: Callable[[Path], F]) -> None:
        self._open_file = open_file
        self._open: dict[Path, F] = {}

    def get(self, path: Path) -> F:
        """
        Raises:
            KafkaStorageError: the file was removed, or cannot be read.
        """
        file = self._open.pop(path, None)
        if file is None:
            try:
                file = self._open_file(path)
            except FileNotFoundError as error:
                raise storage_error("open", path, error) from error
        self._open[path] = file
        if len(self._open) > _MOST_OPEN:
            self._open.pop(next(iter(self._open))).close()
        return file


class _Content:
    """
    The bytes of a file: the first part of one on the disk, until they are changed.
    """

    __slots__ = ("_below", "_memory", "_sources", "modified_ms", "path", "size")

    def __init__(self, below: Files, sources: _Sources[File], path: Path | None, size: int) -> None:
        self._below = below
        self._sources = sources
        self._memory: bytearray | None = bytearray() if path is None else None
        self.path = path
        """The path of the file on the disk, which may have another name here."""
        self.size = size
        self.modified_ms: int | None = None
        """None until somebody asks: it is another look at the disk."""

    @property
    def is_unchanged(self) -> bool:
        return self._memory is None

    def read(self, position: int, size: int) -> bytes | bytearray:
        size = max(0, min(size, self.size - position))
        if self._memory is not None:
            return self._memory[position : position + size]
        assert self.path is not None, "bytes that are not in memory are in a file"
        return self._sources.get(self.path).read(position, size)

    def read_small(self) -> bytes:
        """
        All bytes of a file of at most ``SMALL_FILE``, in half the time that a map takes.
        """
        assert self.path is not None, "bytes that are not in memory are in a file"
        try:
            return self._below.read_bytes(self.path)
        except FileNotFoundError as error:
            raise storage_error("open", self.path, error) from error

    @property
    def memory(self) -> bytearray:
        """
        All bytes, for changes.
        """
        if self._memory is None:
            self._memory = bytearray(self.read(0, self.size))
        return self._memory

    def write(self, position: int, data: Buffer) -> None:
        memory = self.memory
        if position > len(memory):
            memory.extend(bytes(position - len(memory)))
        memory[position : position + len(data)] = data
        self.size = len(memory)

    def cut(self, size: int) -> None:
        if self._memory is not None or size > self.size:
            # Another bytearray: the old one may have views.
            kept = self.memory[: min(size, self.size)]
            self._memory = bytearray(size)
            self._memory[: len(kept)] = kept
        self.size = size


class _OverlayFile(File):
    def __init__(self, path: Path, content: _Content) -> None:
        self.path = path
        self._content = content

    def append(self, data: Buffer) -> None:
        self._content.write(self._content.size, data)

    def write_at(self, position: int, data: Buffer) -> None:
        self._content.write(position, data)

    def read(self, position: int, size: int, *, nowait: bool = False) -> bytes | bytearray:
        return self._content.read(position, size)

    def truncate(self, size: int) -> None:
        self._content.cut(size)

    def size(self) -> int:
        return self._content.size

    def sync(self) -> None: ...

    def close(self) -> None: ...


class _OverlayMap:
    """
    A file as memory: mapped until its first change, then a copy.
    """

    def __init__(
        self, path: Path, content: _Content, maps: _Sources[MappedFile], *, created: bool
    ) -> None:
        self.path = path
        self.created = created
        self._content = content
        self._maps = maps
        self._read: memoryview | None = None
        self._is_closed = False

    @property
    def view(self) -> memoryview:
        content = self._content
        if self._is_closed:
            return memoryview(b"")
        if content.is_unchanged and content.path is not None:
            if content.size > SMALL_FILE:
                return self._maps.get(content.path).view[: content.size]
            if self._read is None:
                self._read = memoryview(content.read_small())
            return self._read[: content.size]
        return memoryview(content.memory).toreadonly()

    def open_for_writing(self) -> None: ...

    def give_back(self) -> None: ...

    def put(self, position: int, data: bytes) -> None:
        self._content.write(position, data)

    def resize(self, size: int) -> None:
        self._content.cut(size)

    def flush(self) -> None: ...

    def close(self) -> None:
        self._is_closed = True


class OverlayFiles(Files):
    """
    The files of another file system, with changes of its own.

    Invariants:

    1. Nothing is ever written to the file system below.
    2. A file that was used keeps its bytes, unless it is changed here.
    """

    def __init__(self, below: Files) -> None:
        self._below = below
        self._sources: _Sources[File] = _Sources(partial(below.open, create=False, read_only=True))
        self._maps: _Sources[MappedFile] = _Sources(partial(below.map, size=None, read_only=True))
        self._contents: dict[Path, _Content | None] = {}
        """None for a file that was removed or does not exist."""
        self._directories: set[Path] = set()
        self._listed: dict[Path, set[str]] = {}
        """The names that were seen in directories."""

    def _find(self, path: Path) -> _Content | None:
        if path not in self._contents:
            try:
                size = self._below.size(path)
            except FileNotFoundError:
                return None
            self._contents[path] = _Content(self._below, self._sources, path, size)
        return self._contents[path]

    def _get(self, path: Path) -> _Content:
        content = self._find(path)
        if content is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
        return content

    def _make(self, path: Path) -> _Content:
        if path.name in self._listed.get(path.parent, ()) and path not in self._contents:
            # A broker has removed the file a moment ago: it must not become a new, empty one.
            error = FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
            raise storage_error("open", path, error) from error
        content = self._contents[path] = _Content(self._below, self._sources, None, 0)
        return content

    def open(self, path: Path, *, create: bool = True, read_only: bool = False) -> File:
        content = self._find(path) if create and not read_only else self._get(path)
        return _OverlayFile(path, content or self._make(path))

    def map(self, path: Path, size: int | None, *, read_only: bool = False) -> _OverlayMap:
        content = self._get(path) if size is None else self._find(path)
        if content is None:
            content = self._make(path)
            content.cut(size or 0)
            return _OverlayMap(path, content, self._maps, created=True)
        mapped = _OverlayMap(path, content, self._maps, created=False)
        content.cut(self._length_of_entries(path, content, mapped))
        return mapped

    def _length_of_entries(self, path: Path, content: _Content, mapped: _OverlayMap) -> int:
        """
        The size of a mapped file without the hole at its end, and without entries for batches
        behind the size of the log.
        """
        size = content.size
        width = _ENTRY_SIZES.get(path.suffix)
        # A single entry of zeros may be real: a first record of timestamp 0.
        if width is None or size % width or size <= width:
            return size
        # It is mapped in any case: to read it would open it once more.
        if not any(mapped.view[size - width : size]):
            entries = content.memory.rstrip(b"\0")
            size = -(-len(entries) // width) * width
        log = self._find(path.with_suffix(LOG_SUFFIX)) if path.suffix == INDEX_SUFFIX else None
        if log is not None:
            view = mapped.view
            while size and int.from_bytes(view[size - 4 : size], "big") >= log.size:
                size -= width
        return size

    def exists(self, path: Path) -> bool:
        if path in self._contents:
            return self._contents[path] is not None
        return path in self._directories or self._below.exists(path)

    def is_directory(self, path: Path) -> bool:
        return path in self._directories or self._below.is_directory(path)

    def names(self, directory: Path) -> list[str]:
        try:
            found = set(self._below.names(directory))
            self._listed.setdefault(directory, set()).update(found)
        except FileNotFoundError:
            if directory not in self._directories:
                raise
            found = set()
        for path, content in self._contents.items():
            if path.parent == directory:
                (found.discard if content is None else found.add)(path.name)
        return sorted(found)

    def make_directory(self, path: Path) -> None:
        self._directories.add(path)

    def rename(self, source: Path, target: Path) -> None:
        content = self._find(source)
        if content is None:
            error = FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
            raise storage_error(f"rename to {target.name}", source, error) from error
        self._contents[target], self._contents[source] = content, None

    def remove(self, path: Path) -> bool:
        was_there = self._find(path) is not None
        self._contents[path] = None
        return was_there

    def remove_tree(self, path: Path) -> None:
        raise AssertionError(f"{path} is only read")

    def sync_directory(self, path: Path) -> None: ...

    def read_bytes(self, path: Path) -> bytes:
        content = self._get(path)
        return bytes(content.read(0, content.size))

    def size(self, path: Path) -> int:
        return self._get(path).size

    def modified_ms(self, path: Path) -> int:
        content = self._get(path)
        if content.modified_ms is None:
            content.modified_ms = (
                0 if content.path is None else self._below.modified_ms(content.path)
            )
        return content.modified_ms

    def set_modified_ms(self, path: Path, ms: int) -> None:
        self._get(path).modified_ms = ms

    def lock(self, path: Path) -> None:
        return None

    def is_locked(self, path: Path) -> bool:
        return self._below.is_locked(path)

    def usable_bytes(self, path: Path) -> int:
        return self._below.usable_bytes(path)

    def total_bytes(self, path: Path) -> int:
        return self._below.total_bytes(path)
