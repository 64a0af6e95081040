"""
What the machine, or the container, lets this process use.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final

_CGROUP_LIMITS: Final = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)
_UNKNOWN: Final = 2 * 1024**3
"""A small machine, where the system does not tell."""


def descriptor_limit() -> int | None:
    """
    How many files and sockets the process may have open, None if nothing limits them.
    """
    if sys.platform == "win32":
        return None
    import resource  # noqa: PLC0415  # not every system has it

    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return None if limit == resource.RLIM_INFINITY else limit


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
