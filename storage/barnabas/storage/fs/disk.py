"""
The real disk.

Reading is lock-free: a thread that reads keeps the descriptor or the map alive while it does, so
that closing, resizing and removing never take it away from under it.

This module must not be compiled: the interpreter keeps the object of a local variable until the
function ends, mypyc only until its last use, which would close a descriptor before it is used.
"""

from __future__ import annotations

import errno
import fcntl
import mmap
import os
import resource
import stat
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Final

from barnabas.protocol.codec.primitives import Buffer
from barnabas.storage.errors import KafkaStorageError, TooManyOpenFiles
from barnabas.storage.fs.disk_lock import DiskLock
from barnabas.storage.fs.interface import Files, WouldBlock
from barnabas.storage.fs.open_files import OpenFiles

_NO_DESCRIPTOR: Final = frozenset({errno.EMFILE, errno.ENFILE})
_OPENINGS: Final = frozenset({"open", "map", "resize", "list", "sync directory"})
"""Operations that may fail for lack of a map or of kernel memory, and then have changed nothing."""
_MAX_MAP_COUNT: Final = "/proc/sys/vm/max_map_count"
_COMPARED_BYTES: Final = 1 << 22
"""Read at once where the page cache is compared with the disk. No page of a file is larger."""


def storage_error(action: str, path: Path, error: OSError) -> KafkaStorageError | TooManyOpenFiles:
    """
    The exception for an *error* of the disk, which is its cause. Raise it ``from`` the error.
    """
    is_limit = error.errno in _NO_DESCRIPTOR or (
        error.errno == errno.ENOMEM and action in _OPENINGS
    )
    kind = TooManyOpenFiles if is_limit else KafkaStorageError
    # Mostly a directory of the host that a container was given.
    whose = f" (for user {os.geteuid()})" if isinstance(error, PermissionError) else ""
    made = kind(f"Cannot {action} {path}: {error.strerror or error}{whose}")
    made.__cause__ = error  # Compiled code loses the ``from`` of its ``raise``.
    return made


class _errors:
    """
    Turns an ``OSError`` of the statements below it into a ``storage_error``.

    A generator would take a third of the time of a small operation.
    """

    __slots__ = ("_action", "_path")

    def __init__(self, action: str, path: Path) -> None:
        self._action = action
        self._path = path

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if error is not None and isinstance(error, OSError):
            raise storage_error(self._action, self._path, error) from error


class _question(_errors):
    """
    The same, but a ``FileNotFoundError`` is raised as it is.
    """

    __slots__ = ()

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if not isinstance(error, FileNotFoundError):
            super().__exit__(kind, error, traceback)


def _sync(fd: int) -> None:
    if fd < 0:
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))
    if hasattr(fcntl, "F_FULLFSYNC"):
        fcntl.fcntl(fd, fcntl.F_FULLFSYNC)  # fsync of macOS stops at the cache of the drive.
    else:
        os.fsync(fd)


@cache
def _page_cache() -> ModuleType:
    from barnabas.storage.fs import page_cache  # noqa: PLC0415  # few processes need ctypes

    return page_cache


class _Handle:
    """
    A file descriptor that is closed with the last reference to it.

    A call on the descriptor keeps a reference while it runs. So a descriptor is never closed during
    a read, which would then read another file that gets the same number.
    """

    __slots__ = ("fd",)

    def __init__(self, fd: int) -> None:
        self.fd = fd

    def __del__(self) -> None:
        if self.fd >= 0:
            os.close(self.fd)


SMALL_FILE: Final = 2**12
"""A page: state files are smaller, and read with one call."""
READ_AT_ONCE: Final = 2**20
"""Not tuned: only tools read larger files as a whole."""

_CLOSED: Final = _Handle(-1)
"""Every call with it fails with EBADF."""


