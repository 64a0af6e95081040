"""
A machine with one disk, in a process of its own: the disk is a FUSE file under a loop device.
"""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, NamedTuple, TypeVar

from tests.interop.disks.fuse import FILE, Disk, mount_fuse, serve
from tests.interop.disks.journal import KEEPINGS, TORN_512
from tests.interop.disks.mounts import attach_loop, mount, unmount

T = TypeVar("T")

DATA: Final = Path("/data")
BACKING: Final = Path("/backing")
PATIENCE_S: Final = 60.0


class FileSystem(NamedTuple):
    """
    A file system to make and to mount.
    """

    name: str
    size: int
    make: tuple[str, ...]
    options: str
    keepings: tuple[str, ...] = KEEPINGS


_MIB: Final = 1 << 20
EXT4: Final = FileSystem(
    "ext4", 48 * _MIB, ("mkfs.ext4", "-q", "-F", "-E", "nodiscard,lazy_itable_init=0"), "commit=1"
)
XFS: Final = FileSystem(
    "xfs",
    320 * _MIB,
    ("mkfs.xfs", "-q", "-f", "-K"),
    "",
    # Its directories are blocks of 4,096 bytes under one checksum, which its log does not repair.
    tuple(each for each in KEEPINGS if each != TORN_512),
)
BTRFS: Final = FileSystem(
    "btrfs",
    128 * _MIB,
    ("mkfs.btrfs", "-q", "-f", "-K"),
    "commit=1,nodiscard",
    # Its superblock is one of 4,096 bytes under one checksum: it needs a disk that writes so many
    # at once.
    tuple(each for each in KEEPINGS if each != TORN_512),
)
FILE_SYSTEMS: Final = {each.name: each for each in (EXT4, XFS, BTRFS)}


@contextmanager
def served(disk: Disk, close: Callable[[], None] = lambda: None) -> Iterator[Path]:
    """
    Serve *disk* from a process of its own in the block, as the file that is yielded. A process
    that waits for a file system cannot serve the disk under it.
    """
    connection = mount_fuse(BACKING)
    server = os.fork()
    if server == 0:
        status = 1
        try:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            serve(connection, disk)
            close()
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(status)
    os.close(connection)
    try:
        yield BACKING / FILE
    finally:
        with suppress(OSError):
            unmount(BACKING, lazily=True)
        status = _end(server)
    assert status != signal.SIGKILL, f"the file system was in use for {PATIENCE_S} s"
    assert status == 0, f"the disk failed with the status {status} of waitpid(2)"


def _end(server: int) -> int:
    """
    Wait for the process of a disk; end it if a file system on it is still in use.
    """
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        ended, status = os.waitpid(server, os.WNOHANG)
        if ended:
            return status
        time.sleep(0.0005)
    os.kill(server, signal.SIGKILL)
    return os.waitpid(server, 0)[1]


def told(work: Callable[[], T]) -> T:
    """
    Do *work* on a mounted file system. An exception becomes text: its traceback would have files
    open, and the file system is to be unmounted.
    """
    try:
        return work()
    except Exception:
        text = traceback.format_exc()
    raise AssertionError(text)


def make_file_system(kind: FileSystem, device: Path) -> None:
    subprocess.run([*kind.make, str(device)], check=True, stdout=subprocess.DEVNULL)


def _unmount_data() -> None:
    try:
        unmount(DATA, attempts=2)
    except OSError:
        gc.collect()  # Garbage may hold a file.
        try:
            unmount(DATA)
        except OSError:
            unmount(DATA, lazily=True)
            raise


@contextmanager
def mounted(kind: FileSystem, file: Path, *, make: bool = False) -> Iterator[None]:
    """
    Mount the file system on *file* at ``DATA`` in the block; recovery from its journal comes first.
    """
    descriptor, device = attach_loop(file)
    try:
        if make:
            make_file_system(kind, device)
        mount(str(device), DATA, kind.name, options=kind.options)
    finally:
        os.close(descriptor)
    if make:
        # A log directory has nothing but logs, for Kafka too.
        with suppress(FileNotFoundError):
            (DATA / "lost+found").rmdir()
    try:
        yield
    finally:
        _unmount_data()
