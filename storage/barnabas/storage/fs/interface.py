"""
The file system as the storage engine sees it.

The engine takes a ``Files`` and uses nothing else of the file system, so that a test can give it
one that crashes or fails at any step. The real one is ``disk.DiskFiles``.

An error of the disk is a ``KafkaStorageError`` that names the file, with the ``OSError`` as its
``__cause__``. A missing file is a ``FileNotFoundError`` where a method says so. To open a file, and
to list, sync or remove a directory, takes a descriptor. If none is left, the disk has not failed:
that is ``TooManyOpenFiles``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final, Protocol

from barnabas.protocol.codec.primitives import Buffer
from barnabas.storage.fs.open_files import OpenFiles

TEMPORARY_SUFFIX: Final = ".tmp"


class WouldBlock(Exception):
    """
    A read with ``nowait`` found that the page cache lacks some of the bytes.
    """


class File(Protocol):
    """
    An open file. Reading is safe from any thread, also while another one writes or closes it.
    """

    path: Path
    """The name of the file in errors; the caller that renames it changes this."""

    def append(self, data: Buffer) -> None:
        """
        Write all of *data* behind the last byte.
        """

    def write_at(self, position: int, data: Buffer) -> None:
        """
        Write all of *data* at *position*, over old bytes or behind the end.
        """

    def read(self, position: int, size: int, *, nowait: bool = False) -> bytes | bytearray:
        """
        The bytes there, fewer than *size* only at the end of the file.

        Raises:
            WouldBlock: with *nowait*, if the disk would have to be asked.
        """

    def read_into(self, position: int, room: memoryview, *, nowait: bool = False) -> int:
        """
        Put the bytes there into *room*, which costs no new memory.

        Returns:
            How many, fewer than there is room only at the end of the file or, with *nowait*, where
            the disk would have to be asked for more.

        Raises:
            WouldBlock: with *nowait*, if the disk would have to be asked for the first one.
        """
        data = self.read(position, len(room), nowait=nowait)
        room[: len(data)] = data
        return len(data)

    def splice_into(self, pipe: int, position: int, size: int) -> int:
        """
        Put the bytes there into *pipe*, the descriptor of the end to write to, without copying
        them: the pipe refers to the page cache, also if that changes.

        Never waits for the disk or for room in the pipe.

        Returns:
            How many, as far as there is room; none unless the page cache has all of them, or if
            there is no way to know.
        """
        return 0

    def truncate(self, size: int) -> None:
        """
        Cut the file, or lengthen it with zeros that take no space.
        """

    def size(self) -> int:
        """
        Bytes up to the end of the file.
        """

    def sync(self) -> None:
        """
        Return once all that was written survives a crash of the machine.
        """

    def rewrite_lost(self) -> int:
        """
        Write again what the page cache has and the disk lacks, and sync it. After an error of a
        write the kernel keeps the pages, but takes them for written.

        Returns:
            The number of bytes written.

        Raises:
            KafkaStorageError: the disk cannot be read, or not be written.
        """
        return 0

    def close(self) -> None:
        """
        Close the file. Reads in progress end normally, later calls fail.
        """


class MappedFile(Protocol):
    """
    A file that is read as memory.

    Writing goes through ``put`` and not through the memory: a full disk then is an error, where a
    write to a page of a sparse mapping would end the process (SIGBUS).
    """

    path: Path
    created: bool
    """Whether opening made the file."""

    @property
    def view(self) -> memoryview:
        """
        The bytes of the file, read-only. After a resize it is another one; the old one stays valid
        for those who still have it, up to the smaller of both sizes.
        """

    def open_for_writing(self) -> None:
        """
        Open the file for ``put``, which needs no other descriptor up to ``give_back``.
        """

    def give_back(self) -> None:
        """
        Close the descriptor for writing.
        """

    def put(self, position: int, data: bytes) -> None:
        """
        Write all of *data* inside the file. It is in ``view`` at once.
        """

    def resize(self, size: int) -> None:
        """
        Cut the file, or lengthen it with zeros that take no space.
        """

    def flush(self) -> None:
        """
        Return once all that was written survives a crash of the machine.
        """

    def close(self) -> None:
        """
        Close the file and free the map; ``view`` is empty from now on.
        """


class Lock(Protocol):
    """
    An exclusive lock on a file.
    """

    def release(self) -> None:
        """
        Unlock the file, which stays; harmless when repeated.
        """


class Files(Protocol):
    """
    A file system.
    """

    open_files: OpenFiles = OpenFiles()
    """The files of logs, whose number a file system may limit."""

    def open(self, path: Path, *, create: bool = True, read_only: bool = False) -> File:
        """
        Open a file.

        Raises:
            FileNotFoundError: it does not exist and *create* does not ask to make it.
        """

    def map(self, path: Path, size: int | None, *, read_only: bool = False) -> MappedFile:
        """
        Open a file as memory; if there is none make one of *size* zeros that take no space.

        Raises:
            FileNotFoundError: it does not exist and *size* is None.
        """

    def exists(self, path: Path) -> bool: ...

    def is_directory(self, path: Path) -> bool: ...

    def names(self, directory: Path) -> list[str]:
        """
        The names in a directory, sorted.

        Raises:
            FileNotFoundError: there is no such directory.
        """

    def directory_names(self, directory: Path) -> list[str]:
        """
        The names of the directories in it, sorted.

        Raises:
            FileNotFoundError: there is no such directory.
        """
        return [name for name in self.names(directory) if self.is_directory(directory / name)]

    def make_directory(self, path: Path) -> None:
        """
        Make a directory and those above it; harmless if it exists.
        """

    def restrict(self, path: Path) -> None:
        """
        Take all permissions for a file or directory from everyone but its owner. File systems
        without permissions do nothing.
        """
        return None  # noqa: RET501  # without a body the method is abstract

    def rename(self, source: Path, target: Path) -> None:
        """
        Rename a file or directory; a file *target* is replaced, in one step.
        """

    def remove(self, path: Path) -> bool:
        """
        Remove a file; return whether there was one.
        """

    def remove_tree(self, path: Path) -> None:
        """
        Remove a directory with all that is in it; harmless if there is none.
        """

    def sync_directory(self, path: Path) -> None:
        """
        Return once all changes of names in a directory survive a crash.
        """

    def read_bytes(self, path: Path) -> bytes:
        """
        All of a file.

        Raises:
            FileNotFoundError: there is none.
        """

    def size(self, path: Path) -> int:
        """
        Bytes of a file.

        Raises:
            FileNotFoundError: there is none.
        """

    def modified_ms(self, path: Path) -> int:
        """
        When the file was last written, in ms since 1970.

        Raises:
            FileNotFoundError: there is none.
        """

    def set_modified_ms(self, path: Path, ms: int) -> None:
        """
        Raises:
            FileNotFoundError: there is none.
        """

    def lock(self, path: Path) -> Lock | None:
        """
        Make a file and lock it; None if it is locked already, in this process or in another.
        """

    def is_locked(self, path: Path) -> bool:
        """
        Whether a file is locked, by any process. Nothing is made, locked or changed.
        """

    def usable_bytes(self, path: Path) -> int:
        """
        Free space of the file system around *path*.
        """

    def total_bytes(self, path: Path) -> int:
        """
        Size of the file system around *path*.
        """

    def blocks_read(self) -> int:
        """
        The blocks of 512 bytes that this process has read from a disk so far, and waited for.
        """
        return 0

    def write_atomically(self, path: Path, data: bytes, *, restricted: bool = False) -> None:
        """
        Replace the content of a file by *data*: after a crash it has all of it, or the old content.

        The directory is synced at the end, without which a crash could undo the rename
        (Kafka's CheckpointFile and Utils.atomicMoveWithFallback).

        Args:
            restricted: whether only the owner may read it.
        """
        temporary = path.with_name(path.name + TEMPORARY_SUFFIX)
        file = self.open(temporary)
        try:
            if restricted:
                self.restrict(temporary)
            file.truncate(0)
            file.append(data)
            file.sync()
        finally:
            file.close()
        self.rename(temporary, path)
        self.sync_directory(path.parent)
