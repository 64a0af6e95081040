"""
An index that is opened when somebody needs it.

A log may have thousands of segments of which few are ever read, and a broker thousands of logs.
Also the *making* of the file waits: a segment gets its index files when they are first asked for
(Kafka's LazyIndex). Kafka opens those of active segments at once; here they wait as well, for
either takes a map and, before Python 3.13, a descriptor.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

from barnabas.storage.errors import KafkaStorageError
from barnabas.storage.fs.interface import Files
from barnabas.storage.index.base import Index

AnyIndex = TypeVar("AnyIndex", bound=Index)
T = TypeVar("T")


class LazyIndex(Generic[AnyIndex]):
    """
    The file of an index, and the index once it was asked for.

    ``get`` is safe from any thread. The rest belongs to the log that owns the segment.
    """

    __slots__ = (
        "_base_offset",
        "_directory",
        "_files",
        "_guard",
        "_is_all_hole",
        "_is_unsynced",
        "_kind",
        "_max_size",
        "_name",
        "_removed",
        "_wanted_size",
        "index",
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
        # A path is several objects, and there may be very many indexes that nobody opens.
        self._directory = directory
        self._name = name
        self._base_offset = base_offset
        self._max_size = max_size
        self._guard = threading.Lock()
        self._removed = False
        self._wanted_size: int | None = None
        self._is_unsynced = False
        self._is_all_hole = False  # whether the file was made, and nobody has asked for it since
        self.index: AnyIndex | None = None
        """None until it was asked for."""

    @property
    def path(self) -> Path:
        return self._directory / self._name

    def get(self) -> AnyIndex:
        """
        The index, opened or made if need be.

        Raises:
            ValueError: ``segment.index.bytes`` is less than an entry.
        """
        with self._guard:
            if self.index is not None:
                return self.index
            if self._removed:
                # Somebody still reads the removed segment. Opening would make the file again.
                return self._without_file()
            try:
                self.index = self._kind.open(
                    self._files, self.path, self._base_offset, self._max_size
                )
            except KafkaStorageError as error:
                # The directory is being renamed at this moment, as its topic is deleted. Who reads
                # does well without an index: it only makes a search shorter.
                if not isinstance(error.__cause__, FileNotFoundError):
                    raise
                return self._without_file()
            if self._is_all_hole:
                self.index.truncate()
                self._is_all_hole = False
            if self._wanted_size is not None:
                self.index.resize(self._wanted_size)
                self._wanted_size = None
            return self.index

    def begin_anew(self) -> None:
        """
        Be an index without entries, in memory until ``store``; what the file has does not count.

        Recovery makes every index of a log anew, and most have few entries or none: this way a file
        is written once, or left alone.
        """
        with self._guard:
            if self.index is not None:
                self.index.close_handler()
            self._wanted_size = None
            self._is_all_hole = False
            self.index = self._kind.unwritten(self.path, self._base_offset, self._max_size)

    def store(self) -> None:
        """
        Put what was made anew into the file; only ``flush`` brings it to the disk.
        """
        with self._guard:
            if self.index is not None:
                index, self.index = self.index, None
                if self._put_into_file(index.path, index.content):
                    self._is_unsynced = True

    def _put_into_file(self, path: Path, entries: bytes) -> bool:
        """
        Whether that changed it. A hole of zeros would be entries to whoever opens it next.
        """
        try:
            size = self._files.size(path)
        except FileNotFoundError:
            size = -1
        if size == 0 and not entries:
            return False
        file = self._files.open(path)
        if size > 0:
            file.truncate(0)
        if entries:
            file.write_at(0, entries)
        file.close()
        return True

    def make_file(self) -> None:
        """
        Make the file of a new index, as large as it may become.
        """
        with self._guard:
            if self.index is None:
                file = self._files.open(self.path)
                file.truncate(self._kind.new_size(self._max_size))
                file.close()
                self._is_all_hole = True

    def resize(self, size: int) -> None:
        """
        Make room for entries, *size* bytes in all, now or when the index is asked for.
        """
        with self._guard:
            if self.index is None:
                self._wanted_size = size
            else:
                self.index.resize(size)

    def trim(self) -> None:
        """
        Cut off the hole. If nobody has asked for the index, its file is made where it is missing.
        """
        with self._guard:
            if self.index is not None:
                self.index.trim_to_valid_size()
                return
            self._wanted_size = None
            if self._is_all_hole or not (self._removed or self._files.exists(self.path)):
                self._empty()

    def _empty(self) -> None:
        file = self._files.open(self.path)
        file.truncate(0)
        file.close()
        self._is_all_hole = False

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
            return  # The directory is being renamed, or the file was removed: nobody wants it.
        file.sync()
        file.close()
        self._is_unsynced = False

    def release(self, *, unsynced: bool) -> None:
        """
        Cut off the hole and give the file back, until somebody asks for the index again. Nobody may
        be using it.

        Args:
            unsynced: whether there may be entries that only ``flush`` brings to the disk.
        """
        with self._guard:
            if self.index is not None:
                self._is_unsynced = unsynced
                self.index.close()
                self.index = None

    def peek(self, read: Callable[[AnyIndex], T]) -> T:
        """
        What *read* finds in the index, which is closed again if nobody else has asked for it.
        """
        with self._guard:
            if self.index is not None:
                return read(self.index)
            if self._is_all_hole:
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
        Somebody has renamed the directory.
        """
        with self._guard:
            self._set_path(directory / self._name)

    def _set_path(self, path: Path) -> None:
        self._directory, self._name = path.parent, path.name
        if self.index is not None:
            self.index.path = path

    def delete_if_exists(self) -> bool:
        """
        Remove the file; whether there was one. Who reads the index goes on doing so.
        """
        with self._guard:
            self._removed = True
            if self.index is not None:
                self.index.give_back()
            return self._files.remove(self.path)

    def close(self) -> None:
        with self._guard:
            if self.index is not None:
                self.index.close()
            elif self._is_all_hole and not self._removed:
                self._empty()

    def close_handler(self) -> None:
        with self._guard:
            if self.index is not None:
                self.index.close_handler()
