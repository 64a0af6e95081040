"""
Giving memory that is not used any more back to the system.

The C library keeps what was freed for the next allocation: after a crowd of peers has left, a
broker would look as if it still served them.
"""

from __future__ import annotations

import sys
from contextlib import suppress


def trim() -> None:
    """
    Give back all pages of the heap that nothing is on (glibc's ``malloc_trim``). Other C libraries
    do so by themselves, or never. It takes some milliseconds for each 100 MiB, without Python's
    lock.
    """
    if sys.platform != "linux":
        return
    import ctypes  # noqa: PLC0415  # most brokers never need it

    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
