"""
Files that options name: stores, users, keys.

A client may name one while the broker runs: it gets neither the memory of a device that never ends,
nor the time of a pipe that nobody writes to.
"""

from __future__ import annotations

import errno
import os
import stat
from typing import Final

MOST_BYTES: Final = 4 * 1024 * 1024


def read_file(path: str | os.PathLike[str]) -> bytes:
    """
    The bytes of a file.

    Raises:
        OSError: it cannot be read, is no regular file, or has more than ``MOST_BYTES``.
        ValueError: the path cannot be one.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if stat.S_ISDIR(status.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "it is no regular file")
        data = file.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise OSError(errno.EFBIG, f"it has more than {MOST_BYTES >> 20} MiB")
    return data
