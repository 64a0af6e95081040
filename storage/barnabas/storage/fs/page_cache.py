"""
The bytes of a file that are in memory, by ``cachestat`` of Linux 6.5.

Without the call, in an older kernel or a sandbox, nothing counts as known.
"""

from __future__ import annotations

import ctypes
import mmap
import sys
from collections.abc import Callable
from typing import Final, cast

_NUMBER: Final = 451
"""Of the system call, on all architectures but Alpha."""

_Range = ctypes.c_uint64 * 2
_Counts = ctypes.c_uint64 * 5
"""Pages that are cached, that are dirty, that are being written, and two counts of evicted ones."""


def holds(fd: int, position: int, size: int) -> bool:
    """
    Whether the page cache is known to have *size* bytes from *position* on; perhaps they are only
    just being read into it.
    """
    counts = _Counts()
    if _cachestat is None or _cachestat(_NUMBER, fd, _Range(position, size), counts, 0):
        return False
    end = position + size - 1
    return counts[0] > end // mmap.PAGESIZE - position // mmap.PAGESIZE


def is_without(fd: int) -> bool:
    """
    Whether the page cache is known to have no byte of a file.
    """
    counts = _count_all(fd)
    return counts is not None and counts[0] == 0


def is_dirty(fd: int) -> bool:
    """
    Whether the page cache may have bytes of a file that are not written yet.
    """
    counts = _count_all(fd)
    return counts is None or counts[1] + counts[2] > 0


def _count_all(fd: int) -> ctypes.Array[ctypes.c_uint64] | None:
    counts = _Counts()
    if _cachestat is None or _cachestat(_NUMBER, fd, _Range(0, 0), counts, 0):
        return None
    return counts


def _find() -> Callable[..., int] | None:
    if sys.platform != "linux":
        return None
    syscall = ctypes.CDLL(None).syscall
    syscall.argtypes = [ctypes.c_long, ctypes.c_uint, _Range, _Counts, ctypes.c_uint]
    syscall.restype = ctypes.c_long
    return cast(Callable[..., int], syscall)


_cachestat: Final = _find()