class DiskFile:
    """
    A file on the real disk.
    """

    __slots__ = ("_end", "_handle", "_knows_nowait", "path")

    def __init__(self, path: Path, handle: _Handle) -> None:
        self.path = path
        self._knows_nowait = hasattr(os, "RWF_NOWAIT")
        self._handle = handle
        self._end = os.fstat(handle.fd).st_size

    def append(self, data: Buffer) -> None:
        self.write_at(self._end, data)

    def write_at(self, position: int, data: Buffer) -> None:
        handle = self._handle
        size = len(data)
        try:
            written = os.pwrite(handle.fd, data, position)
            while written < size:
                written += os.pwrite(handle.fd, memoryview(data)[written:], position + written)
        except OSError as error:
            raise storage_error("write", self.path, error) from error
        self._end = max(self._end, position + size)

    def read(self, position: int, size: int, *, nowait: bool = False) -> bytes | bytearray:
        handle = self._handle
        try:
            if nowait and self._knows_nowait:
                return self._read_cached(handle, position, size)
            data = os.pread(handle.fd, size, position)
            while len(data) < size and (more := self._more(handle, position, data, size)):
                data += more
        except OSError as error:
            raise storage_error("read", self.path, error) from error
        return data

    @staticmethod
    def _more(handle: _Handle, position: int, data: bytes, size: int) -> bytes:
        return os.pread(handle.fd, size - len(data), position + len(data))

    def _read_cached(self, handle: _Handle, position: int, size: int) -> bytearray | bytes:
        data = bytearray(size)
        count = self._copy_cached(handle, position, data)
        if count is None:
            return self.read(position, size)
        if count < size:
            if position + count < os.fstat(handle.fd).st_size:
                raise WouldBlock
            del data[count:]
        return data

    def read_into(self, position: int, room: memoryview, *, nowait: bool = False) -> int:
        if nowait and self._knows_nowait:
            try:
                count = self._copy_cached(self._handle, position, room)
            except OSError as error:
                raise storage_error("read", self.path, error) from error
            if count is not None:
                return count
        data = self.read(position, len(room))
        room[: len(data)] = data
        return len(data)

    def _copy_cached(
        self, handle: _Handle, position: int, room: bytearray | memoryview
    ) -> int | None:
        """
        Copy the bytes in the page cache into *room*; how many, or None if that is not known.
        """
        try:
            return os.preadv(handle.fd, [room], position, os.RWF_NOWAIT)
        except BlockingIOError:
            raise WouldBlock from None
        except OSError as error:
            # tmpfs, overlays and some network file systems do not know the flag. Cached bytes are
            # read as quickly without it.
            if error.errno not in (errno.EOPNOTSUPP, errno.ENOSYS):
                raise
            self._knows_nowait = False
            return None

    def splice_into(self, pipe: int, position: int, size: int) -> int:
        handle = self._handle
        if not self._knows_nowait or not _page_cache().holds(handle.fd, position, size):
            return 0
        try:
            # The pages may be on their way from the disk: the end comes last.
            os.preadv(handle.fd, [bytearray(1)], position + size - 1, os.RWF_NOWAIT)
            flags = os.SPLICE_F_NONBLOCK
            return os.splice(handle.fd, pipe, size, offset_src=position, flags=flags)
        except OSError:
            return 0  # Another way of reading raises the error.

    def truncate(self, size: int) -> None:
        with _errors("truncate", self.path):
            os.ftruncate(self._handle.fd, size)
        self._end = size

    def size(self) -> int:
        with _errors("look at", self.path):
            return os.fstat(self._handle.fd).st_size

    def sync(self) -> None:
        handle = self._handle
        with _errors("sync", self.path):
            _sync(handle.fd)

    def rewrite_lost(self) -> int:
        handle = self._handle
        if not hasattr(os, "posix_fadvise"):
            return 0
        with _errors("sync", self.path):
            return _rewrite_lost(handle.fd)

    def close(self) -> None:
        self._handle = _CLOSED

    def __repr__(self) -> str:
        return f"<DiskFile {self.path}>"


