"""
The content of a file of ``OverlayFiles``: a first part on the disk, and a second one in memory.

::

    0                kept                          size
    | on the disk    | in memory                   |

A file that is only read, or cut, has no second part. Appends make it longer. A write further to the
front moves the border there: of a large segment nothing is copied, of an index a part.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

import mmap
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Final, Generic, TypeAlias, TypeVar

from barnabas.protocol.codec.primitives import Buffer
from barnabas.storage.fs.disk import SMALL_FILE, storage_error
from barnabas.storage.fs.interface import File, MappedFile

Memory: TypeAlias = "bytearray | mmap.mmap"

SPARSE_FROM: Final = 1 << 16
"""
Bytes from which on zeros are an anonymous map, of which only pages that are written take memory:
the index of an active segment is ten MiB of them.
"""

F = TypeVar("F", bound=File | MappedFile)


class Sources(Generic[F]):
    """
    The files on the disk that were read last, kept open. A log may have thousands of files.

    Safe from any thread. A file that is given up here is not closed: another thread may read it.
    """

    def __init__(
        self, open_file: Callable[[Path], F], most_open: int, give_up: Callable[[F], None]
    ) -> None:
        self._open_file = open_file
        self._most_open = most_open
        self._give_up = give_up
        self._open: dict[str, F] = {}
        """By path, as a text, which has its hash at hand."""
        self._guard = threading.Lock()

    def get(self, path: Path) -> F:
        """
        Raises:
            KafkaStorageError: the file was removed, or cannot be read.
        """
        key = os.fspath(path)
        with self._guard:
            file = self._open.pop(key, None)
            if file is None:
                try:
                    file = self._open_file(path)
                except FileNotFoundError as error:
                    raise storage_error("open", path, error) from error
            self._open[key] = file
            if len(self._open) > self._most_open:
                self._give_up(self._open.pop(next(iter(self._open))))
        return file


class Content:
    """
    The bytes of one file.

    One thread at a time changes them; reading is safe from any thread meanwhile.
    """

    __slots__ = ("_parts", "_sources", "modified_ms", "path")

    def __init__(self, sources: Sources[File], path: Path | None, size: int) -> None:
        self._sources = sources
        self._parts: tuple[int, Memory] = (size, bytearray())
        """``kept`` and the memory, replaced together."""
        self.path = path
        """The path of the file on the disk, which may have another name here."""
        self.modified_ms: int | None = None
        """None until somebody asks: it is another look at the disk."""

    @property
    def size(self) -> int:
        kept, memory = self._parts
        return kept + len(memory)

    @property
    def is_unchanged(self) -> bool:
        """
        Whether all bytes are on the disk, where the file may be longer.
        """
        return self.path is not None and not len(self._parts[1])

    def _source(self) -> File:
        assert self.path is not None, "bytes that are not in memory are in a file"
        return self._sources.get(self.path)

    def read(self, position: int, size: int, *, nowait: bool = False) -> bytes | bytearray:
        kept, memory = self._parts
        end = min(position + size, kept + len(memory))
        if position >= end:
            return b""
        if end <= kept:
            return self._source().read(position, end - position, nowait=nowait)
        behind = memory[max(0, position - kept) : end - kept]
        if position >= kept:
            return behind
        first = self._source().read(position, kept - position, nowait=nowait)
        return bytes(first) + behind

    def read_into(self, position: int, room: memoryview, *, nowait: bool = False) -> int:
        kept, _ = self._parts
        if position + len(room) <= kept:
            return self._source().read_into(position, room, nowait=nowait)
        data = self.read(position, len(room), nowait=nowait)
        room[: len(data)] = data
        return len(data)

    def splice_into(self, pipe: int, position: int, size: int) -> int:
        kept, _ = self._parts
        return self._source().splice_into(pipe, position, size) if position + size <= kept else 0

    @property
    def memory(self) -> Memory:
        """
        All bytes, in memory from now on.
        """
        return self._loaded_from(0)

    def _loaded_from(self, position: int) -> Memory:
        """
        The bytes from *position* on, which is on the disk, in memory from now on.
        """
        kept, memory = self._parts
        if position < kept:
            memory = bytearray(self._source().read(position, kept - position)) + memory[:]
            self._parts = (position, memory)
        return memory

    def write(self, position: int, data: Buffer) -> None:
        kept, memory = self._parts
        if position < kept:
            memory = self._loaded_from(position)
            kept = position
        end = position - kept + len(data)
        if end > len(memory):
            if position - kept > len(memory) or isinstance(memory, mmap.mmap):
                self.cut(kept + end)
                _, memory = self._parts
            else:
                self._append(position - kept, data)
                return
        memory[position - kept : end] = data

    def _append(self, position: int, data: Buffer) -> None:
        kept, memory = self._parts
        assert isinstance(memory, bytearray)
        try:
            memory[position:] = data
        except BufferError:  # somebody looks at the old bytes
            self._parts = (kept, memory[:position] + bytes(data))

    def cut(self, size: int) -> None:
        """
        Cut the file, or lengthen it with zeros.
        """
        kept, memory = self._parts
        if size <= kept:
            self._parts = (size, bytearray())
            return
        # Another object: the old one may have views.
        longer: Memory = (
            bytearray(size - kept)
            if size - kept < SPARSE_FROM
            else mmap.mmap(-1, size - kept, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        )
        both = min(len(memory), len(longer))
        longer[:both] = memory[:both]
        self._parts = (kept, longer)


class OverlayFile(File):
    """
    A file that is open.
    """

    def __init__(self, path: Path, content: Content) -> None:
        self.path = path
        self._content = content

    def append(self, data: Buffer) -> None:
        self._content.write(self._content.size, data)

    def write_at(self, position: int, data: Buffer) -> None:
        self._content.write(position, data)

    def read(self, position: int, size: int, *, nowait: bool = False) -> bytes | bytearray:
        return self._content.read(position, size, nowait=nowait)

    def read_into(self, position: int, room: memoryview, *, nowait: bool = False) -> int:
        return self._content.read_into(position, room, nowait=nowait)

    def splice_into(self, pipe: int, position: int, size: int) -> int:
        return self._content.splice_into(pipe, position, size)

    def truncate(self, size: int) -> None:
        self._content.cut(size)

    def size(self) -> int:
        return self._content.size

    def sync(self) -> None: ...

    def close(self) -> None: ...


class OverlayMap:
    """
    A file as memory: mapped until its first change, then a copy. A small one is read, which takes
    half the time of a map.
    """

    def __init__(
        self,
        path: Path,
        content: Content,
        maps: Sources[MappedFile],
        read_small: Callable[[Path], bytes],
        *,
        created: bool,
    ) -> None:
        self.path = path
        self.created = created
        self._content = content
        self._maps = maps
        self._read_small = read_small
        self._small: memoryview | None = None
        self._is_closed = False

    @property
    def view(self) -> memoryview:
        content = self._content
        if self._is_closed:
            return memoryview(b"")
        if content.is_unchanged and content.path is not None:
            if content.size > SMALL_FILE:
                return self._maps.get(content.path).view[: content.size]
            if self._small is None:
                self._small = self._read(content.path)
            return self._small[: content.size]
        return memoryview(content.memory).toreadonly()

    def _read(self, path: Path) -> memoryview:
        try:
            return memoryview(self._read_small(path))
        except FileNotFoundError as error:
            raise storage_error("open", path, error) from error

    def open_for_writing(self) -> None: ...

    def give_back(self) -> None: ...

    def put(self, position: int, data: bytes) -> None:
        self._content.write(position, data)

    def resize(self, size: int) -> None:
        self._content.cut(size)

    def flush(self) -> None: ...

    def close(self) -> None:
        self._is_closed = True
