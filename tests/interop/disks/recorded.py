"""
The file system of a broker whose machine loses power: what was done with it and promised by when.

A position of the disk's journal stands for an instant. What was promised before the journal had so
many records holds after a power cut there::

    journal     0 ---- 10 ----------- 14 ---- 15 -------
                        |              |       |
                  look: asked        flush   look: answered

    A cut at 12 finds what the first look promises, a cut at 15 what the second does.
"""

from __future__ import annotations

import os
import threading
from bisect import bisect_right
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, Final, Generic, NamedTuple, TypeVar

from barnabas.protocol.codec.primitives import Buffer
from barnabas.storage.fs.disk import DiskFile, DiskFiles, DiskMappedFile
from tests.interop.disks.mounts import write_back
from tests.support.crash.points import NONE, Keep, Lookout, Machine, Point

P = TypeVar("P")

WRITE_BACKS: Final = 0.15
"""How often, before a change, the kernel writes back the changed file, as it may at any time."""


@dataclass(slots=True)
class Operation:
    """
    A change of the file system.

    Args:
        begun: the position of the journal before it.
        ended: the position after it; -1 while it is under way.
    """

    action: str
    path: Path
    begun: int
    ended: int = -1
    position: int = 0
    data: bytes = b""
    target: Path | None = None


class RecordedFiles(DiskFiles):
    """
    The real file system, each change of which is recorded.
    """

    def __init__(self, position: Callable[[], int], chance: Random | None = None) -> None:
        super().__init__()
        self.operations: list[Operation] = []
        self.before_change: Callable[[str, Path], None] = lambda action, path: None
        self._position = position
        self._chance = chance

    @contextmanager
    def changing(
        self,
        action: str,
        path: Path,
        *,
        position: int = 0,
        data: Buffer = b"",
        target: Path | None = None,
    ) -> Iterator[None]:
        self.before_change(action, path)
        begun = self._position()
        operation = Operation(
            action, path, begun, position=position, data=bytes(data), target=target
        )
        self.operations.append(operation)
        yield
        operation.ended = self._position()
        if self._chance is not None and action == "write" and self._chance.random() < WRITE_BACKS:
            with suppress(FileNotFoundError):  # It was renamed while it was open.
                write_back(path)

    def open(self, path: Path, *, create: bool = True, read_only: bool = False) -> DiskFile:
        create = create and not read_only
        if create and not self.exists(path):
            with self.changing("create", path):
                os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666))
        file = super().open(path, create=create, read_only=read_only)
        return file if read_only else RecordedFile(self, file)

    def map(self, path: Path, size: int | None, *, read_only: bool = False) -> DiskMappedFile:
        if size is not None and not self.exists(path):
            with self.changing("create", path), self.changing("truncate", path, position=size):
                created = super().map(path, size, read_only=read_only)
            return RecordedMap(self, created, created=True)
        found = super().map(path, size, read_only=read_only)
        return found if read_only else RecordedMap(self, found, created=False)

    def make_directory(self, path: Path) -> None:
        for each in (*reversed(path.parents), path):
            if not self.exists(each):
                with self.changing("make directory", each):
                    super().make_directory(each)

    def rename(self, source: Path, target: Path) -> None:
        with self.changing("rename", source, target=target):
            super().rename(source, target)

    def remove(self, path: Path) -> bool:
        if not self.exists(path):
            return False
        with self.changing("remove", path):
            return super().remove(path)

    def remove_tree(self, path: Path) -> None:
        with self.changing("remove tree", path):
            super().remove_tree(path)

    def sync_directory(self, path: Path) -> None:
        with self.changing("sync directory", path):
            super().sync_directory(path)


class RecordedFile(DiskFile):
    """
    An open file, each change of which is recorded.
    """

    __slots__ = ("_files",)

    def __init__(self, files: RecordedFiles, file: DiskFile) -> None:
        super().__init__(file.path, file._handle)
        self._files = files

    def write_at(self, position: int, data: Buffer) -> None:
        with self._files.changing("write", self.path, position=position, data=data):
            super().write_at(position, data)

    def truncate(self, size: int) -> None:
        with self._files.changing("truncate", self.path, position=size):
            super().truncate(size)

    def sync(self) -> None:
        with self._files.changing("sync", self.path):
            super().sync()


class RecordedMap(DiskMappedFile):
    """
    A mapped file, each change of which is recorded.
    """

    __slots__ = ("_recorded",)

    def __init__(self, files: RecordedFiles, mapped: DiskMappedFile, *, created: bool) -> None:
        self._recorded = files
        handle = files.handle(mapped.path)
        mapped.close()
        super().__init__(files, mapped.path, handle.fd, created=created, read_only=False)

    def put(self, position: int, data: bytes) -> None:
        with self._recorded.changing("write", self.path, position=position, data=data):
            super().put(position, data)

    def resize(self, size: int) -> None:
        with self._recorded.changing("truncate", self.path, position=size):
            super().resize(size)

    def flush(self) -> None:
        if self._dirty:
            with self._recorded.changing("sync", self.path):
                super().flush()


class Note(NamedTuple, Generic[P]):
    """
    What is promised from a position of the journal on.
    """

    position: int
    instant: str
    promised: P
    now_ms: int


class Trail(Lookout, Generic[P]):
    """
    All promises of a life, with their positions.
    """

    def __init__(
        self,
        files: RecordedFiles,
        position: Callable[[], int],
        now_ms: Callable[[], int],
        promised: Callable[[Keep], P],
    ) -> None:
        self.notes: list[Note[P]] = []
        self._files = files
        self._position = position
        self._now_ms = now_ms
        self._promised = promised
        self._lock = threading.Lock()
        files.before_change = self._before_change
        self.look("at the start")

    def _before_change(self, action: str, path: Path) -> None:
        self.look(f"before {action} {path.parent.name}/{path.name}")

    def look(self, instant: str) -> None:
        with self._lock:
            # In this order: what is done meanwhile may be promised later.
            promised = self._promised(NONE)
            position = self._position()
            if self.notes and self.notes[-1].position == position:
                self.notes.pop()
            self.notes.append(Note(position, instant, promised, self._now_ms()))

    def end(self) -> None:
        self.look("at the end")
        self._files.before_change = lambda action, path: None
        # Nothing that has files open: the file system is to be unmounted.
        del self._files, self._promised

    def at(self, position: int) -> Note[P]:
        """
        The promises that hold after a power cut.
        """
        found = bisect_right(self.notes, position, key=lambda note: note.position)
        return self.notes[found - 1]


class RecordedMachine(Machine[P]):
    """
    A machine whose disk is recorded.
    """

    files: RecordedFiles

    def __init__(self, position: Callable[[], int], chance: Random | None = None) -> None:
        self.files = RecordedFiles(position, chance)
        self.operations = self.files.operations
        self._position = position
        self._trail: Trail[P] | None = None

    def watch(
        self,
        now_ms: Callable[[], int],
        promised: Callable[[Keep], P],
        *,
        key: Callable[[P], object] = id,
    ) -> Trail[P]:
        self._trail = Trail(self.files, self._position, now_ms, promised)
        return self._trail

    @property
    def trail(self) -> Trail[P]:
        assert self._trail is not None
        return self._trail


class MountedPoint(Point[P]):
    """
    A point whose disk is the one that is mounted.
    """

    def files(self) -> DiskFiles:
        return DiskFiles()


def point_at(trail: Trail[P], position: int, place: str) -> MountedPoint[P]:
    note: Any = trail.at(position)
    return MountedPoint(f"{place}, {note.instant}", note.promised, note.now_ms)
