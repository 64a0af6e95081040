"""
A file system with one file, over the kernel's FUSE protocol (``linux/fuse.h``).

It needs no library: a loop device uses nine of the requests. The file is opened for direct I/O, so
that each request of the block device arrives here, in its order and with its size.
"""

from __future__ import annotations

import errno
import os
import stat
from enum import IntEnum
from pathlib import Path
from struct import Struct
from typing import Final, Protocol

from tests.interop.disks.mounts import mount

FILE: Final = "disk"
MAX_WRITE: Final = 1 << 20
PAGE: Final = 4096

_REQUEST: Final = Struct("<IIQQIIIHH")
_ANSWER: Final = Struct("<IiQ")
_INIT: Final = Struct("<IIII")
_INITIALIZED: Final = Struct("<IIIIHHIIHHI28x")
_ATTRIBUTES: Final = Struct("<QQQQQQIIIIIIIIII")
_ENTRY: Final = Struct("<QQQQII")
_ATTRIBUTES_VALID: Final = Struct("<QII")
_OPENED: Final = Struct("<QIi")
_TRANSFER: Final = Struct("<QQII")
_TRANSFER_SIZE: Final = 40
_WRITTEN: Final = Struct("<II")
_STATISTICS: Final = Struct("<QQQQQIIII24x")

_LOOKUP, _FORGET, _GETATTR, _SETATTR = 1, 2, 3, 4
_OPEN, _STATFS, _RELEASE, _FLUSH = 14, 17, 18, 25
_INITIALIZE, _OPENDIR, _RELEASEDIR, _ACCESS, _INTERRUPT, _DESTROY = 26, 27, 29, 34, 36, 38
_BATCH_FORGET: Final = 42
_EMPTY: Final = frozenset({_FLUSH, _RELEASE, _RELEASEDIR, _ACCESS, _DESTROY})
"""Requests whose answer has no content."""
_WITHOUT_ANSWER: Final = frozenset({_FORGET, _BATCH_FORGET, _INTERRUPT})
_MAX_PAGES_FLAG: Final = 1 << 22
_BIG_WRITES_FLAG: Final = 1 << 5
_DIRECT_IO: Final = 1
_ROOT_NODE, _FILE_NODE = 1, 2


class _Transfers(IntEnum):
    READ = 15
    WRITE = 16
    FSYNC = 20


class Disk(Protocol):
    """
    What is behind the file. Each method may raise an ``OSError``, which the kernel gets.
    """

    size: int

    def read(self, offset: int, size: int) -> bytes | memoryview: ...

    def write(self, offset: int, data: memoryview) -> None: ...

    def flush(self) -> None: ...


def mount_fuse(directory: Path) -> int:
    """
    Mount a file system at *directory*; ``serve`` has to answer its requests.

    Returns:
        the descriptor of the connection, whose last copy ends the file system.
    """
    connection = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
    options = f"fd={connection},rootmode=40000,user_id=0,group_id=0,allow_other"
    try:
        mount("barnabas-disk", directory, "fuse", options=options)
    except BaseException:
        os.close(connection)
        raise
    return connection


def serve(connection: int, disk: Disk) -> None:
    """
    Answer requests until the file system is unmounted.
    """
    buffer = bytearray(MAX_WRITE + PAGE)
    view = memoryview(buffer)
    while True:
        try:
            size = os.readv(connection, [buffer])
        except OSError as error:
            if error.errno == errno.ENODEV:
                return
            if error.errno in (errno.EINTR, errno.ENOENT, errno.EAGAIN):
                continue
            raise
        _, operation, unique, node, *_ = _REQUEST.unpack_from(buffer)
        if operation in _WITHOUT_ANSWER:
            continue
        body = view[_REQUEST.size : size]
        number = 0
        answer: bytes | memoryview = b""
        try:
            answer = _answer(disk, operation, node, body)
        except OSError as error:
            number = error.errno or errno.EIO
        head = _ANSWER.pack(_ANSWER.size + len(answer), -number, unique)
        try:
            os.writev(connection, [head, answer])
        except OSError as error:
            if error.errno != errno.ENOENT:  # The request was interrupted.
                raise
        if operation == _DESTROY:
            return


def _answer(disk: Disk, operation: int, node: int, body: memoryview) -> bytes | memoryview:
    match operation:
        case _Transfers.READ:
            _, offset, size, _ = _TRANSFER.unpack_from(body)
            answer: bytes | memoryview = disk.read(offset, min(size, max(0, disk.size - offset)))
        case _Transfers.WRITE:
            _, offset, size, _ = _TRANSFER.unpack_from(body)
            disk.write(offset, body[_TRANSFER_SIZE : _TRANSFER_SIZE + size])
            answer = _WRITTEN.pack(size, 0)
        case _Transfers.FSYNC:
            disk.flush()
            answer = b""
        case _:
            answer = _answer_about_files(disk, operation, node, body)
    return answer


def _answer_about_files(disk: Disk, operation: int, node: int, body: memoryview) -> bytes:
    answer = b""
    if operation == _INITIALIZE:
        major, minor, readahead, _ = _INIT.unpack_from(body)
        flags = _MAX_PAGES_FLAG | _BIG_WRITES_FLAG
        pages = MAX_WRITE // PAGE
        answer = _INITIALIZED.pack(
            major, min(minor, 38), readahead, flags, 0, 0, MAX_WRITE, 1, pages, 0, 0
        )
    elif operation == _LOOKUP:
        if bytes(body).rstrip(b"\0") != FILE.encode():
            raise OSError(errno.ENOENT, "no such file")
        answer = _ENTRY.pack(_FILE_NODE, 0, 3600, 3600, 0, 0) + _attributes(disk, _FILE_NODE)
    elif operation in (_GETATTR, _SETATTR):
        answer = _ATTRIBUTES_VALID.pack(3600, 0, 0) + _attributes(disk, node)
    elif operation in (_OPEN, _OPENDIR):
        answer = _OPENED.pack(0, _DIRECT_IO if operation == _OPEN else 0, 0)
    elif operation == _STATFS:
        answer = _STATISTICS.pack(1, 1, 1, 1, 1, PAGE, 255, PAGE, 0)
    elif operation not in _EMPTY:
        raise OSError(errno.ENOSYS, "the loop device does not need it")
    return answer


def _attributes(disk: Disk, node: int) -> bytes:
    size = disk.size if node == _FILE_NODE else 0
    mode = stat.S_IFREG | 0o600 if node == _FILE_NODE else stat.S_IFDIR | 0o700
    return _ATTRIBUTES.pack(node, size, size // 512, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, PAGE, 0)
