"""
Mounts and loop devices that end with the process that made them.

1. ``enter_own_mounts`` gives the process a mount namespace: its mounts end with its last process,
   also after SIGKILL, and no other process sees them.
2. A loop device detaches itself with its last user (``LO_FLAGS_AUTOCLEAR``).
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import stat
import time
from contextlib import suppress
from pathlib import Path
from struct import Struct
from typing import Final

_libc: Final = ctypes.CDLL(None, use_errno=True)

CLONE_NEWNS: Final = 0x20000
MS_BIND: Final = 0x1000
MS_REC: Final = 0x4000
MS_PRIVATE: Final = 0x40000
MNT_DETACH: Final = 2

LOOP_CTL_GET_FREE: Final = 0x4C82
LOOP_CONFIGURE: Final = 0x4C0A
_LOOP_MAJOR: Final = 7
_LOOP_CONFIG: Final = Struct("<II5Q4I64s64s32s2Q64x")
_AUTOCLEAR: Final = 4
_BLOCK: Final = 512
_ATTEMPTS: Final = 200


def _check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def mount(
    source: str, target: Path, kind: str | None = None, *, flags: int = 0, options: str = ""
) -> None:
    """
    Mount a file system.

    Raises:
        OSError: the kernel refuses.
    """
    type_name = None if kind is None else kind.encode()
    _check(
        _libc.mount(source.encode(), os.fsencode(target), type_name, flags, options.encode()),
        f"mount {kind} at {target}",
    )


def unmount(target: Path, *, lazily: bool = False, attempts: int = _ATTEMPTS) -> None:
    """
    Unmount a file system; wait a little for descriptors that are being closed.

    Raises:
        OSError: it is in use, or not mounted.
    """
    for attempt in range(attempts):
        try:
            return _check(
                _libc.umount2(os.fsencode(target), MNT_DETACH if lazily else 0),
                f"unmount {target}",
            )
        except OSError as error:
            if error.errno != errno.EBUSY or attempt == attempts - 1:
                raise
            time.sleep(0.01)
    return None


def sync_file_system(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        _check(_libc.syncfs(descriptor), f"sync the file system of {directory}")
    finally:
        os.close(descriptor)


def write_back(path: Path) -> None:
    """
    Write the dirty pages of a file without a flush of the disk, as the kernel does at any time.
    """
    descriptor = os.open(path, os.O_RDONLY)
    try:
        zero = ctypes.c_longlong(0)
        _check(_libc.sync_file_range(descriptor, zero, zero, 7), f"write back {path}")
    finally:
        os.close(descriptor)


def enter_own_mounts(root: Path, *directories: str) -> None:
    """
    Move this process into a mount namespace of its own, with *directories* beside those of ``/``.

    Args:
        root: an empty directory, which becomes ``/`` of this process.
    """
    _check(_libc.unshare(CLONE_NEWNS), "unshare the mounts")
    mount("none", Path("/"), flags=MS_REC | MS_PRIVATE)
    mount("barnabas-root", root, "tmpfs")
    for entry in os.scandir("/"):
        target = root / entry.name
        if entry.is_symlink():
            target.symlink_to(os.readlink(entry.path))
        elif entry.is_dir():
            target.mkdir()
            mount(entry.path, target, flags=MS_BIND | MS_REC)
    for name in directories:
        (root / name).mkdir(parents=True)
    os.chroot(root)
    os.chdir("/")


def attach_loop(file: Path) -> tuple[int, Path]:
    """
    Attach a free loop device to *file*.

    Returns:
        an open descriptor, which keeps the device attached, and the device's path.
    """
    backing = os.open(file, os.O_RDWR | os.O_CLOEXEC)
    control = os.open("/dev/loop-control", os.O_RDWR | os.O_CLOEXEC)
    try:
        for _ in range(_ATTEMPTS):
            number = fcntl.ioctl(control, LOOP_CTL_GET_FREE)
            path = Path(f"/dev/loop{number}")
            if not path.exists():
                with suppress(FileExistsError):
                    os.mknod(path, stat.S_IFBLK | 0o600, os.makedev(_LOOP_MAJOR, number))
            device = os.open(path, os.O_RDWR | os.O_CLOEXEC)
            name = os.fsencode(file)[:63]
            config = _LOOP_CONFIG.pack(
                backing, _BLOCK, 0, 0, 0, 0, 0, 0, 0, 0, _AUTOCLEAR, name, b"", b"", 0, 0
            )
            try:
                fcntl.ioctl(device, LOOP_CONFIGURE, config)
            except OSError as error:
                os.close(device)
                if error.errno != errno.EBUSY:
                    raise
                time.sleep(0.005)  # Another process was faster.
            else:
                return device, path
        raise OSError(errno.EBUSY, "no loop device is free")
    finally:
        os.close(control)
        os.close(backing)
