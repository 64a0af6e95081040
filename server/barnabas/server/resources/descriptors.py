"""
The file descriptors of the process, and how connections and files of logs share them.
"""

from __future__ import annotations

import logging
import sys
from typing import Final

from barnabas.storage.fs.disk import MAPS_KEEP_DESCRIPTORS
from barnabas.storage.units import INT_MAX

logger = logging.getLogger(__name__)

PART_OF_DESCRIPTORS: Final = 8
LEAST_FILES: Final = 100
"""
The descriptors that connections cannot have: an eighth of all, and at least so many.
"""
LEAST_OPEN_FILES: Final = 16


def descriptor_limit() -> int | None:
    """
    How many descriptors the process may have, None if the system has no limit.
    """
    if sys.platform == "win32":
        return None
    import resource  # noqa: PLC0415  # not every system has it

    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return None if limit == resource.RLIM_INFINITY else limit


def raise_descriptor_limit() -> None:
    """
    Raise the limit of this process as far as the system allows.

    A partition that is written to holds three to five descriptors, and the usual limit is 1024.
    """
    if sys.platform == "win32":
        return
    import resource  # noqa: PLC0415  # not every system has it

    limit, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit == most:
        return
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    except (OSError, ValueError) as error:
        logger.warning("only %d files can be open at a time: %s", limit, error)


def most_connections() -> int:
    """
    How many connections there are descriptors for.

    Some descriptors are reserved for the files of the logs: without them an index could not be
    opened, and the log directory would fail.
    """
    limit = descriptor_limit()
    if limit is None:
        return INT_MAX
    return max(1, limit - max(LEAST_FILES, limit // PART_OF_DESCRIPTORS))


def most_open_files(connections: int = 0) -> int | None:
    """
    How many files of logs may be open at a time beside *connections*; None if there is no limit.

    A quarter of what the connections leave is for files that are opened for a moment, and for all
    else.
    """
    limit = descriptor_limit()
    if limit is None:
        return None
    most = (limit - connections) * 3 // 4
    # An index that is written to needs two descriptors there, and counts as one.
    return max(LEAST_OPEN_FILES, most // 2 if MAPS_KEEP_DESCRIPTORS else most)
