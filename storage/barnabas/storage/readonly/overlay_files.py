"""
A file system whose changes stay in memory.

A tool that does not own a log directory opens logs with the code of the broker, so that it gets the
same log, and so does a broker that is only to show it. Opening a log writes: it removes left-overs,
lengthens indexes and takes snapshots. None of these changes reaches the disk.

A broker may run on the directory. Each file has the size of its first use, and appends after that
are not seen. The index of an active segment has its full length with a hole behind its entries, as
only its owner knows their number; the hole is left out.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Final

from barnabas.storage.fs.disk import storage_error
from barnabas.storage.fs.interface import File, Files, Lock, MappedFile
from barnabas.storage.index.offset_index import OffsetIndex
from barnabas.storage.index.time_index import TimeIndex
from barnabas.storage.readonly.overlay_content import Content, OverlayFile, OverlayMap, Sources
from barnabas.storage.state_files.file_names import INDEX_SUFFIX, LOG_SUFFIX, TIME_INDEX_SUFFIX

_ENTRY_SIZES: Final = {
    INDEX_SUFFIX: OffsetIndex.entry_size,
    TIME_INDEX_SUFFIX: TimeIndex.entry_size,
}

_MOST_OPEN: Final = 16


class _NoLock(Lock):
    """
    In the place of a lock: nobody else is kept from the files.
    """

    def __init__(self, release: Callable[[], None]) -> None:
        self._release = release

    def release(self) -> None:
        self._release()


class OverlayFiles(Files):
    """
    The files of another file system, with changes of its own.

    Invariants:

    1. Nothing is ever written to the file system below.
    2. A file that was used keeps its bytes, unless it is changed here.

    Safe from any thread.
    """

    def __init__(self, below: Files, *, most_open: int = _MOST_OPEN) -> None:
        """
        Args:
            most_open: how many files are open at a time, and how many maps.
        """
        self._below = below
        self._sources: Sources[File] = Sources(
            partial(below.open, create=False, read_only=True), most_open, lambda _: None
        )
        self._maps: Sources[MappedFile] = Sources(
            partial(below.map, size=None, read_only=True),
            most_open,
            lambda mapped: mapped.give_back(),
        )
        self._contents: dict[str, dict[str, Content | None]] = {}
        """By directory, as a text: it is quicker than a path, and a log may have very many files.
        None for a file that was removed here."""
        self._directories: set[Path] = set()
        """Those that were made here."""
        self._moved: dict[Path, Path | None] = {}
        """Where directories are below that were renamed here; None for the old names."""
        self._listed: dict[Path, set[str]] = {}
        """The names that were seen in directories."""
        self._locked: set[Path] = set()
        self._guard = threading.RLock()

    def _place(self, path: Path) -> Path | None:
        """
        The path below; None if it was renamed or removed here.
        """
        if self._moved:
            for parent in (path, *path.parents):
                if parent in self._moved:
                    place = self._moved[parent]
                    return None if place is None else place / path.relative_to(parent)
        return path

    def _known(self, path: Path) -> tuple[dict[str, Content | None], str]:
        """
        The files that are known in the directory of *path*, and its name there.
        """
        directory, name = _split(path)
        return self._contents.setdefault(directory, {}), name

    def _put(self, path: Path, content: Content | None) -> None:
        known, name = self._known(path)
        known[name] = content

    def _find(self, path: Path) -> Content | None:
        with self._guard:
            known, name = self._known(path)
            if name in known:
                return known[name]
            place = self._place(path)
            if place is None:
                return None
            try:
                size = self._below.size(place)
            except FileNotFoundError:
                return None
            content = known[name] = Content(self._sources, place, size)
            return content

    def _get(self, path: Path) -> Content:
        content = self._find(path)
        if content is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
        return content

    def _find_or_make(self, path: Path) -> tuple[Content, bool]:
        """
        The content of a file, and whether it is new.
        """
        with self._guard:
            content = self._find(path)
            if content is not None:
                return content, False
            known, name = self._known(path)
            if name in self._listed.get(path.parent, ()) and name not in known:
                # A broker has removed the file a moment ago: it must not become a new, empty one.
                error = FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
                raise storage_error("open", path, error) from error
            content = known[name] = Content(self._sources, None, 0)
            return content, True

    def open(self, path: Path, *, create: bool = True, read_only: bool = False) -> File:
        if not create or read_only:
            return OverlayFile(path, self._get(path))
        return OverlayFile(path, self._find_or_make(path)[0])

    def map(self, path: Path, size: int | None, *, read_only: bool = False) -> OverlayMap:
        content, created = (self._get(path), False) if size is None else self._find_or_make(path)
        mapped = OverlayMap(path, content, self._maps, self._below.read_bytes, created=created)
        if created:
            content.cut(size or 0)
        else:
            content.cut(self._length_of_entries(path, content, mapped))
        return mapped

    def _length_of_entries(self, path: Path, content: Content, mapped: OverlayMap) -> int:
        """
        The size of a mapped file without the hole at its end, and without entries for batches
        behind the size of the log.
        """
        size = content.size
        width = _ENTRY_SIZES.get(path.suffix)
        # A single entry of zeros may be real: a first record of timestamp 0.
        if width is None or size % width or size <= width:
            return size
        view = mapped.view  # It is mapped in any case: to read it would open it once more.
        if not any(view[size - width : size]):
            entries = bytes(view[:size]).rstrip(b"\0")
            size = -(-len(entries) // width) * width
        log = self._find(path.with_suffix(LOG_SUFFIX)) if path.suffix == INDEX_SUFFIX else None
        if log is not None:
            while size and int.from_bytes(view[size - 4 : size], "big") >= log.size:
                size -= width
        return size

    def exists(self, path: Path) -> bool:
        with self._guard:
            known, name = self._known(path)
            if name in known:
                return known[name] is not None
            if path in self._directories:
                return True
            place = self._place(path)
            return place is not None and self._below.exists(place)

    def is_directory(self, path: Path) -> bool:
        if path in self._directories:
            return True
        place = self._place(path)
        return place is not None and self._below.is_directory(place)

    def names(self, directory: Path) -> list[str]:
        with self._guard:
            names = self._names_below(directory)
            below = set(names)
            here = {
                path.name: self.is_directory(path)
                for path in (*self._directories, *self._moved)
                if path.parent == directory
            }
            for name, content in self._contents.get(os.fspath(directory), {}).items():
                here[name] = content is not None
            made = {name for name, is_there in here.items() if is_there} - below
            gone = {name for name, is_there in here.items() if not is_there} & below
            # Mostly nothing has changed, and there may be very many names to sort.
            return sorted((below | made) - gone) if made or gone else names

    def _names_below(self, directory: Path) -> list[str]:
        place = self._place(directory)
        try:
            if place is None:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(directory))
            found = self._below.names(place)
        except FileNotFoundError:
            if directory not in self._directories:
                raise
            return []
        self._listed.setdefault(directory, set()).update(found)
        return found

    def make_directory(self, path: Path) -> None:
        with self._guard:
            if not self.is_directory(path):
                self._directories.add(path)

    def rename(self, source: Path, target: Path) -> None:
        with self._guard:
            if self.is_directory(source):
                self._rename_directory(source, target)
                return
            content = self._find(source)
            if content is None:
                error = FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
                raise storage_error(f"rename to {target.name}", source, error) from error
            self._put(target, content)
            self._put(source, None)

    def _rename_directory(self, source: Path, target: Path) -> None:
        for directory in tuple(_inside(source, self._contents)):
            moved = f"{target}{directory.removeprefix(os.fspath(source))}"
            self._contents[moved] = self._contents.pop(directory)
        for path in tuple(_within(source, self._listed)):
            self._listed[target / path.relative_to(source)] = self._listed.pop(path)
        for path in tuple(_within(source, self._directories)):
            self._directories.remove(path)
            self._directories.add(target / path.relative_to(source))
        self._moved[target] = self._place(source)
        self._moved[source] = None

    def remove(self, path: Path) -> bool:
        with self._guard:
            was_there = self._find(path) is not None
            self._put(path, None)
            return was_there

    def remove_tree(self, path: Path) -> None:
        with self._guard:
            for directory in tuple(_inside(path, self._contents)):
                del self._contents[directory]
            for each in tuple(_within(path, self._listed)):
                del self._listed[each]
            self._directories.difference_update(tuple(_within(path, self._directories)))
            self._moved[path] = None

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

    def lock(self, path: Path) -> Lock:
        """
        Lock the file here only, which never fails: to make it, or to lock it, would change what
        others see.
        """
        self._locked.add(path)
        return _NoLock(partial(self._locked.discard, path))

    def is_locked(self, path: Path) -> bool:
        return path in self._locked or self._below.is_locked(path)

    def usable_bytes(self, path: Path) -> int:
        return self._below.usable_bytes(path)

    def total_bytes(self, path: Path) -> int:
        return self._below.total_bytes(path)

    def blocks_read(self) -> int:
        return self._below.blocks_read()


def _within(directory: Path, paths: Iterable[Path]) -> Iterator[Path]:
    """
    Those of *paths* that are *directory* or inside it.
    """
    return (path for path in paths if path == directory or directory in path.parents)


def _inside(directory: Path, others: Iterable[str]) -> Iterator[str]:
    """
    The same for texts.
    """
    text = os.fspath(directory)
    return (each for each in others if each == text or each.startswith(f"{text}{os.sep}"))


def _split(path: Path) -> tuple[str, str]:
    """
    The directory of *path* as a text, and its name there.
    """
    text = os.fspath(path)
    directory, separator, name = text.rpartition(os.sep)
    return directory or separator or os.curdir, name
