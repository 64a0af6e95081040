"""
An index that is opened when it is first needed (Kafka's LazyIndex).

A broker may have thousands of logs, and a log thousands of segments of which few are ever read.
Also the *making* of the file waits until the index is needed. Kafka opens the indexes of active
segments at once; here they wait as well: each takes a map and, before Python 3.13, a descriptor.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from enum import Enum
from pathlib import Path
from typing import Final, Generic, TypeVar

from barnabas.storage.errors import KafkaStorageError
from barnabas.storage.fs.interface import Files
from barnabas.storage.index.base import Index

AnyIndex = TypeVar("AnyIndex", bound=Index)
T = TypeVar("T")


class IndexState(Enum):
    """
    The states of the file of an index.
    """

    CLOSED = "The file ends with its last entry, or is missing."
    GROWABLE = "As CLOSED, but the file is lengthened when it is opened: its segment is active."
    HOLE = "The file is as long as it may become, and has no entry."
    OPEN = "The index is open."
    IN_MEMORY = "The index collects its entries until they are stored; those of the file are void."
    REMOVED = "The file was removed. An index that was open stays open for its readers."


TRANSITIONS: Final[Mapping[IndexState, frozenset[IndexState]]] = {
    IndexState.CLOSED: frozenset(IndexState),
    IndexState.GROWABLE: frozenset(IndexState) - {IndexState.GROWABLE},
    IndexState.HOLE: frozenset(
        {IndexState.CLOSED, IndexState.OPEN, IndexState.IN_MEMORY, IndexState.REMOVED}
    ),
    IndexState.OPEN: frozenset({IndexState.CLOSED, IndexState.IN_MEMORY, IndexState.REMOVED}),
    IndexState.IN_MEMORY: frozenset({IndexState.CLOSED, IndexState.IN_MEMORY, IndexState.REMOVED}),
    IndexState.REMOVED: frozenset({IndexState.REMOVED}),
}


class LazyIndex(Generic[AnyIndex]):
    """
    The file of an index, and the index while it is open.

    Invariants:

    1. There is an ``index`` in the states OPEN and IN_MEMORY, none in CLOSED, GROWABLE and HOLE.
    2. Only ``_become`` changes the state and ``index``, with ``_guard`` held.

    ``get``, ``peek`` and ``flush`` are safe from any thread. The thread that calls another method
    holds the lock of the log that owns the segment.
    """

    __slots__ = (
        "_base_offset",
        "_directory",
        "_files",
        "_guard",
        "_is_unsynced",
        "_kind",
        "_max_size",
        "_name",
        "index",
        "state",
    )

    def __init__(
        self,
        kind: type[AnyIndex],
        files: Files,
        directory: Path,
        name: str,
        base_offset: int,
        *,
        max_size: int,
    ) -> None:
        self._kind = kind
        self._files = files
        # A path is several objects, and there may be very many indexes that are never opened.
        self._directory = directory
        self._name = name
        self._base_offset = base_offset
        self._max_size = max_size
        self._guard = threading.Lock()
        self._is_unsynced = False
        """Whether the file got entries or another length before it was closed, and no flush covers
        that. It stays true while the index is opened again."""
        self.state = IndexState.CLOSED
        self.index: AnyIndex | None = None

    def _become(self, state: IndexState, index: AnyIndex | None = None) -> None:
        assert state in TRANSITIONS[self.state], f"{self.path}: {self.state} -> {state}"
        self.state = state
        self.index = index

    @property
    def path(self) -> Path:
        return self._directory / self._name

    # Opening and closing.

    def get(self) -> AnyIndex:
        """
        The index, which is opened if it is closed, and made if there is no file.

        A reader does without an index, which only makes a search shorter, where the segment was
        removed, and while the directory is being renamed as its topic is deleted.

        Raises:
            ValueError: ``segment.index.bytes`` is less than an entry.
            KafkaStorageError: the disk failed.
        """
        with self._guard:
            if self.index is not None:
                return self.index
            if self.state is IndexState.REMOVED:
                return self._without_file()
            try:
                index = self._open()
            except KafkaStorageError as error:
                if not isinstance(error.__cause__, FileNotFoundError):
                    raise
                return self._without_file()
            self._become(IndexState.OPEN, index)
            return index

    def _open(self) -> AnyIndex:
        index = self._kind.open(self._files, self.path, self._base_offset, self._max_size)
        try:
            if self.state is IndexState.HOLE:
                index.truncate()
            elif self.state is IndexState.GROWABLE:
                index.resize(self._max_size)
        except BaseException:
            index.close_handler()
            raise
        return index

    def peek(self, read: Callable[[AnyIndex], T]) -> T:
        """
        The result of *read* for the index. An index that was closed is closed again.
        """
        with self._guard:
            if self.index is not None:
                return read(self.index)
            if self.state in (IndexState.HOLE, IndexState.REMOVED):
                return read(self._without_file())
            try:
                index = self._kind.open(
                    self._files, self.path, self._base_offset, self._max_size, writable=False
                )
            except FileNotFoundError:
                return read(self._without_file())
            try:
                return read(index)
            finally:
                index.close_handler()

    def _without_file(self) -> AnyIndex:
        return self._kind.without_file(self.path, self._base_offset, self._max_size)

    def release(self, *, unsynced: bool) -> None:
        """
        Cut off the hole and close the file until the index is needed again. No other thread may be
        using it.

        Args:
            unsynced: whether there may be entries that only ``flush`` brings to the disk.
        """
        with self._guard:
            if self.state is IndexState.OPEN and self.index is not None:
                has_hole = self.index.length > self.index.size_in_bytes
                self._is_unsynced = unsynced or has_hole
                self.index.close()
                self._become(IndexState.CLOSED)

    def close(self) -> None:
        """
        Cut off the hole and close the file for good.
        """
        with self._guard:
            if self.index is not None:
                self.index.close()
            elif self.state is IndexState.HOLE:
                self._empty()

    def close_handler(self) -> None:
        """
        Close the file for good as it is, as the disk has failed.
        """
        with self._guard:
            if self.index is not None:
                self.index.close_handler()

    # The length of the file.

    def make_file(self) -> None:
        """
        Make the file of a new index, as large as it may become.
        """
        with self._guard:
            if self.state in (IndexState.CLOSED, IndexState.GROWABLE):
                file = self._files.open(self.path)
                file.truncate(self._kind.new_size(self._max_size))
                file.close()
                self._become(IndexState.HOLE)

    def grow(self) -> None:
        """
        Make room for all entries that the index may have, at the latest when it is opened.
        """
        with self._guard:
            if self.index is not None:
                self.index.resize(self._max_size)
            elif self.state is IndexState.CLOSED:
                self._become(IndexState.GROWABLE)

    def trim(self) -> None:
        """
        Cut off the hole. If the index is closed, its file is made where it is missing.
        """
        with self._guard:
            if self.index is not None:
                self.index.trim_to_valid_size()
            elif self.state is IndexState.HOLE:
                self._empty()
                self._is_unsynced = True
            elif self.state is not IndexState.REMOVED:
                self._become(IndexState.CLOSED)
                if not self._files.exists(self.path):
                    self._empty()

    def _empty(self) -> None:
        file = self._files.open(self.path)
        file.truncate(0)
        file.close()
        self._become(IndexState.CLOSED)

    # Recovering: an index is written once, or not at all if it has no entries and had none.

    def reset(self) -> None:
        """
        Forget all entries, and collect the next ones in memory until ``store``.
        """
        with self._guard:
            if self.index is not None:
                self.index.close_handler()
            index = self._kind.unwritten(self.path, self._base_offset, self._max_size)
            self._become(IndexState.IN_MEMORY, index)

    def store(self) -> None:
        """
        Write the entries that were collected; only ``flush`` brings them to the disk.
        """
        with self._guard:
            if self.state is IndexState.IN_MEMORY and self.index is not None:
                content = self.index.content
                self._become(IndexState.CLOSED)
                if self._write(content):
                    self._is_unsynced = True

    def _write(self, entries: bytes) -> bool:
        """
        Make *entries* the content of the file; return whether that changed it. Zeros behind them
        would be entries when the file is opened next.
        """
        try:
            size = self._files.size(self.path)
        except FileNotFoundError:
            size = -1
        if size == 0 and not entries:
            return False
        file = self._files.open(self.path)
        if size > 0:
            file.truncate(0)
        if entries:
            file.write_at(0, entries)
        file.close()
        return True

    # The file as a whole.

    def flush(self) -> None:
        """
        Return once the entries survive a crash of the machine.
        """
        index = self.index
        if index is not None:
            index.flush()
        if self._is_unsynced:
            with self._guard:
                self._sync_file()

    def _sync_file(self) -> None:
        try:
            file = self._files.open(self.path, create=False)
        except FileNotFoundError:
            return  # The file was removed, or the directory is being renamed for that.
        file.sync()
        file.close()
        self._is_unsynced = False

    def rename_to(self, path: Path) -> None:
        """
        Rename the file, if it was made already.
        """
        with self._guard, self._files.open_files.lock:
            try:
                if self.index is not None or self._files.exists(self.path):
                    self._files.rename(self.path, path)
            finally:
                self._set_path(path)

    def update_parent_dir(self, directory: Path) -> None:
        """
        Follow the directory, which was renamed.
        """
        with self._guard:
            self._set_path(directory / self._name)

    def _set_path(self, path: Path) -> None:
        self._directory, self._name = path.parent, path.name
        if self.index is not None:
            self.index.path = path

    def delete_if_exists(self) -> bool:
        """
        Remove the file; return whether there was one. Readers of the index keep it.
        """
        with self._guard:
            self._become(IndexState.REMOVED, self.index)
            if self.index is not None:
                self.index.give_back()
            return self._files.remove(self.path)
