"""
How the descriptors of the process are divided: between connections, files of logs, and the rest.
"""

from __future__ import annotations

from typing import Final

from barnabas.server.resources.machine import descriptor_limit
from barnabas.storage.fs.disk import MAPS_KEEP_DESCRIPTORS

UNLIMITED: Final = 2**31 - 1

PART_OF_DESCRIPTORS: Final = 8
LEAST_FILES: Final = 100
"""
The descriptors that connections cannot have: an eighth, and at least so many.
"""
LEAST_OPEN_FILES: Final = 16


def most_connections() -> int:
    """
    How many connections there are descriptors for. Some are kept for the files of the logs: if
    clients could have them, an index could not be opened, and the log directory would fail.
    """
    limit = descriptor_limit()
    if limit is None:
        return UNLIMITED
    return max(1, limit - max(LEAST_FILES, limit // PART_OF_DESCRIPTORS))


def most_open_files(connections: int = 0) -> int | None:
    """
    How many files of logs may be open at a time, beside so many *connections*; None if that does
    not matter. A quarter of what connections leave is for files that are open for a moment, and for
    all else.
    """
    limit = descriptor_limit()
    if limit is None:
        return None
    most = (limit - connections) * 3 // 4
    # An index that is written to needs two descriptors there, and counts as one.
    return max(LEAST_OPEN_FILES, most // 2 if MAPS_KEEP_DESCRIPTORS else most)