def _rewrite_lost(fd: int) -> int:
    cache = _page_cache()
    if cache.is_without(fd):
        return 0
    if cache.is_dirty(fd):
        _sync(fd)  # Only clean pages can be dropped.
    lost = 0
    for position in range(0, os.fstat(fd).st_size, _COMPARED_BYTES):
        cached = os.pread(fd, _COMPARED_BYTES, position)
        if _on_disk(fd, position) != cached:
            # The pages are new ones: ext4 writes to a page that it could not write before without
            # noting that its block has data now.
            os.pwrite(fd, cached, position)
            _sync(fd)
            if _on_disk(fd, position) != cached:
                raise OSError(errno.EIO, "The disk does not keep what is written")
            lost += len(cached)
    return lost


def _on_disk(fd: int, position: int) -> bytes:
    os.posix_fadvise(fd, position, _COMPARED_BYTES, os.POSIX_FADV_DONTNEED)
    return os.pread(fd, _COMPARED_BYTES, position)


_EMPTY: Final = memoryview(b"")


MAPS_KEEP_DESCRIPTORS: Final = sys.version_info < (3, 13)
"""Whether Python keeps a descriptor for each map, without a use for it."""


class DiskMappedFile:
    """
    A memory map of a file on the real disk.

    The memory is freed with the last ``view`` of it. A descriptor for writing is open from
    ``open_for_writing`` to the next ``resize``: only the index of an active segment needs one.

    A map can be given back; ``view`` is then no attribute until the next access, so that it costs
    nothing while it is one. Where maps keep descriptors, it goes with these, and otherwise when the
    process has too many maps (``vm.max_map_count``).

    ``flush`` syncs the memory and not the path, as long as there is memory: it may run while
    another thread renames the directory. A file without bytes has no memory, and its length is to
    survive too.
    """

    __slots__ = (
        "_access",
        "_dirty",
        "_files",
        "_is_given_back",
        "_memory",
        "_writing",
        "created",
        "path",
        "view",
        "was_used",
    )

    def __init__(
        self, files: DiskFiles, path: Path, fd: int, *, created: bool, read_only: bool
    ) -> None:
        self.path = path
        self.created = created
        self.was_used = False
        self._files = files
        self._writing: _Handle | None = None
        self._dirty = created
        self._access = mmap.ACCESS_READ if read_only else mmap.ACCESS_WRITE
        self._map(fd)

    def _map(self, fd: int) -> None:
        size = os.fstat(fd).st_size
        memory = self._memory = self._new_memory(fd, size) if size else None
        if memory and self._access == mmap.ACCESS_WRITE and hasattr(mmap, "MADV_RANDOM"):
            # A search looks at a page here and there. Otherwise each would come with 32 around it,
            # of which 16 count as memory of the process: for an index that is a hole, all in vain.
            memory.madvise(mmap.MADV_RANDOM)
        self.view = memoryview(memory).toreadonly() if memory else _EMPTY
        self._is_given_back = False
        if memory:
            self.was_used = True
            self._files.maps.add(self)

    def _new_memory(self, fd: int, size: int) -> mmap.mmap:
        while True:
            try:
                return _memory(fd, size, self._access)
            except OSError as error:
                # Half of the files may be some without a map: again until none is left.
                if error.errno != errno.ENOMEM or not self._files.maps.give_back_half():
                    raise

    def __getattr__(self, name: str) -> memoryview:
        if name != "view":
            raise AttributeError(name)
        with self._files.open_files.lock, _errors("map", self.path):
            if self._is_given_back:
                try:
                    handle = self._files.handle(self.path, _flags(read_only=not self._may_write))
                except FileNotFoundError:
                    return _EMPTY  # Removed meanwhile. Without entries a search takes longer.
                self._map(handle.fd)
            return self.view

    @property
    def _may_write(self) -> bool:
        return self._access == mmap.ACCESS_WRITE

    def open_for_writing(self) -> None:
        if self._writing is None:
            self._open_for_writing()
        self.was_used = True

    def _open_for_writing(self) -> _Handle:
        with self._files.open_files.lock, _errors("open", self.path):
            handle = self._writing = self._files.handle(self.path)
            self._files.open_files.add(self)
            if self._is_given_back:
                self._map(handle.fd)
        return handle

    def give_back(self) -> None:
        with self._files.open_files.lock:
            self._writing = None
            self._files.forget(self)
            if self._memory is not None:
                self._forget_map()

    def _forget_map(self) -> None:
        self._is_given_back = True
        self._memory = None
        with suppress(AttributeError):
            del self.view

    def put(self, position: int, data: bytes) -> None:
        handle = self._writing or self._open_for_writing()
        self.was_used = True
        try:
            if os.pwrite(handle.fd, data, position) < len(data):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as error:
            raise storage_error("write", self.path, error) from error
        self._dirty = True

    def resize(self, size: int) -> None:
        with self._files.open_files.lock, _errors("resize", self.path):
            handle = self._files.handle(self.path)
            os.ftruncate(handle.fd, size)
            self._writing = None
            self._files.forget(self)
            try:
                self._map(handle.fd)
            except OSError as error:
                if error.errno != errno.ENOMEM:
                    raise
                self._forget_map()  # the next access maps the file as it is now
        self._dirty = True

    def flush(self) -> None:
        memory = self._memory
        if not self._dirty:
            return
        self._dirty = False
        try:
            with _errors("sync", self.path):
                if memory is None:
                    self._sync_by_path()
                else:
                    memory.flush()
        except TooManyOpenFiles:
            self._dirty = True
            raise

    def _sync_by_path(self) -> None:
        try:
            handle = self._files.open_files.find(self._handle_by_path)
        except FileNotFoundError:
            return  # It was removed, and its content is not needed.
        _sync(handle.fd)

    def _handle_by_path(self) -> _Handle:
        with self._files.open_files.lock:
            return self._files.handle(self.path)

    def close(self) -> None:
        with self._files.open_files.lock:
            self._files.forget(self)
            self._is_given_back = self._dirty = False
            self._writing = self._memory = None
            self.view = _EMPTY

    def __repr__(self) -> str:
        return f"<DiskMappedFile {self.path}>"


