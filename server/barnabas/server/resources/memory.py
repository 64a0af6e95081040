"""
The memory that the process may use, and how it is given back.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Final

_CGROUP_LIMITS: Final = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)
_UNKNOWN: Final = 2 * 1024**3
"""The memory of a small machine, for systems that do not say."""


def memory_bytes() -> int:
    """
    The memory of the machine, or of the container if that has less.
    """
    sizes = [limit for path in _CGROUP_LIMITS if (limit := _limit(path)) is not None]
    with suppress(ValueError, OSError, AttributeError):
        sizes.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    return min(sizes, default=_UNKNOWN)


def _limit(path: Path) -> int | None:
    try:
        text = path.read_text()
    except OSError:
        return None
    return int(text) if text.strip().isdigit() else None  # "max" means no limit


def trim_heap() -> None:
    """
    Give the free pages of the heap back to the system (glibc's ``malloc_trim``).

    glibc keeps freed memory for later allocations, so that the process stays large after many
    connections have closed; other C libraries give it back by themselves, or never. The call takes
    some milliseconds for each 100 MiB, without Python's lock.
    """
    if sys.platform != "linux":
        return
    with suppress(OSError, AttributeError):
        _malloc_trim()(0)


@cache
def _malloc_trim() -> Callable[[int], int]:
    import ctypes  # noqa: PLC0415  # most brokers never need it

    # One object for all calls: each new one is part of a cycle.
    trim: Callable[[int], int] = ctypes.CDLL(None).malloc_trim
    return trim
