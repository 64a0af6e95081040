"""
The lock that keeps a second broker out of a directory.
"""

from __future__ import annotations

import errno
import fcntl
import os
import sys
import threading
from contextlib import suppress
from pathlib import Path
from struct import Struct
from typing import Final


class DiskLock:
    """
    A POSIX record lock on a file, as Java's ``FileChannel.tryLock`` takes it.

    The lock belongs to the process, and ends when *any* descriptor of the file is closed. So a
    second opener in the same process has to be refused before it opens the file.

    The file stays, as that of Kafka does: another broker may have opened it and be about to lock
    it, and one that starts later has to find the same file. Its time is that of the last lock.
    """

    _held: Final[set[Path]] = set()
    _guard: Final = threading.Lock()

    def __init__(self, path: Path, fd: int) -> None:
        self._path = path
        self._fd: int | None = fd

    @classmethod
    def acquire(cls, path: Path) -> DiskLock | None:
        path = path.parent.resolve() / path.name
        with cls._guard:
            if path in cls._held:
                return None
            fd = cls._open_locked(path)
            if fd is None:
                return None
            cls._held.add(path)
        return cls(path, fd)

    @staticmethod
    def _open_locked(path: Path) -> int | None:
        while True:
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
            try:
                fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                # Somebody may have removed the file between our open and our lock.
                if os.path.samestat(os.fstat(fd), os.stat(path)):
                    with suppress(OSError):  # of a file system that keeps no times
                        os.utime(fd)
                    return fd
            except FileNotFoundError:
                pass
            except OSError as error:
                os.close(fd)
                if error.errno in (errno.EACCES, errno.EAGAIN):
                    return None
                raise
            os.close(fd)

    @classmethod
    def is_held(cls, path: Path) -> bool:
        """
        Whether some process has the lock. Not found out by taking it: a broker that starts at that
        moment would be turned away.
        """
        return cls.holder(path) is not None

    @classmethod
    def holder(cls, path: Path) -> int | None:
        """
        The process that has the lock, 0 if it is in another container; None if there is none.
        """
        path = path.parent.resolve() / path.name
        with cls._guard:
            if path in cls._held:
                return os.getpid()
            try:
                fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            except FileNotFoundError:
                return None
            try:
                return _write_lock_holder(fd)
            finally:
                os.close(fd)

    def release(self) -> None:
        with self._guard:
            if self._fd is None:
                return
            os.close(self._fd)
            self._fd = None
            self._held.discard(self._path)


_LINUX: Final = sys.platform == "linux"
_FLOCK: Final = Struct("@hhqqi" if _LINUX else "@qqihh")
"""Of Linux: type, whence, start, length, process; of BSD: start, length, process, type, whence."""


def _write_lock_holder(fd: int) -> int | None:
    asked = (fcntl.F_RDLCK, os.SEEK_SET, 0, 0, 0) if _LINUX else (0, 0, 0, fcntl.F_RDLCK, 0)
    answer: tuple[int, ...] = _FLOCK.unpack(fcntl.fcntl(fd, fcntl.F_GETLK, _FLOCK.pack(*asked)))
    is_free = answer[0 if _LINUX else 3] == fcntl.F_UNLCK
    return None if is_free else answer[4 if _LINUX else 2]