def _memory(fd: int, size: int, access: int) -> mmap.mmap:
    if sys.version_info >= (3, 13):
        # Without it every map keeps a descriptor of its own without a use for it.
        return mmap.mmap(fd, size, access=access, trackfd=False)
    return mmap.mmap(fd, size, access=access)


class DiskFiles(Files):
    """
    The real disk.
    """

    def __init__(self, open_files: OpenFiles | None = None) -> None:
        if open_files is not None:
            self.open_files = open_files
        self.maps = self.open_files
        """The files whose maps can be given back."""
        if not MAPS_KEEP_DESCRIPTORS:
            self.maps = OpenFiles(None if self.open_files.limit is None else most_maps())
            self.maps.lock = self.open_files.lock

    def forget(self, mapped: DiskMappedFile) -> None:
        """
        Forget *mapped*, which has neither a map nor a descriptor any more.
        """
        self.open_files.discard(mapped)
        self.maps.discard(mapped)

    def handle(self, path: Path, flags: int = os.O_RDWR) -> _Handle:
        """
        A descriptor for *path*, if need be that of a file of a log which is given back for it.
        """
        try:
            return _Handle(os.open(path, flags | os.O_CLOEXEC, 0o666))
        except OSError as error:
            if error.errno not in _NO_DESCRIPTOR or not self.open_files.give_back_half():
                raise
            return _Handle(os.open(path, flags | os.O_CLOEXEC, 0o666))

    def open(self, path: Path, *, create: bool = True, read_only: bool = False) -> DiskFile:
        create = create and not read_only
        with (_errors if create else _question)("open", path):
            return DiskFile(path, self.handle(path, _flags(create=create, read_only=read_only)))

    def map(self, path: Path, size: int | None, *, read_only: bool = False) -> DiskMappedFile:
        created = size is not None and not self.exists(path)
        with (_errors if created else _question)("map", path):
            handle = self.handle(path, _flags(create=created, read_only=read_only))
            if created and size:
                os.ftruncate(handle.fd, size)
            return DiskMappedFile(self, path, handle.fd, created=created, read_only=read_only)

    def exists(self, path: Path) -> bool:
        return self._mode(path) is not None

    def is_directory(self, path: Path) -> bool:
        mode = self._mode(path)
        return mode is not None and stat.S_ISDIR(mode)

    @staticmethod
    def _mode(path: Path) -> int | None:
        with _errors("look at", path):
            try:
                return os.stat(path).st_mode
            except (FileNotFoundError, NotADirectoryError):
                return None

    def names(self, directory: Path) -> list[str]:
        with _question("list", directory):
            return sorted(os.listdir(directory))

    def directory_names(self, directory: Path) -> list[str]:
        with _question("list", directory), os.scandir(directory) as entries:
            return sorted(entry.name for entry in entries if entry.is_dir())

    def make_directory(self, path: Path) -> None:
        with _errors("make directory", path):
            path.mkdir(parents=True, exist_ok=True)

    def restrict(self, path: Path) -> None:
        with _errors("restrict", path):
            os.chmod(path, stat.S_IMODE(os.stat(path).st_mode) & stat.S_IRWXU)

    def rename(self, source: Path, target: Path) -> None:
        with _errors(f"rename to {target.name}", source):
            os.replace(source, target)

    def remove(self, path: Path) -> bool:
        with _errors("remove", path):
            try:
                os.unlink(path)
            except FileNotFoundError:
                return False
            return True

    def remove_tree(self, path: Path) -> None:
        import shutil  # noqa: PLC0415  # a start does without it

        with _errors("remove", path):
            try:
                shutil.rmtree(path)
            except FileNotFoundError:
                return

    def sync_directory(self, path: Path) -> None:
        with _errors("sync directory", path):
            handle = self.handle(path, os.O_RDONLY)
            os.fsync(handle.fd)

    def read_bytes(self, path: Path) -> bytes:
        with _question("read", path):
            # Fewer calls than a file object makes: a start reads two small files of each log. What
            # is read is less than was asked for only at the end.
            handle = self.handle(path, os.O_RDONLY)
            data = os.read(handle.fd, SMALL_FILE)
            if len(data) == SMALL_FILE:
                while more := os.read(handle.fd, READ_AT_ONCE):
                    data += more
            return data

    def size(self, path: Path) -> int:
        with _question("look at", path):
            return os.stat(path).st_size

    def modified_ms(self, path: Path) -> int:
        with _question("look at", path):
            return path.stat().st_mtime_ns // 1_000_000

    def set_modified_ms(self, path: Path, ms: int) -> None:
        with _question("set the time of", path):
            os.utime(path, ns=(ms * 1_000_000, ms * 1_000_000))

    def lock(self, path: Path) -> DiskLock | None:
        with _errors("lock", path):
            return DiskLock.acquire(path)

    def is_locked(self, path: Path) -> bool:
        with _errors("look at the lock", path):
            return DiskLock.is_held(path)

    def blocks_read(self) -> int:
        return resource.getrusage(resource.RUSAGE_SELF).ru_inblock

    def usable_bytes(self, path: Path) -> int:
        with _errors("look at the file system of", path):
            facts = os.statvfs(path)
            return facts.f_bavail * facts.f_frsize

    def total_bytes(self, path: Path) -> int:
        with _errors("look at the file system of", path):
            facts = os.statvfs(path)
            return facts.f_blocks * facts.f_frsize


def most_maps() -> int:
    """
    The maps of indexes that the process may have: three quarters of what the system allows it.
    """
    try:
        with open(_MAX_MAP_COUNT) as file:
            return int(file.read()) * 3 // 4
    except (OSError, ValueError):
        return sys.maxsize


def _flags(*, create: bool = False, read_only: bool) -> int:
    return (os.O_RDONLY if read_only else os.O_RDWR) | (os.O_CREAT if create else 0)
