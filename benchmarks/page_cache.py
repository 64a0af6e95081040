"""
Files as they are when nobody has read them for a while: on the disk only.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from benchmarks.measure import Unavailable


def drop(paths: Iterable[Path]) -> None:
    """
    Write the files back and take them out of the page cache, whoever has them open.

    Raises:
        Unavailable: there are none.
    """
    there = list(paths)
    if not there:
        raise Unavailable("its files are not where Apache Kafka has them")
    for path in there:
        with path.open("rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
